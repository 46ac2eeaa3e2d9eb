"""What a container's start would warn about, said on the host before it starts: mounts, disks, memory, certificates."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from gpuyard.engine.mounts import CA
from gpuyard.engine.start import GIB, Start, size
from gpuyard.errors import warn
from gpuyard.indexes import CA_VARIABLES

TRAINER = 1000
LEAST_FREE = 2 * GIB
LEAST_INODES = 10_000
LEAST_MEMORY = 2 * GIB
"""Importing torch with CUDA libraries and one small batch stays below it; less is killed without a word."""


def say(start: Start, info: Mapping[str, Any], local: bool, environ: Mapping[str, str] = os.environ) -> None:
    """Warns of everything that can be seen from here. ``info`` is ``docker info``, empty where no engine answers."""
    _memory(start, int(info.get("MemTotal") or 0))
    _certificates(start, environ)
    if local:
        for folder in unwritable(start, info):
            warn("mount-not-writable", f"{folder} cannot be written by the container's user: {remedy(folder)}")
        _disks(start, info)


def _memory(start: Start, machine: int) -> None:
    shm = size(start.shm)
    if machine and shm > machine:
        text = f"--shm-size {start.shm} is more than the machine's memory of {machine / GIB:.1f} GiB"
        warn("shm-above-memory", f"{text}: a program that fills it is killed")
    limit = size(start.memory, "--memory") if start.memory else 0
    if limit and shm > limit:
        text = f"--shm-size {start.shm} is more than --memory {start.memory}, which shared memory counts against"
        warn("shm-above-memory", f"{text}: a program that fills it is killed")
    if limit and limit < LEAST_MEMORY:
        text = (
            f"--memory {start.memory} is less than the {LEAST_MEMORY >> 30} GiB that importing torch and training need"
        )
        warn("memory-limit-low", f"{text}: python is killed with exit code 137 and no message")


def _certificates(start: Start, environ: Mapping[str, str]) -> None:
    if any(item.startswith("GPUYARD_CA=") for item in start.env):
        return
    for variable in CA_VARIABLES:
        file = environ.get(variable, "")
        # Conda sets the variable to the public certificates that it brings.
        if file and Path(file).is_file() and not file.startswith(environ.get("CONDA_PREFIX") or "\0"):
            text = f"{variable}={file} is set on this host only; if pip in the container needs these certificates"
            warn("ca-not-passed", f"{text}, add: --ca {file}")
            return


def unwritable(start: Start, info: Mapping[str, Any]) -> Iterator[str]:
    """Folders that are mounted for writing and that the container's user may not write to, as far as modes tell."""
    ids = user_ids(start)
    if ids is None or _maps_users(info):
        return
    for source, target, options in bind_mounts(start):
        if target != CA and "ro" not in options and Path(source).is_dir() and not may_write(Path(source), *ids):
            yield source


def bind_mounts(start: Start) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Source, target and options of each mount of a folder or file of the host."""
    for mount in start.volumes:
        source, _, rest = mount.partition(":")
        target, _, options = rest.partition(":")
        if source.startswith("/") and target:
            yield source, target, tuple(options.split(","))


def user_ids(start: Start) -> tuple[int, int] | None:
    """The ids that the container's processes will have; None where they are not known here."""
    given = dict(item.partition("=")[::2] for item in start.env)
    if start.user in (None, ""):
        return TRAINER, TRAINER
    user, _, group = str(start.user).partition(":")
    if user in ("root", "0"):
        uid, gid = given.get("GPUYARD_UID", str(TRAINER)), given.get("GPUYARD_GID") or given.get("GPUYARD_UID", "1000")
        known = "GPUYARD_CHOWN" not in given and uid.isdigit() and gid.isdigit()
        return (int(uid), int(gid)) if known else None
    if not user.isdigit() or not (group or "0").isdigit():
        return None
    return int(user), int(group or 0)


def may_write(folder: Path, uid: int, gid: int) -> bool:
    """Whether the folder's mode lets these ids make files in it."""
    found = folder.stat()
    shift = 6 if found.st_uid == uid else 3 if found.st_gid == gid else 0
    return uid == 0 or found.st_mode >> shift & 0o3 == 0o3


def remedy(folder: str) -> str:
    """The command that makes a folder writable for the container's user, whom most folders should belong to."""
    return f"sudo chown {TRAINER}:{TRAINER} {folder}, or mount it read-only (-v {folder}:/mnt/data:ro)"


def _maps_users(info: Mapping[str, Any]) -> bool:
    options = " ".join(info.get("SecurityOptions") or [])
    return "name=rootless" in options or "name=userns" in options


def _disks(start: Start, info: Mapping[str, Any]) -> None:
    writable = [source for source, target, options in bind_mounts(start) if target != CA and "ro" not in options]
    for place in dict.fromkeys([*writable, str(info.get("DockerRootDir") or "")]):
        if not place or not os.access(place, os.R_OK):
            continue
        free, inodes = shutil.disk_usage(place).free, os.statvfs(place)
        if free < LEAST_FREE:
            warn("disk-nearly-full", f"the disk of {place} has only {free / GIB:.1f} GiB left: writing will soon fail")
        elif inodes.f_files > 0 and inodes.f_favail < LEAST_INODES:
            warn("disk-nearly-full", f"the disk of {place} has only {inodes.f_favail} inodes left for new files")
