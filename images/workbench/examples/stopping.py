"""Being asked to end: a training finishes its step, saves, and says so."""

from __future__ import annotations

import signal
from types import FrameType

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
        if not self.training or self.asked is signal.SIGINT:
            raise SystemExit(128 + number if number == signal.SIGINT else 0)
        self.asked = signal.Signals(number)

    def stopped(self, saved: str) -> Stopped:
        """The end that was asked for; Ctrl-C ends with the code that shells expect of it."""
        stopped = Stopped(f"asked to end by {self.asked.name if self.asked else 'another process'}: {saved}")
        stopped.code = 130 if self.asked is signal.SIGINT else 0
        return stopped


STOP = Stop()
