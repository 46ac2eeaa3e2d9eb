"""`gpuyard verify --image`: ours by name, any other by its tag; what cannot be meant is refused before the engine."""

from __future__ import annotations

import subprocess

import pytest
from typer.testing import CliRunner

from gpuyard.acceptance.any_image import diagnose, is_reference
from gpuyard.commands.tree import application
from gpuyard.engine.start import Gpus
from gpuyard.errors import UserError
from tests.refusals import refused


@pytest.mark.parametrize(
    ("word", "is_one"),
    [
        ("workbench", False),
        ("runtime", False),
        ("pytorch-cuda:v1", True),
        ("registry.example/team/image", True),
        ("a@sha256:" + "0" * 64, True),
    ],
)
def test_an_image_of_somebody_else_is_known_by_its_form(word: str, is_one: bool) -> None:
    """A tag, a digest or a registry."""
    assert is_reference(word) is is_one


@pytest.mark.parametrize(
    ("words", "id", "named"),
    [
        (["--image", "workbnech"], "image-unknown", "'workbench'"),
        (["--image", "ubuntu"], "image-unknown", "ubuntu:TAG"),
        (["--image", "a:1", "--only", "shm-sise"], "check-unknown", "nearest: shm-size"),
        (["--image", "a:1", "--gpus", "many"], "gpus-invalid", "many"),
        (["--image", "a:1", "--shm-size", "big"], "size-invalid", "big"),
        (["9.9", "--image", "a:1"], "line-beside-reference", "9.9"),
        (["--report-dir", "/proc/none"], "report-not-writable", "/proc/none"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_one_line(
    words: list[str], id: str, named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before an engine is looked for."""
    monkeypatch.setattr("gpuyard.engine.daemon.ensure", lambda: pytest.fail("the engine was asked"))
    ended = CliRunner().invoke(application(), ["verify", *words])
    assert isinstance(ended.exception, UserError)
    assert (ended.exception.id, ended.exception.exit_code) == (id, 2)
    assert named in str(ended.exception)
    assert "\n" not in str(ended.exception)


@pytest.mark.parametrize("code", [125, 126, 127])
def test_an_image_that_is_absent_or_has_no_shell_is_told_apart(code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """By what docker run ends with; the suite's own codes are handed on."""
    answers = iter([code, 3])
    monkeypatch.setattr("subprocess.run", lambda words, **_: subprocess.CompletedProcess(words, next(answers)))
    with refused("image-not-runnable", "a:1"):
        diagnose("a:1", Gpus(), "1g", [])
    assert diagnose("a:1", Gpus(), "1g", []) == 3
