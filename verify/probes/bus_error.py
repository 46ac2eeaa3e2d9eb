"""What a SIGBUS can come from: a full /dev/shm, or a mapped file whose disk or server is gone."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Dict, List, Mapping

from verify.probes import system

SHM = "/dev/shm"
ENOUGH = 1 << 30
LEFT = 64 << 20
REMOTE = ("nfs", "cifs", "smb", "fuse", "9p", "ceph", "lustre", "gpfs", "beegfs", "glusterfs", "virtiofs")
FULL = 1 << 20


def bus_facts() -> Dict[str, Any]:
    """Size and room of /dev/shm, and the file systems of this process's mapped files with their room."""
    return {"shm": _room(SHM), "mapped": mapped_file_systems(system.read(Path("/proc/self/maps")))}


def _room(path: str) -> Dict[str, int]:
    try:
        space = os.statvfs(path)
    except OSError:
        return {"total": 0, "free": 0}
    return {"total": space.f_blocks * space.f_frsize, "free": space.f_bavail * space.f_frsize}


def mapped_file_systems(maps: str, mountinfo: str = "") -> List[Dict[str, Any]]:
    """The file systems that files in the text of /proc/self/maps lie on, except /dev/shm."""
    types = system.mounts(mountinfo or system.read(Path("/proc/self/mountinfo")))
    files = {line.split(None, 5)[5] for line in maps.splitlines() if len(line.split(None, 5)) == 6}
    points = {system.mounted_at(file, set(types)) or "/" for file in files if file.startswith("/")} - {SHM}
    return [{"at": point, "type": types.get(point, ""), "free": _room(point)["free"]} for point in sorted(points)]


def space_advice(text: str, facts: Mapping[str, Any]) -> str:
    """What to do about a SIGBUS or a "No space left": the text may name the place, else what was measured decides."""
    if "/dev/shm" in text or "shared memory" in text:
        return f"/dev/shm is too small ({_shm(facts)}): docker run --shm-size=8g ..."
    tight = facts["shm"]["total"] < ENOUGH or facts["shm"]["free"] < LEFT
    if "SIGBUS" in text or tight:
        return bus_advice(facts)
    return f"a disk is full, not /dev/shm ({_shm(facts)}): df -h shows which; TMPDIR takes another for temporary files"


def _shm(facts: Mapping[str, Any]) -> str:
    return f"it has {system.size(facts['shm']['total'])}, {system.size(facts['shm']['free'])} free"


def bus_advice(facts: Mapping[str, Any]) -> str:
    """The likeliest cause by what was measured, and what to do about it."""
    shm, mapped = facts["shm"], facts["mapped"]
    room = _shm(facts)
    if shm["total"] < ENOUGH:
        return f"/dev/shm is too small ({room}): docker run --shm-size=8g ..."
    if shm["free"] < LEFT:
        return f"/dev/shm is full ({room}): remove what no process uses, or raise --shm-size"
    full = [place for place in mapped if place["free"] < FULL and place["type"] in ("tmpfs", "ext4", "xfs", "overlay")]
    if full:
        return f"not /dev/shm ({room}): {full[0]['at']} ({full[0]['type']}), where mapped files lie, is full: make room"
    far = [place for place in mapped if place["type"].startswith(REMOTE)]
    if far:
        where = f"{far[0]['at']} ({far[0]['type']})"
        return f"not /dev/shm ({room}): a file mapped from {where} was cut or its server is gone; copy it to a disk"
    return f"not /dev/shm ({room}): a mapped file was cut while in use, or memory is broken; look at dmesg on the host"
