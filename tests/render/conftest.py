"""How this room's tests speak to `gpuyard render`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gpuyard.cli import main


@pytest.fixture
def refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """The one line with which `gpuyard render` refuses its options; it must have written nothing."""

    def call(kind: str, *words: str) -> str:
        file = tmp_path / "file"
        with pytest.raises(SystemExit) as ended:
            main(["render", kind, "--output", str(file), *words])
        shown = capsys.readouterr()
        assert ended.value.code == 2
        assert shown.out == ""
        assert shown.err.count("\n") == 1
        assert not file.exists()
        return str(shown.err)

    return call
