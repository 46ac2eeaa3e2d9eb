"""What a start sets up for any mode: limits, signals, a home that can be written to."""

from __future__ import annotations

import contextlib
import os
import pwd
import resource
import signal
from pathlib import Path
from typing import NamedTuple

from .. import places, settings
from ..errors import Notice, Refusal
from ..folder import make_folder
from . import mounts, namespaces, users

_ROOT_HOME = "/root"
_SCREENS = Path("/run/screen")
_ENOUGH_FILES = 1048576


class User(NamedTuple):
    """Who we are. ``name`` is None where the user has no entry in the system's list."""

    uid: int
    name: str | None
    home: Path

    def describe(self) -> str:
        return f"{self.name} (uid {self.uid})" if self.name else f"uid {self.uid}"


def current_user(env: dict[str, str]) -> User:
    """The user that this process runs as."""
    uid = os.getuid()
    try:
        entry = pwd.getpwuid(uid)
    except KeyError:
        return User(uid, None, Path(env.get("HOME") or "/"))
    return User(uid, entry.pw_name, Path(entry.pw_dir))


def future_user(target: users.Target) -> User:
    """The user that root will become."""
    return User(target.uid, target.name if users.listable(target) else None, users.HOME)


def environment(env: dict[str, str], user: User, dropped: bool = False) -> tuple[dict[str, str], Notice | None]:
    """The environment with a home that can be written to, and what to say where the given one could not.

    ``dropped``: the engine gave root's home, which is not ours any more.
    """
    changed = dict(env)
    if dropped and env.get("HOME") in (None, _ROOT_HOME):
        changed["HOME"] = str(user.home)
    home = Path(changed.get("HOME") or user.home)
    if user.name is None:
        changed.setdefault("USER", f"uid{user.uid}")
        changed.setdefault("LOGNAME", changed["USER"])
    if home != Path("/") and os.access(home, os.W_OK | os.X_OK):
        return changed, None
    none = f"uid {user.uid} has no home folder in this image"
    why = none if home == Path("/") else unwritable(home, user.uid, dropped) or none
    try:
        replacement = make_folder() / "home"
        replacement.mkdir(mode=0o700, exist_ok=True)
    except (Refusal, OSError):
        return changed, Notice("home-unusable", f"{why}; add --tmpfs /tmp:exec for a home")
    changed["HOME"] = str(replacement)
    return changed, Notice("home-unusable", f"{why}; HOME is {replacement}")


def temporary(env: dict[str, str]) -> tuple[dict[str, str], Notice | None]:
    """The environment with a folder for temporary files, and what to say where /tmp can't be used."""
    if env.get("TMPDIR") or os.access("/tmp", os.W_OK | os.X_OK):
        return env, None
    why = "/tmp can't be written to"
    try:
        replacement = make_folder() / "tmp"
        replacement.mkdir(mode=0o700, exist_ok=True)
    except (Refusal, OSError):
        return env, Notice("tmp-unwritable", f"{why}, nor any place beside it: add --tmpfs /tmp:exec")
    found = {**env, "TMPDIR": str(replacement), "TMUX_TMPDIR": str(replacement)}
    said = f"{why}: TMPDIR is {replacement}, where programs can't be built; add --tmpfs /tmp:exec"
    return found, Notice("tmp-unwritable", said)


def screens(env: dict[str, str]) -> dict[str, str]:
    """The environment in which screen finds a folder for its sockets where it can't use or make its own."""
    nearest = next(place for place in (_SCREENS, _SCREENS.parent) if place.exists())
    if env.get("SCREENDIR") or os.access(nearest, os.W_OK | os.X_OK):
        return env
    with contextlib.suppress(Refusal, OSError):
        folder = make_folder() / "screen"
        folder.mkdir(mode=0o700, exist_ok=True)
        return {**env, "SCREENDIR": str(folder)}
    return env


def raise_open_files() -> None:
    """The soft limit of open files becomes the hard one: DataLoader workers need many."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # Programs that close every possible descriptor are very slow if the hard limit is in the billions.
    wanted = max(soft, min(hard, _ENOUGH_FILES) if hard != resource.RLIM_INFINITY else _ENOUGH_FILES)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    except (OSError, ValueError):
        return


def restore_signals() -> None:
    """Undoes Python's own signal settings, so that a command starts with the defaults."""
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)


def _advice(folder: Path, found: os.stat_result, uid: int, rooted: bool) -> str:
    """The option that makes a folder writable."""
    if found.st_uid == uid:
        return f"its mode is {found.st_mode & 0o7777:04o}: chmod u+rwx it"
    if not mounts.is_mounted(folder, mounts.points()):
        return f'mount a folder of yours there, as in -v "$PWD:{folder}"'
    chown = f"chown it to {namespaces.on_host(uid)} on the host"
    if namespaces.is_strange(found.st_uid):
        return f"that is any user of the host outside of this container's user namespace: {chown}, or add --userns host"
    if found.st_uid == 0:
        given = f"-e {settings.CHOWN.name}={folder}"
        return f"{chown}, or add {given if rooted else '--user root ' + given}"
    numbers = f"-e {settings.UID.name}={found.st_uid} -e {settings.GID.name}={found.st_gid}"
    if rooted:
        return f"start with {numbers}"
    return f"start with --user {found.st_uid}:{found.st_gid}, or with --user root {numbers}"


def unwritable(folder: Path, uid: int, rooted: bool) -> str | None:
    """Why a folder can't be written to, whose it is, and what to do; None where it can."""
    try:
        found = folder.stat()
    except OSError as error:
        return f"{folder} can't be used by uid {uid} ({error.strerror})"
    if os.access(folder, os.W_OK | os.X_OK):
        return None
    if os.statvfs(folder).f_flag & os.ST_RDONLY:
        return f"{folder} is read-only: mount a folder or --tmpfs there to save work"
    owner = f"{found.st_uid}:{found.st_gid}"
    return f"{folder} can't be written to by uid {uid}: it belongs to {owner}; {_advice(folder, found, uid, rooted)}"


def mount_faults(user: User, rooted: bool, services: bool) -> list[Notice]:
    """A line for each folder of the user's that can't be written to. Data and models may be read-only."""
    mounted = mounts.points()
    found = []
    for folder in (places.WORKSPACE, Path("/mnt/data"), Path("/mnt/models")):
        needed = folder == places.WORKSPACE and services
        if not needed and (folder not in mounted or os.statvfs(folder).f_flag & os.ST_RDONLY):
            continue
        if fault := unwritable(folder, user.uid, rooted):
            found.append(Notice("folder-unwritable", fault))
    return found
