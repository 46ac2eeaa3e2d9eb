"""`gpuyard render devcontainer`: each mistake is one line."""

from __future__ import annotations

from collections.abc import Callable

import pytest


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--gpu", "maybe"], "unknown --gpu 'maybe'"),
        (["--name", "A B"], "--name 'A B': expected lower-case letters"),
        (["--shm", "0"], "--shm 0: expected 1 or more"),
        (["--image", "a;b"], "--image 'a;b': expected workbench"),
    ],
)
def test_a_mistake_is_one_line(refused: Callable[..., str], words: list[str], said: str) -> None:
    """It says what was wrong, and nothing is written."""
    assert said in refused("devcontainer", *words)
