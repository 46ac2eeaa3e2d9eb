"""The container's limits of memory and processors, as its control group states them."""

from __future__ import annotations

import math
import os
from pathlib import Path

from ..log import Log

CGROUP = Path("/sys/fs/cgroup")
_LIMITS = ("memory.max", "memory/memory.limit_in_bytes")
_UNLIMITED = 2**60


def memory_limit(root: Path = CGROUP) -> int | None:
    """The limit in bytes, or None where there is none."""
    for name in _LIMITS:
        try:
            text = (root / name).read_text("ascii").strip()
        except OSError:
            continue
        return int(text) if text.isdigit() and int(text) < _UNLIMITED else None
    return None


def _quota(root: Path) -> tuple[int, int] | None:
    """Processor time allowed, and the period it is counted in; both versions of control groups."""
    try:
        if (root / "cpu.max").exists():
            quota, period = (root / "cpu.max").read_text("ascii").split()
        else:
            quota = (root / "cpu" / "cpu.cfs_quota_us").read_text("ascii").strip()
            period = (root / "cpu" / "cpu.cfs_period_us").read_text("ascii").strip()
        return (int(quota), int(period)) if int(quota) > 0 and int(period) > 0 else None
    except (OSError, ValueError):
        return None


def processors(root: Path = CGROUP) -> int | None:
    """The processors that a quota amounts to, where it is less than what the machine shows; else None."""
    if (found := _quota(root)) is None:
        return None
    number = max(1, math.ceil(found[0] / found[1]))
    return number if number < len(os.sched_getaffinity(0)) else None


def tell(number: int, style: str) -> None:
    """The log line about processes that the kernel ended."""
    limit = memory_limit()
    size = f"the container's limit of {limit / 2**30:.1f} GiB" if limit else "the machine's memory"
    Log(style).error(
        f"out of memory: the kernel ended {number} process{'es' if number > 1 else ''} in this container, because"
        f" {size} was reached: a notebook's kernel that 'died' is one; raise --memory or use smaller batches"
    )
