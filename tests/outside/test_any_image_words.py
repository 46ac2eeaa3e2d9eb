"""`gpuyard verify --image`: ours by name, any other by its tag; what cannot be meant is refused before the engine."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from gpuyard.anyimage import is_reference
from gpuyard.cli import application
from gpuyard.errors import UserError


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
    ("words", "said"),
    [
        (["--image", "workbnech"], "Did you mean 'workbench'"),
        (["--image", "ubuntu"], "is written with its tag: ubuntu:TAG"),
        (["--image", "a:1", "--only", "shm-sise"], "nearest: shm-size"),
        (["--image", "a:1", "--gpus", "many"], "many"),
        (["--image", "a:1", "--shm-size", "big"], "big"),
        (["9.9", "--image", "a:1"], "leave one out"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_one_line(
    words: list[str], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before an engine is looked for."""
    monkeypatch.setattr("gpuyard.engine.ensure", lambda: pytest.fail("the engine was asked"))
    ended = CliRunner().invoke(application(), ["verify", *words])
    assert isinstance(ended.exception, UserError)
    assert ended.exception.exit_code == 2
    assert said in str(ended.exception)
    assert "\n" not in str(ended.exception)
