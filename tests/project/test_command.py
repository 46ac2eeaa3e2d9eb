"""`gpuyard lock` as it is typed in a project's folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuyard import paths
from gpuyard.cli import main
from tests.images.index import wheel
from tests.project.conftest import Make


def typed(*words: str) -> int:
    """The exit code of the command line."""
    with pytest.raises(SystemExit) as ended:
        main(["lock", *words])
    return int(ended.value.code or 0)


def test_the_project_in_this_folder_is_locked(
    index: Path, make: Make, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Locked, checked, upgraded; what changed is listed."""
    project = make("leaf<1.1")
    monkeypatch.chdir(project.folder)
    assert typed("--check") == 1
    assert "error[project-lock-missing]" in capsys.readouterr().err
    assert typed() == 0
    assert "leaf (new) -> 1.0" in capsys.readouterr().out
    assert typed("--check") == 0
    make("leaf")
    wheel(index, "leaf", "1.2")
    assert typed("--upgrade-package", "leaf") == 0
    assert "leaf 1.0 -> 1.2" in capsys.readouterr().out
    wheel(index, "leaf", "1.3")
    assert typed("--upgrade") == 0
    assert "leaf 1.2 -> 1.3" in capsys.readouterr().out


def test_a_folder_is_named_and_each_line_answers(index: Path, make: Make, capsys: pytest.CaptureFixture[str]) -> None:
    """`--which-line` writes no lock."""
    wheel(index, "extra", "1.0")
    project = make("oldtorch")
    assert typed(str(project.folder), "--which-line") == 0
    said = capsys.readouterr().out
    assert "pytorch-cuda:v2.7: fits; packages beyond the image's: 1" in said
    assert f"torch=={project.product.row.torch}" in said
    assert not project.lock.exists()


def test_options_of_the_other_kind_are_refused(make: Make, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A project's beside a line, a line's beside a project, and a folder that is not a project."""
    folder = str(make("").folder)
    for words in (["2.9", "--upgrade"], ["2.9", "--which-line"], [folder, "--devel"], [folder, "--os", "debian-13"]):
        assert typed(*words) == 2
        assert f"error[project-option]: {words[1]}" in capsys.readouterr().err
    assert typed(str(tmp_path)) == 1
    assert "error[project-missing]" in capsys.readouterr().err


def test_a_folder_that_is_not_a_project_never_locks_every_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The checkout's own locks are not touched from somewhere else."""
    monkeypatch.chdir(tmp_path)
    before = {path: path.read_bytes() for path in paths.LOCKS.iterdir()}
    assert typed() == 1
    assert "error[project-missing]" in capsys.readouterr().err
    assert {path: path.read_bytes() for path in paths.LOCKS.iterdir()} == before
