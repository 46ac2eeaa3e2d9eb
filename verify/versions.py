"""Versions compared by component, so that 9.10 is newer than 9.9 and 9.0 equals 9.0.0."""

from __future__ import annotations

import re
from typing import Tuple


def release(version: str) -> Tuple[int, ...]:
    """The numbers before any local part or suffix: ``9.8.7+cu12`` is (9, 8, 7); empty when there are none."""
    match = re.match(r"\s*v?(\d+(?:\.\d+)*)", version)
    return tuple(int(part) for part in match.group(1).split(".")) if match else ()


def local(version: str) -> str:
    """The part after ``+``, which names the build, such as ``cu12``; empty when there is none."""
    return version.partition("+")[2].strip().lower()


def _padded(first: str, second: str) -> Tuple[Tuple[int, ...], Tuple[int, ...]]:
    a, b = release(first), release(second)
    width = max(len(a), len(b))
    return a + (0,) * (width - len(a)), b + (0,) * (width - len(b))


def at_least(found: str, floor: str) -> bool:
    """Whether ``found`` is the version ``floor`` or a newer one."""
    a, b = _padded(found, floor)
    return a >= b


def same(found: str, claimed: str) -> bool:
    """Whether both name one version; local parts are compared where both have one."""
    a, b = _padded(found, claimed)
    if a != b or _suffix(found) != _suffix(claimed):
        return False
    return not (local(found) and local(claimed)) or local(found) == local(claimed)


def _suffix(version: str) -> str:
    public = version.partition("+")[0].strip().lower()
    return re.sub(r"^v?\d+(?:\.\d+)*", "", public)


def starts_with(found: str, claimed: str) -> bool:
    """Whether ``found`` belongs to the series ``claimed``: 3.99.5 to 3.99, but 3.990 does not."""
    series = release(claimed)
    return bool(series) and release(found)[: len(series)] == series


def cuda_level(number: int) -> str:
    """The CUDA level in ``cuDriverGetVersion``'s number: 99080 is 99.8."""
    return f"{number // 1000}.{number % 1000 // 10}"


def major(version: str) -> int:
    """The first number of a version, 0 when there is none."""
    return (release(version) or (0,))[0]
