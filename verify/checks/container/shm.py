"""Shared memory: how large /dev/shm is and what it is made of."""

from __future__ import annotations

import errno
import os
import tempfile
from functools import partial
from pathlib import Path
from typing import List

from verify import remedies
from verify.model import Check, Claims, Facts, Isolation, Level, Owner, Verdict
from verify.probes import system
from verify.verdicts import failed, passed

SHM = Path("/dev/shm")
SHM_MINIMUM = 1 << 30
SHM_TRIAL = 128 << 20
"""Twice what docker gives by default; allocated for a moment, never touched."""
SHM_FLAG = "docker run --shm-size=8g ... (compose: shm_size; Kubernetes: emptyDir medium: Memory at /dev/shm)"


TOO_SMALL = (
    "with less, DataLoader workers die of a bus error and NCCL of 'unhandled system error' (33 MB a communicator)"
)


def probe_shm_type() -> Facts:
    """Read what is mounted on /dev/shm."""
    mounts = system.mounts(system.read(Path("/proc/self/mountinfo")))
    return {"exists": SHM.is_dir(), "type": mounts.get(str(SHM), "not a mount")}


def probe_shm() -> Facts:
    """Size by statvfs, then a file that posix_fallocate fills: pages are never touched (SIGBUS)."""
    if not SHM.is_dir():
        return {"exists": False}
    stat = os.statvfs(SHM)
    free = stat.f_bavail * stat.f_frsize
    trial = min(SHM_TRIAL, free) or SHM_TRIAL
    return {
        "exists": True,
        "total": stat.f_blocks * stat.f_frsize,
        "free": free,
        "trial": trial,
        "allocated": allocate(SHM, trial),
    }


def allocate(folder: Path, length: int) -> str:
    """Allocate that many bytes in a file without a name; "ok" or the error's name."""
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            os.posix_fallocate(file.fileno(), 0, length)
    except OSError as error:
        return errno.errorcode.get(error.errno or 0, str(error.errno))
    return "ok"


def evaluate_shm(facts: Facts, _claims: Claims) -> Verdict:
    """DataLoader workers hand batches over through /dev/shm; docker's default is 64 MB."""
    expected = f"at least {system.size(SHM_MINIMUM)}, writable; {TOO_SMALL}"
    if not facts["exists"]:
        return failed("there is no /dev/shm", expected, SHM_FLAG, Owner.START)
    total, free = facts["total"], facts["free"]
    text = f"/dev/shm has {system.size(total)}, {system.size(free)} free"
    data = {"total_bytes": total, "free_bytes": free}
    if total < SHM_MINIMUM:
        return failed(text, expected, SHM_FLAG, Owner.START, **data)
    if free < SHM_TRIAL:
        remedy = "something fills it: ls -l /dev/shm, remove what no process uses, or raise --shm-size"
        return failed(text, expected, remedy, Owner.START, **data)
    if facts["allocated"] != "ok":
        trial = system.size(facts["trial"])
        return failed(f"{text}, but {trial} cannot be allocated: {facts['allocated']}", expected, SHM_FLAG, Owner.START)
    return passed(text, expected, **data)


def evaluate_shm_type(facts: Facts, _claims: Claims) -> Verdict:
    """On a disk instead of tmpfs every batch goes through the file system."""
    if not facts["exists"]:
        return failed("there is no /dev/shm", "tmpfs", SHM_FLAG, Owner.START)
    if facts["type"] != "tmpfs":
        return failed(f"/dev/shm is {facts['type']}", "tmpfs", "mount a tmpfs there: " + SHM_FLAG, Owner.START)
    return passed("/dev/shm is tmpfs", "tmpfs")


_check = partial(Check, group="shm", level=Level.CONTAINER, isolation=Isolation.CHILD)

CHECKS: List[Check] = [
    _check(
        id="shm-type",
        title="/dev/shm is memory",
        probe=probe_shm_type,
        evaluate=evaluate_shm_type,
        why="On a disk instead of tmpfs every batch goes through the file system.",
        repairs=(remedies.SHM,),
        quick=True,
    ),
    _check(
        id="shm-size",
        title="Shared memory is large enough",
        probe=probe_shm,
        evaluate=evaluate_shm,
        why=(
            "DataLoader workers hand batches over through /dev/shm, and docker gives 64 MB by default:"
            " 'Bus error' or 'No space left on device'."
        ),
        repairs=(remedies.SHM,),
        quick=True,
    ),
]
