"""What a program ends with, in words; none of it needs torch."""

from __future__ import annotations

import argparse
import errno
import os
import signal
from collections.abc import Iterator

import pytest
from examples.errors import ExampleError, script
from examples.options import natural
from examples.stopping import ASKING


@pytest.fixture(autouse=True)
def _signals() -> Iterator[None]:
    """A program listens to signals; this process must not go on to do so."""
    before = {number: signal.getsignal(number) for number in ASKING}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def ended(error: BaseException) -> int:
    """The exit code of a program in which that was raised."""

    def main(_: object) -> None:
        raise error

    return script("program", main)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ExampleError("two\n  lines"), "program: two lines\n"),
        (
            OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/mnt/models/x"),
            "program: No space left on device (/mnt/models/x): free some and run the same command; "
            "the last checkpoint is intact\n",
        ),
    ],
)
def test_what_a_person_can_act_on_is_one_line(
    error: BaseException, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """With exit code 1."""
    assert ended(error) == 1
    assert capsys.readouterr().err == said


def test_other_errors_keep_their_traceback() -> None:
    """A fault of the program is not dressed up."""
    with pytest.raises(FileNotFoundError):
        ended(FileNotFoundError(errno.ENOENT, "gone"))


@pytest.mark.parametrize("text", ["-1", str(2**32), "x"])
def test_a_seed_that_some_generator_refuses_is_refused_first(text: str) -> None:
    """By argparse, with the numbers that do."""
    with pytest.raises((argparse.ArgumentTypeError, ValueError), match=r"between 0 and|invalid literal"):
        natural(text)
