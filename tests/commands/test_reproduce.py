"""`gpuyard reproduce`: the comparison with images/digests.toml."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuyard.commands.building.reproduce_ import compare_with_record
from gpuyard.image import reproduce
from tests.refusals import refused

ROW = {"digest": "sha256:aa", "diff_id": "sha256:bb"}


@pytest.fixture(autouse=True)
def record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A record with one line."""
    reproduce.write("1.0", {"a==1": ROW}, tmp_path / "digests.toml")
    known = reproduce.recorded(tmp_path / "digests.toml")
    monkeypatch.setattr(reproduce, "recorded", lambda: known)


def test_a_line_without_recorded_digests_is_no_failure(caplog: pytest.LogCaptureFixture) -> None:
    """Nothing was compared, and a warning says that with the command that records."""
    compare_with_record("2.0", {"b==1": ROW}, write=False)
    assert "warning[layer-digest-unrecorded]" in caplog.text
    assert "gpuyard reproduce 2.0 --write" in caplog.text


def test_a_recorded_line_is_compared(caplog: pytest.LogCaptureFixture) -> None:
    """Equal is silent; a changed or unrecorded layer is refused by name."""
    compare_with_record("1.0", {"a==1": ROW}, write=False)
    assert caplog.text == ""
    with refused("layer-digest-changed", "a==1"):
        compare_with_record("1.0", {"a==1": {**ROW, "diff_id": "sha256:cc"}}, write=False)
    with refused("layer-digest-changed", "b==1"):
        compare_with_record("1.0", {"a==1": ROW, "b==1": ROW}, write=False)
