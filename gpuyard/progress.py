"""How far a long step is: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

from gpuyard.process import log

SECONDS = 10
"""Between two lines where there is no terminal."""


class Meter:
    """Counts bytes and finished things; any thread may tell it."""

    def __init__(self, title: str, things: int) -> None:
        self.title, self.things = title, things
        self.bytes = self.done = 0
        self._lock = threading.Lock()
        self._said = self._started = time.monotonic()

    def moved(self, count: int) -> None:
        """So many bytes more."""
        with self._lock:
            self.bytes += count
            self._now_and_then()

    def finished(self) -> None:
        """One thing more is done."""
        with self._lock:
            self.done += 1
            self._now_and_then()

    def _now_and_then(self) -> None:
        if time.monotonic() - self._said > SECONDS:
            self._said = time.monotonic()
            self.say()

    def say(self) -> None:
        """One line of where it stands."""
        seconds = time.monotonic() - self._started
        log.warning("%s: %d of %d, %.1f MB, %.0f s", self.title, self.done, self.things, self.bytes / 1e6, seconds)


class Bar(Meter):
    """A meter that is drawn."""

    def __init__(self, title: str, things: int, progress: Progress) -> None:
        super().__init__(title, things)
        self._progress, self._task = progress, progress.add_task(title, total=None, of=f"0/{things}")

    def moved(self, count: int) -> None:
        """So many bytes more."""
        self._progress.advance(self._task, count)

    def finished(self) -> None:
        """One thing more is done."""
        self.done += 1
        self._progress.update(self._task, of=f"{self.done}/{self.things}")


@contextmanager
def meter(title: str, things: int) -> Iterator[Meter]:
    """A meter for a step over so many things, shown on standard error."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield Meter(title, things)
        return
    columns = (TextColumn("{task.description} {task.fields[of]}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        yield Bar(title, things, progress)
