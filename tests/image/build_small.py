"""Builds layers of a lock of made wheels into a store, as a process of its own that a test can kill.

Usage: python -m tests.image.build_small STORE LOCK INDEX
"""

from __future__ import annotations

import sys
from concurrent.futures import as_completed
from pathlib import Path

from gpuyard.image.workers import pool
from gpuyard.indexes import Settings
from gpuyard.layers import cached
from gpuyard.layers.model import Layer, Target
from gpuyard.layers.plan import groups
from gpuyard.packages.fetcher import Fetcher, fetching
from gpuyard.packages.locked import read
from gpuyard.store.store import Store

TARGET = Target("3.13", 1_700_000_000)


def build(store: Store, lock: Path, index: str) -> list[Layer]:
    """Fetches the wheels of a lock and makes their layers, without byte code."""
    fetcher = Fetcher(store, TARGET.python, settings=Settings(indexes=(index,)))
    with pool(2) as executor, fetching(fetcher, read(lock)) as futures:
        wheels = [done.result() for done in as_completed(futures.values())]
        results = [executor.submit(cached.ensure_wheels, store, group, TARGET, None, None) for group in groups(wheels)]
        return [result.result() for result in results]


if __name__ == "__main__":
    folder, lock, index = sys.argv[1:]
    for layer in build(Store(Path(folder)), Path(lock), index):
        print(layer.digest)
