"""The container's limits of memory and processors, as its control group states them."""

from __future__ import annotations

import math
import os
from pathlib import Path

from ..errors import Notice
from ..log import Log

CGROUP = Path("/sys/fs/cgroup")
SHM = Path("/dev/shm")
# What verify's check of shared memory asks for, and what importing torch and one CUDA context take.
_SHM_ENOUGH = 2**30
_MEMORY_ENOUGH = 2 * 2**30
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


def small(root: Path = CGROUP, shm: Path = SHM) -> list[Notice]:
    """A warning for each limit that is below what training needs."""
    found = []
    try:
        info = os.statvfs(shm)
        size = info.f_blocks * info.f_frsize
    except OSError:
        size = 0
    if size < _SHM_ENOUGH:
        said = f"{shm} has {size >> 20} MB, too little for DataLoader workers and NCCL: add --shm-size=8g"
        found.append(Notice("shm-small", said))
    limit = memory_limit(root)
    if limit is not None and limit < _MEMORY_ENOUGH:
        said = f"memory is limited to {limit >> 20} MB; torch and a GPU's context take about 2048 MB: raise --memory"
        found.append(Notice("memory-small", said))
    return found


def log_kills(number: int, style: str) -> None:
    """Logs that the kernel ended processes because memory ran out."""
    limit = memory_limit()
    size = f"the container's limit of {limit / 2**30:.1f} GiB" if limit else "the machine's memory"
    Log(style).error(
        "out-of-memory",
        f"out of memory: the kernel ended {number} process{'es' if number > 1 else ''} in this container, because"
        f" {size} was reached: a notebook's kernel that 'died' is one; raise --memory or use smaller batches",
    )
