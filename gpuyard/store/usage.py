"""What gpuyard keeps on disk beside images: the store's wheels and layers, by line and by age."""

from __future__ import annotations

import re
import shutil
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from gpuyard import paths
from gpuyard.catalogue.table import Catalogue
from gpuyard.errors import UserError
from gpuyard.store.store import Store

SHARED = "several lines"
NOBODY = "no line"


@dataclass(frozen=True)
class Thing:
    """Something that gpuyard made: its name, its size in bytes if known, and how to remove it.

    ``line`` is the line that uses it, or SHARED, or NOBODY; ``age`` the seconds since it was last written, if known.
    """

    name: str
    size: int | None
    remove: Callable[[], object]
    kind: str = "generated files"
    line: str = NOBODY
    age: float | None = None


@dataclass(frozen=True)
class Retention:
    """Which things to remove: those of a line, those older than so many days, or all."""

    line: str | None = None
    days: float | None = None

    def takes(self, line: str, age: float | None) -> bool:
        """Whether a thing of that line and age is to be removed. A thing of unknown age counts as new."""
        if self.line is not None and line != self.line:
            return False
        return self.days is None or (age or 0) > self.days * 86400


def stored(store: Store, catalogue: Catalogue, retention: Retention) -> Iterator[Thing]:
    """The store's content that the retention selects, one thing per kind and line."""
    owners = wheel_owners(catalogue)
    wheels = ((path, owners.get(path.parent.name, NOBODY)) for path in (store.folder / "wheels").glob("*/*"))
    yield from _bundled("wheels", wheels, retention)
    users = blob_owners(store)
    blobs = ((path, users.get(path.name, NOBODY)) for path in (store.folder / "blobs").glob("*"))
    yield from _bundled("layers", blobs, retention)
    rest = [path for pattern in ("rootfs-*/*", "uv-*/*", "parts/*") for path in store.folder.glob(pattern)]
    yield from _bundled("root file systems and tools", ((path, SHARED) for path in rest), retention)


def _bundled(kind: str, files: Iterable[tuple[Path, str]], retention: Retention) -> Iterator[Thing]:
    now, chosen = time.time(), defaultdict[str, list[tuple[Path, int, float]]](list)
    for path, line in files:
        found = path.lstat()
        if retention.takes(line, now - found.st_mtime):
            chosen[line].append((path, found.st_size, now - found.st_mtime))
    for line, parts in sorted(chosen.items()):
        size, age = sum(size for _, size, _ in parts), min(age for *_, age in parts)
        name = f"{len(parts)} {kind} of {line}"
        yield Thing(name, size, partial(_unlink, [path for path, *_ in parts]), f"store: {kind}", line, age)


def _unlink(files: Iterable[Path]) -> None:
    for path in files:
        path.unlink(missing_ok=True)


def wheel_owners(catalogue: Catalogue, folder: Path = paths.LOCKS) -> dict[str, str]:
    """The line that locks a wheel, by its hash; SHARED where several do."""
    owners: dict[str, str] = {}
    for path in sorted(folder.glob("*.txt")):
        line = path.name.partition("-py")[0]
        if line in catalogue.line:
            for sha in re.findall(r"--hash=sha256:([0-9a-f]{64})", path.read_text()):
                owners[sha] = line if owners.get(sha, line) == line else SHARED
    return owners


def blob_owners(store: Store) -> dict[str, str]:
    """The line that uses a layer, by its hash, from the records of images built here; base layers are SHARED."""
    owners: dict[str, str] = {}
    for record in records(store, "images"):
        if found := re.search(r":v?(\d+\.\d+)", str(record["name"])):
            for digest in record["layers"]:
                sha = str(digest).removeprefix("sha256:")
                owners[sha] = found[1] if owners.get(sha, found[1]) == found[1] else SHARED
    for record in records(store, "bases"):
        owners.update({str(layer["digest"]).removeprefix("sha256:"): SHARED for layer in record["layers"]})
    return owners


def records(store: Store, kind: str) -> Iterator[dict[str, Any]]:
    """Every readable record of a kind."""
    for path in sorted((store.folder / kind).glob("*.json")):
        if found := store.record(kind, path.stem):
            yield found


def require(needs: Mapping[Path, float]) -> None:
    """Raises UserError, with the figures, unless each disk has room for what its folders need, in GB."""
    disks: dict[int, list[tuple[Path, float]]] = defaultdict(list)
    for folder, gigabytes in needs.items():
        place = next(path for path in (folder, *folder.parents) if path.exists())
        disks[place.stat().st_dev].append((place, gigabytes))
    for folders in disks.values():
        free, needed = shutil.disk_usage(folders[0][0]).free / 1e9, sum(gigabytes for _, gigabytes in folders)
        if free < needed:
            names = " and ".join(dict.fromkeys(str(folder) for folder, _ in folders))
            raise UserError(
                "disk-space",
                f"the disk of {names} has {free:.1f} GB free and this build needs {needed:.0f} GB. "
                "Free some: gpuyard clean (--dry-run lists what it would remove), docker system df",
            )
