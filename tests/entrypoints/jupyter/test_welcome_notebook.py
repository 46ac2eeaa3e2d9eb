"""The notebook that greets people: where it comes to, and that every cell of it runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests import notebooks

from ..conftest import log_of, wait_for

pytestmark = pytest.mark.image


def test_the_first_notebook_comes_to_an_empty_workspace_only(run_container: Any, run: Any, tmp_path: Path) -> None:
    """A folder with anything in it is left as it is."""
    full, empty = tmp_path / "full", tmp_path / "empty"
    for folder in (full, empty):
        folder.mkdir()
        folder.chmod(0o777)
    (full / ".hidden").touch()
    for folder, expected in ((full, [".hidden"]), (empty, ["first-steps.ipynb"])):
        volumes = {str(folder): {"bind": "/workspace", "mode": "rw"}}
        with run_container(None, volumes=volumes) as container:
            wait_for(lambda: "JupyterLab: http" in log_of(container))
        assert sorted(path.name for path in folder.iterdir()) == expected
        assert run("true", volumes=volumes).code == 0


@pytest.mark.full
def test_the_first_notebook_verifies_trains_and_plots(run: Any) -> None:
    """Every cell runs; the loss falls; the picture is a picture."""
    ended = run("python", "-c", notebooks.RUN, "/opt/gpuyard/entrypoints/first-steps.ipynb", timeout=400)
    assert ended.code == 0, ended.stderr
    found = json.loads(ended.stdout.splitlines()[-1])
    assert "required checks passed" in found["text"]
    assert "\033[K" not in found["text"], "a notebook shows no cleared line as cleared"
    first, last = (
        float(word) for word in found["text"].replace(",", "").split() if word.startswith("0.") and len(word) == 5
    )
    assert last < first / 5
    assert len(found["images"]) == 1
    assert found["images"][0].startswith("iVBORw0KGgo")
