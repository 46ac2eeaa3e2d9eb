"""Progress of a long step: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn
from rich.text import Text

from gpuyard.process import log

SECONDS = 10
"""Between two lines where there is no terminal."""


class Moved(ProgressColumn):
    """Bytes so far, and their speed once it has been measured for a second: earlier it would be any number."""

    def render(self, task: Task) -> Text:
        """Empty until the first byte: the whole is not known before."""
        if not task.completed:
            return Text("")
        seconds = task.elapsed or 0
        speed = f", {task.completed / seconds / 1e6:.1f} MB/s" if seconds >= 1 else ""
        return Text(f"{task.completed / 1e6:.1f} MB{speed}")


class Meter:
    """Counts bytes and finished things; any thread may call it."""

    def __init__(self, title: str, things: int) -> None:
        self.title, self.things = title, things
        self.bytes = self.done = 0
        self._lock = threading.Lock()
        self._said = self._started = time.monotonic()

    def moved(self, count: int) -> None:
        """Adds bytes."""
        with self._lock:
            self.bytes += count
            self._now_and_then()

    def finished(self) -> None:
        """Counts one thing as done."""
        with self._lock:
            self.done += 1
            self._now_and_then()

    def _now_and_then(self) -> None:
        if time.monotonic() - self._said > SECONDS:
            self._said = time.monotonic()
            self.say()

    def say(self) -> None:
        """Logs one line about the progress."""
        seconds = time.monotonic() - self._started
        log.warning("%s: %d of %d, %.1f MB, %.0f s", self.title, self.done, self.things, self.bytes / 1e6, seconds)


class Bar(Meter):
    """A meter that is drawn."""

    def __init__(self, title: str, things: int, progress: Progress) -> None:
        super().__init__(title, things)
        self._progress, self._task = progress, progress.add_task(title, total=None, of=f"0 of {things}")

    def moved(self, count: int) -> None:
        """Adds bytes."""
        self._progress.advance(self._task, count)

    def finished(self) -> None:
        """Counts one thing as done."""
        self.done += 1
        self._progress.update(self._task, of=f"{self.done} of {self.things}")


@contextmanager
def meter(title: str, things: int) -> Iterator[Meter]:
    """A meter for a step over so many things, shown on standard error."""
    console = Console(stderr=True)
    if not things:
        yield Meter(title, things)
        return
    if not console.is_terminal:
        yield Meter(title, things)
        return
    columns = (TextColumn("{task.description} {task.fields[of]}"), BarColumn(), Moved())
    with Progress(*columns, console=console, transient=True) as progress:
        yield Bar(title, things, progress)
