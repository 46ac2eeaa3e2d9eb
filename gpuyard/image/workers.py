"""Layers in processes of their own, as many as there are processors; they end with the one that asked."""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager


@contextmanager
def pool(workers: int | None = None, fresh: bool = False) -> Iterator[ProcessPoolExecutor]:
    """A pool of processes, with ``fresh`` a new one for each task. What has not begun at the end is dropped."""
    count = workers or os.cpu_count() or 1
    spawn = multiprocessing.get_context("spawn")
    tasks = 1 if fresh else None
    with ProcessPoolExecutor(
        count, spawn, initializer=_end_with, initargs=(os.getpid(),), max_tasks_per_child=tasks
    ) as executor:
        try:
            yield executor
        finally:
            executor.shutdown(wait=True, cancel_futures=True)


def _end_with(parent: int) -> None:
    """Ends this process when its parent is gone, killed perhaps."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
