"""A program that is asked to end does so at once, whatever runs at that moment."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from tests.examples.scripts import ENVIRONMENT

# Like code in the midst of an import of torch: whatever is raised there, it goes on.
DEAF = """
import sys, time
from examples.errors import script

def main(_):
    print("words", end="")
    print("ready", file=sys.stderr, flush=True)
    while True:
        try:
            time.sleep(60)
        except BaseException:
            pass

sys.exit(script("deaf", main))
"""


@pytest.mark.parametrize(("asked", "code"), [(signal.SIGTERM, 0), (signal.SIGUSR1, 0), (signal.SIGINT, 130)])
def test_nothing_keeps_a_program_that_is_not_training(asked: signal.Signals, code: int) -> None:
    """Not even code that goes on after any exception; what was printed is kept."""
    with subprocess.Popen(
        [sys.executable, "-c", DEAF], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT
    ) as process:
        assert process.stderr
        try:
            assert process.stderr.readline() == "ready\n"
            process.send_signal(asked)
            out, err = process.communicate(timeout=10)
        finally:
            process.kill()
    assert (process.returncode, out) == (code, "words")
    assert f"asked to end by {asked.name}: no training was under way, nothing is lost" in err
