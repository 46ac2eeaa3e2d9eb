"""Being asked to end: a training finishes its step, saves, and says so."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import NoReturn

ASKING = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1)
"""Docker's stop, Ctrl-C, and Slurm's warning before a job's time is over."""


class Stopped(Exception):
    """The training was asked to end and did, with everything saved."""

    code = 0


class Stop:
    """Which signal has asked this process to end."""

    def __init__(self) -> None:
        self.asked: signal.Signals | None = None
        self.training = False

    def listen(self) -> None:
        """From now on these signals ask instead of killing; before the training there is nothing to save."""
        for number in ASKING:
            signal.signal(number, self._ask)

    def _ask(self, number: int, _frame: FrameType | None) -> None:
        if self.asked is signal.SIGINT:
            raise KeyboardInterrupt
        if not self.training:
            _leave(self._end(signal.Signals(number), "no training was under way, nothing is lost"))
        self.asked = signal.Signals(number)

    def stopped(self, saved: str) -> Stopped:
        """The end that was asked for, perhaps of another process than this one."""
        return self._end(self.asked, saved)

    def _end(self, asked: signal.Signals | None, saved: str) -> Stopped:
        stopped = Stopped(f"asked to end by {asked.name if asked else 'another process'}: {saved}")
        # What shells expect after Ctrl-C.
        stopped.code = 130 if asked is signal.SIGINT else 0
        return stopped


def _leave(stopped: Stopped) -> NoReturn:
    # Not by an exception: while torch is imported, handlers of other people's code would swallow it.
    with contextlib.suppress(Exception):
        sys.stdout.flush()
    os.write(2, f"{Path(sys.argv[0]).stem}: {stopped}\n".encode())
    os._exit(stopped.code)


STOP = Stop()
