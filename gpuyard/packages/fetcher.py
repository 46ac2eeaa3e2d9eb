"""From a lock to wheels in the store: what is there is checked, what is missing is fetched."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gpuyard.catalogue.product import Product
from gpuyard.errors import UserError
from gpuyard.indexes import Settings
from gpuyard.packages.locked import Locked, best, read
from gpuyard.store.store import Store, copy_whole

if TYPE_CHECKING:
    # The index client is imported only when a wheel is missing: that takes as long as the rest of a warm build.
    from unearth.fetchers import PyPIClient

    from gpuyard.packages import download

AT_ONCE = 4
"""Downloads at a time: more gain nothing on one mirror, and indexes refuse crowds."""


@dataclass(frozen=True)
class Wheel:
    """A wheel: its identity, and its path in the store, whether it is there or not."""

    name: str
    version: str
    sha: str
    path: Path
    size: int


def nothing(_: int) -> None:
    """No-op callback."""


class Fetcher:
    """Gets wheels for one Python into a store. Offline, it only looks there."""

    def __init__(self, store: Store, python: str, offline: bool = False, settings: Settings | None = None) -> None:
        self.store, self.python, self.offline = store, python, offline
        self._settings = settings
        self._client: PyPIClient | None = None
        self._lock = threading.Lock()

    def _source(self) -> tuple[Settings, PyPIClient]:
        """pip's settings and one client for all downloads, made when the first wheel is missing."""
        from gpuyard.packages import index

        with self._lock:
            self._settings = self._settings or Settings.read()
            self._client = self._client or index.client(self._settings)
            return self._settings, self._client

    def ensure(self, wanted: Locked, tell: download.Tell = nothing) -> Wheel:
        """The wheel of this requirement, in the store and intact. Raises UserError."""
        with self.store.locked(f"wheel-{wanted.name}-{wanted.version}"):
            found = self.stored(wanted)
            if found:
                tell(found.size)
                remember(self.store, wanted, self.python, found)
                return found
            if self.offline:
                raise UserError(
                    "wheel-not-stored",
                    f"{wanted} is not in the store ({self.store.folder}), and --offline forbids "
                    "fetching it. Run gpuyard fetch where there is a network, --export DIR there and --import DIR here",
                )
            return self._fetch(wanted, tell)

    def stored(self, wanted: Locked) -> Wheel | None:
        """The wheel if it is in the store and intact."""
        sha = self._picked(wanted)
        path = self.store.wheel(sha) if sha else None
        if sha and path and self.store.intact(path, sha):
            return Wheel(wanted.name, wanted.version, sha, path, path.stat().st_size)
        return None

    def promised(self, wanted: Locked) -> Wheel | None:
        """The wheel that this requirement stood for last time, if known; the file may be gone."""
        pick = self.store.record("picks", wanted.key(self.python))
        if not pick or pick.get("sha256") not in wanted.hashes or not {"filename", "size"} <= pick.keys():
            return None
        place = self.store.wheel_place(pick["sha256"], pick["filename"])
        return Wheel(wanted.name, wanted.version, pick["sha256"], place, pick["size"])

    def sure(self, wanted: Locked) -> Wheel:
        """The wheel of a requirement that ``ensure`` has already brought here."""
        found = self.promised(wanted) or self.stored(wanted)
        assert found is not None
        return found

    def _picked(self, wanted: Locked) -> str | None:
        """The hash that fits this Python: the one recorded from an index, or (offline) of a file in the store."""
        if promised := self.promised(wanted):
            return promised.sha
        there = {path.name: sha for sha in wanted.hashes if (path := self.store.wheel(sha))}
        name = best(there, self.python)
        return there[name] if name and self.offline else None

    def _fetch(self, wanted: Locked, tell: download.Tell) -> Wheel:
        from gpuyard.packages import download, index

        settings, client = self._source()
        link, sha = index.find(wanted, self.python, settings, client)
        place = self.store.wheel_place(sha, link.filename)
        if not self.store.intact(place, sha):
            download.fetch(link, sha, place, client, tell)
        wheel = Wheel(wanted.name, wanted.version, sha, place, place.stat().st_size)
        remember(self.store, wanted, self.python, wheel)
        return wheel


def remember(store: Store, wanted: Locked, python: str, wheel: Wheel) -> None:
    """Records which file a requirement stands for."""
    pick = {"sha256": wheel.sha, "filename": wheel.path.name, "size": wheel.size}
    store.write_record("picks", wanted.key(python), pick)


@contextmanager
def fetching(
    fetcher: Fetcher, wanted: Iterable[Locked], tell: download.Tell = nothing
) -> Iterator[dict[Locked, Future[Wheel]]]:
    """Fetches several at a time; gives a future for each. What has not begun at the end is dropped."""
    workers = max(AT_ONCE, min(os.cpu_count() or 1, 8)) if fetcher.offline else AT_ONCE
    with ThreadPoolExecutor(workers, thread_name_prefix="fetch") as pool:
        try:
            yield {locked: pool.submit(fetcher.ensure, locked, tell) for locked in wanted}
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def requirements(product: Product) -> list[Locked]:
    """What all the locks of a product ask for."""
    return [locked for layer in product.layers for locked in read(product.locks.path(layer))]


def fetch_all(fetcher: Fetcher, wanted: list[Locked]) -> list[Wheel]:
    """Every wheel, several at a time, with progress. Raises UserError that names each that is missing."""
    from gpuyard.progress import meter

    with meter("wheels", len(wanted)) as shown, fetching(fetcher, wanted, shown.moved) as futures:
        faults: list[str] = []
        for future in as_completed(futures.values()):
            shown.finished()
            if fault := _fault(future):
                faults.append(fault)
    if faults:
        raise UserError(
            "wheels-missing", f"{len(faults)} of {len(wanted)} wheels are missing:\n  " + "\n  ".join(sorted(faults))
        )
    return [future.result() for future in futures.values()]


def _fault(future: Future[Wheel]) -> str:
    error = future.exception()
    if isinstance(error, UserError):
        return str(error)
    if error:
        raise error
    return ""


def carry(wanted: Iterable[Locked], python: str, source: Store, target: Store) -> int:
    """Copies these wheels, and which file is whose, from store to store. Returns how many were copied.

    A wheel that is missing or damaged in ``source`` raises UserError; one that is there already stays.
    """
    copied = 0
    for locked in wanted:
        there = Fetcher(target, python, offline=True).stored(locked)
        wheel = there or Fetcher(source, python, offline=True).ensure(locked)
        if not there:
            copy_whole(wheel.path, target.wheel_place(wheel.sha, wheel.path.name))
            copied += 1
        remember(target, locked, python, wheel)
    return copied
