"""Whether a folder takes data: some kB are really written, since a full disk still opens new files."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path
from typing import Any, Dict

from verify.model import Facts
from verify.probes import system

TRIAL = 256 << 10
"""Bytes that are written and forced to the disk, where quotas and network file systems refuse at last."""
SCARCE_SHARE, SCARCE_BYTES, SCARCE_INODES = 0.05, 10 << 30, 0.01
"""Nearly full: less than both the share and the bytes, or less than that share of inodes."""


def try_folder(path: str) -> Dict[str, Any]:
    """What writing to the folder gives, or to the nearest one above it that exists, and how much is left there."""
    folder = Path(os.path.expanduser(path))  # noqa: PTH111 - Path.expanduser raises for a uid without a name
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return {"folder": str(folder), "error": _write(folder), **_left(folder)}


def _write(folder: Path) -> str:
    """The name of the error, empty where the data arrived."""
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(os.urandom(TRIAL))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        return errno.errorcode.get(error.errno or 0, str(error.errno))
    return ""


def _left(folder: Path) -> Dict[str, int]:
    try:
        found = os.statvfs(folder)
    except OSError:
        return {"free": 0, "total": 0, "inodes_free": 0, "inodes": 0}
    unit = found.f_frsize
    return {
        "free": found.f_bavail * unit,
        "total": found.f_blocks * unit,
        "inodes_free": found.f_favail,
        "inodes": found.f_files,
    }


def fault(facts: Facts) -> str:
    """Why nothing can be written there, empty where it can."""
    error, folder = facts["error"], facts["folder"]
    if error == "ENOSPC" and facts["inodes"] and not facts["inodes_free"]:
        return f"{folder} has no inode left of {facts['inodes']}"
    if error == "ENOSPC":
        return f"{folder} is full: {system.size(facts['free'])} of {system.size(facts['total'])} free"
    if error == "EDQUOT":
        return f"{folder}: the disk quota is used up"
    return f"{folder}: {os.strerror(getattr(errno, error, 0))}" if error else ""


def repair(facts: Facts) -> str:
    """What makes room where a disk or a quota is full, empty for other faults."""
    folder = facts["folder"]
    if facts["error"] == "ENOSPC" and facts["inodes"] and not facts["inodes_free"]:
        return f"remove small files (df -i {folder}), or mount a volume with more inodes there"
    if facts["error"] == "ENOSPC":
        return f"make room (du -xh -d1 {folder} | sort -h), or mount a larger volume there"
    return f"remove files below {folder}, or have its quota raised (quota -s)" if facts["error"] == "EDQUOT" else ""


def scarcity(facts: Facts) -> str:
    """How little is left of a disk that is nearly full, else empty."""
    free, total, inodes = facts["free"], facts["total"], facts["inodes"]
    if total and free < SCARCE_BYTES and free < total * SCARCE_SHARE:
        return f"{facts['folder']} is nearly full: {system.size(free)} of {system.size(total)} free"
    if inodes and facts["inodes_free"] < inodes * SCARCE_INODES:
        return f"{facts['folder']} has few inodes left: {facts['inodes_free']} of {inodes}"
    return ""
