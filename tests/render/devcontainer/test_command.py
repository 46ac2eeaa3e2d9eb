"""`gpuyard render devcontainer`: each mistake is one line, and a project has its folder's name."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from gpuyard.cli import main
from gpuyard.render.devcontainer import folder_name
from gpuyard.render.work import NAME


@pytest.mark.parametrize(
    ("words", "id_", "value"),
    [
        (["--gpu", "maybe"], "render-choice-unknown", "--gpu 'maybe'"),
        (["--name", "A B"], "render-value-invalid", "--name 'A B'"),
        (["--shm", "0"], "render-value-invalid", "--shm 0"),
        (["--image", "a;b"], "render-value-invalid", "--image 'a;b'"),
    ],
)
def test_a_mistake_is_one_line(refused: Callable[..., str], words: list[str], id_: str, value: str) -> None:
    """Its id and the value are named, and nothing is written."""
    shown = refused("devcontainer", *words)
    assert f"error[{id_}]" in shown
    assert value in shown


@pytest.mark.parametrize("place", ["devcontainer.json", ".devcontainer/devcontainer.json", ".devcontainer/gpu/x.json"])
def test_projects_in_two_folders_share_no_volume(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    """The name, and with it the volumes', is that of the folder an editor opens."""
    names = []
    for folder in ("News 2031", "_titles"):
        (tmp_path / folder).mkdir()
        monkeypatch.chdir(tmp_path / folder)
        with pytest.raises(SystemExit):
            main(["render", "devcontainer", "-o", place])
        found = json.loads(Path(place).read_text())
        names.append(found["name"])
        assert [mount["source"] for mount in found["mounts"]] == [f"{names[-1]}-data", f"{names[-1]}-models"]
    assert names == ["news-2031", "titles"]


@pytest.mark.parametrize("folder", ["/", "/x/2031", "/x/Ünï", "/x/" + "long-" * 20, "/x/a.b_c"])
def test_every_folder_has_a_name_that_volumes_may_have(folder: str) -> None:
    """Whatever its own name is."""
    assert NAME.fullmatch(folder_name(Path(folder)))
