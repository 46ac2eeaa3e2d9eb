"""The private folder of a container's start. Few imports: every health check goes through here."""

from __future__ import annotations

import os
from pathlib import Path

from .errors import Refusal

# The image's own folder first: /tmp and /dev/shm are sometimes shared with the host or with other containers.
_BASES = (Path("/run/gpuyard"), Path("/run"), Path("/tmp"), Path("/dev/shm"))


def _folder_name(uid: int | str) -> str:
    """One name per user and container: a mount namespace is a container's own, whatever else it shares."""
    return f"gpuyard-{uid}-{Path('/proc/self/ns/mnt').stat().st_ino}"


def _is_private(folder: Path, uid: int) -> bool:
    try:
        found = folder.lstat()
    except OSError:
        return False
    return found.st_uid == uid and (found.st_mode & 0o170777) == 0o040700


def find_folder() -> Path | None:
    """The private folder that the start of this container made for this user, or None."""
    name = _folder_name(os.getuid())
    return next((base / name for base in _BASES if _is_private(base / name, os.getuid())), None)


def drop_to_owner() -> None:
    """Root becomes the owner of the start's folder: a health check runs as the user that started the container."""
    for folder in (path for base in _BASES for path in sorted(base.glob(_folder_name("*")))):
        number = folder.name.split("-")[1]
        # Anybody may make a folder with such a name: only its owner's number counts.
        if number.isdigit() and number != "0" and _is_private(folder, int(number)):
            group = folder.lstat().st_gid
            os.setgroups([])
            os.setresgid(group, group, group)
            os.setresuid(int(number), int(number), int(number))
            return


def make_folder() -> Path:
    """A folder that only we can enter, for sockets, settings and state of this container's start."""
    if found := find_folder():
        return found
    for base in _BASES:
        folder = base / _folder_name(os.getuid())
        try:
            folder.mkdir(mode=0o700)
        except OSError:
            continue
        return folder
    raise Refusal(
        "no-writable-place",
        f"no place for the services' files: none of {', '.join(map(str, _BASES))} can be written to by uid"
        f" {os.getuid()}: with --read-only add --tmpfs /tmp:exec",
        code=1,
    )
