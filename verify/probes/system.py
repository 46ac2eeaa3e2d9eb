"""What the kernel reports about this container: mounts, cgroup limits (v1 and v2), processors."""

from __future__ import annotations

import ctypes
import errno
import math
import os
import platform
import re
from pathlib import Path
from typing import Dict, Iterator, List, Optional, Set

CGROUP = Path("/sys/fs/cgroup")
UNLIMITED_BYTES = 1 << 60
"""cgroup v1 writes 'no limit' as a huge number close to 2**63."""


def read(path: Path) -> str:
    """The file's text, empty when it cannot be read."""
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return ""


def mounts(mountinfo: str) -> Dict[str, str]:
    """Mount point to file system type, from the text of /proc/self/mountinfo; the last mount wins."""
    found = {}
    for line in mountinfo.splitlines():
        left, separator, right = line.partition(" - ")
        if separator and len(left.split()) > 4 and right:
            found[_unescaped(left.split()[4])] = right.split()[0]
    return found


def _unescaped(text: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match.group(1), 8)), text)


def mounted_at(path: str, points: Set[str]) -> str:
    """The mount point that ``path`` lies on, other than the root; empty when it is a file of the image."""
    current = Path(path)
    for candidate in [current, *current.parents]:
        if str(candidate) != "/" and str(candidate) in points:
            return str(candidate)
    return ""


def cpu_quota(root: Path = CGROUP, own: str = "/proc/self/cgroup") -> Optional[float]:
    """Processors that the cgroup grants, the least on the way up; None without a limit."""
    grants = [_cpu_v2(folder) for folder in folders_of(root, own, "")]
    grants += [_cpu_v1(folder) for folder in folders_of(root, own, "cpu")]
    return min((grant for grant in grants if grant is not None), default=None)


def _cpu_v2(folder: Path) -> Optional[float]:
    parts = read(folder / "cpu.max").split()
    return int(parts[0]) / int(parts[1]) if len(parts) == 2 and parts[0] != "max" else None


def _cpu_v1(folder: Path) -> Optional[float]:
    quota, period = read(folder / "cpu.cfs_quota_us"), read(folder / "cpu.cfs_period_us")
    if not quota or not period or int(quota) <= 0 or int(period) <= 0:
        return None
    return int(quota) / int(period)


def memory_limit(root: Path = CGROUP, own: str = "/proc/self/cgroup") -> Optional[int]:
    """Bytes that the cgroup grants, the least on the way up; None without a limit."""
    texts = [read(folder / "memory.max") for folder in folders_of(root, own, "")]
    texts += [read(folder / "memory.limit_in_bytes") for folder in folders_of(root, own, "memory")]
    limits = [int(text) for text in texts if text.isdigit()]
    return min((limit for limit in limits if limit < UNLIMITED_BYTES), default=None)


def folders_of(root: Path, own: str, controller: str) -> List[Path]:
    """Folders that may hold this process's limits: its own cgroup and all above it.

    With a cgroup namespace (the default of v2) or v1's bind mounts, the container sees its own
    group as the root, whatever /proc/self/cgroup says.
    """
    base = root / controller if controller else root
    paths = [base, *(base / path.lstrip("/") for path in _own_paths(own, controller))]
    folders: List[Path] = []
    for path in paths:
        for folder in (path, *path.parents):
            if folder == base.parent or folder in folders:
                break
            folders.append(folder)
    return folders


def _own_paths(own: str, controller: str) -> Iterator[str]:
    for line in read(Path(own)).splitlines():
        parts = line.split(":", 2)
        if len(parts) == 3 and ((controller in parts[1].split(",")) if controller else not parts[1]):
            yield parts[2]


def effective_cpus() -> int:
    """Processors this process can really use: its affinity, cut by the cgroup's quota."""
    affinity = len(os.sched_getaffinity(0))
    quota = cpu_quota()
    return affinity if quota is None else max(1, min(affinity, math.ceil(quota)))


def memory_total() -> int:
    """Bytes of memory of the machine, 0 when the kernel does not say."""
    match = re.search(r"^MemTotal:\s+(\d+) kB", read(Path("/proc/meminfo")), re.M)
    return int(match.group(1)) * 1024 if match else 0


def effective_memory() -> int:
    """Bytes this process may use: the machine's, cut by the cgroup's limit."""
    limits = [value for value in (memory_total(), memory_limit()) if value]
    return min(limits, default=0)


def numa_refused() -> bool:
    """Whether the container forbids NUMA calls, as Docker's seccomp profile does without SYS_NICE."""
    number = {"x86_64": 239, "aarch64": 236}.get(platform.machine())
    if number is None:
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    return bool(libc.syscall(number, None, None, 0, None, 0) == -1 and ctypes.get_errno() == errno.EPERM)


def in_container() -> bool:
    """Whether this looks like a container: a runtime's mark file, or an image's claims."""
    marks = ("/.dockerenv", "/run/.containerenv", "/etc/gpuyard/image.json")
    return any(Path(mark).exists() for mark in marks)


def size(number: int) -> str:
    """Bytes as text: 64 MB for 67108864 (binary units, written as docker's flags take them)."""
    value, units = float(number), ["B", "kB", "MB", "GB", "TB"]
    while value >= 1024 and len(units) > 1:
        value /= 1024
        units.pop(0)
    unit = units[0]
    return f"{value:.0f} {unit}" if value == int(value) or value >= 100 else f"{value:.1f} {unit}"
