"""Which wheels share a layer: decided by the wheels alone, so that lines and images share blobs."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from gpuyard.packages.fetcher import Wheel

BIG = 20_000_000
"""From this size in bytes on, a wheel has a layer of its own."""
SHELVES = 16
"""The small wheels of a lock are spread over this many layers by name: a change affects one layer only."""


@dataclass(frozen=True)
class Group:
    """The wheels of one layer, sorted by name."""

    wheels: tuple[Wheel, ...]
    number: int | None = None
    """Its shelf, or None for a big wheel alone."""

    @property
    def name(self) -> str:
        """The one big wheel; empty for a shelf."""
        return f"{self.wheels[0].name}=={self.wheels[0].version}" if self.number is None else ""


def is_big(wheel: Wheel) -> bool:
    """Whether it has a layer of its own."""
    return wheel.size >= BIG


def groups(wheels: Iterable[Wheel]) -> list[Group]:
    """The layers of one lock, from the bottom up: big wheels by name, then the shelves."""
    big: list[Group] = []
    shelves: dict[int, list[Wheel]] = defaultdict(list)
    for wheel in sorted(wheels, key=lambda wheel: wheel.name):
        if is_big(wheel):
            big.append(Group((wheel,)))
        else:
            shelves[shelf(wheel.name)].append(wheel)
    return [*big, *(Group(tuple(shelves[number]), number) for number in sorted(shelves))]


def shelf(name: str) -> int:
    """The shelf of a package, by its name."""
    return int(hashlib.sha256(name.encode()).hexdigest(), 16) % SHELVES
