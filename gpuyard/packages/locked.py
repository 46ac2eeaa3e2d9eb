"""Requirements of a lock (package, version, hashes of its files), and which of the files fits a Python."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from gpuyard.catalogue.lock import entries
from gpuyard.errors import UserError

if TYPE_CHECKING:
    from unearth.evaluator import TargetPython

GLIBC = 39
"""The C library's minor version that every operating system of the catalogue has at least."""
OLD_NAMES = {17: "manylinux2014", 12: "manylinux2010", 5: "manylinux1"}


@dataclass(frozen=True)
class Locked:
    """One requirement of a lock. The hashes are those of all its files, for every platform."""

    name: str
    version: str
    hashes: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.name}=={self.version}"

    def key(self, python: str) -> str:
        """The store's key for the file that fits that Python."""
        return hashlib.sha256(json.dumps([self.name, self.version, self.hashes, python]).encode()).hexdigest()


def read(path: Path) -> list[Locked]:
    """The requirements of a hash-locked file. Raises UserError if one has no hash."""
    found = []
    for name, version, block in entries(path.read_text()):
        hashes = tuple(sorted(re.findall(r"--hash=sha256:([0-9a-f]{64})", block)))
        if not hashes:
            raise UserError("lock-without-hash", f"{path.name}: {name}=={version} has no hash. Run: gpuyard lock")
        found.append(Locked(name, version, hashes))
    return found


@cache
def target(python: str) -> TargetPython:
    """CPython of that series on x86-64 Linux, as wheels name it."""
    from unearth.evaluator import TargetPython

    major, minor = (int(part) for part in python.split("."))
    return TargetPython(py_ver=(major, minor), platforms=platforms(), impl="cp")


def platforms() -> list[str]:
    """The platform tags that run here, the most specific first."""
    names: list[str] = []
    for minor in range(GLIBC, 4, -1):
        names.append(f"manylinux_2_{minor}_x86_64")
        if minor in OLD_NAMES:
            names.append(f"{OLD_NAMES[minor]}_x86_64")
    return [*names, "linux_x86_64"]


@cache
def _ranks(python: str) -> dict[object, int]:
    return {tag: rank for rank, tag in enumerate(target(python).supported_tags())}


def rank(filename: str, python: str) -> int | None:
    """How well a wheel fits, 0 the best; None if it is for another Python or platform, or not a wheel."""
    try:
        tags = parse_wheel_filename(filename)[3]
    except InvalidWheelFilename:
        return None
    return min((_ranks(python)[tag] for tag in tags if tag in _ranks(python)), default=None)


def best(filenames: Iterable[str], python: str) -> str | None:
    """The wheel that fits best, or None."""
    fitting = [(place, name) for name in filenames if (place := rank(name, python)) is not None]
    return min(fitting)[1] if fitting else None
