"""The container's user namespace: which numbers exist in it, and what the host calls them."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

PROC = Path("/proc")
_ALL = 2**32 - 1


class Range(NamedTuple):
    """A range of ids: its first one here, its first one on the host, and its length."""

    here: int
    host: int
    length: int

    def holds(self, number: int) -> bool:
        return self.here <= number < self.here + self.length


def ranges(kind: str, proc: Path = PROC) -> tuple[Range, ...]:
    """The numbers of kind ``uid`` or ``gid`` that exist here; all of them where the kernel does not say."""
    try:
        lines = (proc / "self" / f"{kind}_map").read_text("ascii").splitlines()
    except OSError:
        return (Range(0, 0, _ALL),)
    return tuple(Range(*map(int, line.split())) for line in lines)


def exists(kind: str, number: int, proc: Path = PROC) -> bool:
    """Whether a process here can have the id."""
    return any(part.holds(number) for part in ranges(kind, proc))


def on_host(uid: int, proc: Path = PROC) -> int:
    """What the host calls one of our users."""
    found = (part for part in ranges("uid", proc) if part.holds(uid))
    return next((uid - part.here + part.host for part in found), uid)


def is_strange(uid: int, proc: Path = PROC) -> bool:
    """Whether an owner that is seen here may be any user of the host that has no number here."""
    if sum(part.length for part in ranges("uid", proc)) >= _ALL:
        return False
    try:
        return uid == int((proc / "sys" / "kernel" / "overflowuid").read_text("ascii"))
    except (OSError, ValueError):
        return uid == 65534
