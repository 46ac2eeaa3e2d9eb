"""What a start sets up for any mode: limits, signals, a home that can be written to."""

from __future__ import annotations

import os
import pwd
import resource
import signal
from dataclasses import dataclass
from pathlib import Path

from .errors import Refusal
from .folder import make_folder

_ENOUGH_FILES = 1048576


@dataclass(frozen=True)
class User:
    """Who we are. ``name`` is None where the user has no entry in the system's list."""

    uid: int
    name: str | None
    home: Path


def current_user(env: dict[str, str]) -> User:
    """The user that this process runs as."""
    uid = os.getuid()
    try:
        entry = pwd.getpwuid(uid)
    except KeyError:
        return User(uid, None, Path(env.get("HOME") or "/"))
    return User(uid, entry.pw_name, Path(entry.pw_dir))


def environment(env: dict[str, str], user: User) -> tuple[dict[str, str], str | None]:
    """The environment with a home that can be written to, and what to say where the given one could not."""
    home = Path(env.get("HOME") or user.home)
    changed = dict(env)
    if user.name is None:
        changed.setdefault("USER", f"uid{user.uid}")
        changed.setdefault("LOGNAME", changed["USER"])
    if home != Path("/") and os.access(home, os.W_OK | os.X_OK):
        return changed, None
    try:
        replacement = make_folder() / "home"
        replacement.mkdir(mode=0o700, exist_ok=True)
    except (Refusal, OSError):
        return changed, f"the home folder {home} can't be written to by uid {user.uid}: add --tmpfs /tmp"
    changed["HOME"] = str(replacement)
    return changed, f"the home folder {home} can't be written to by uid {user.uid}: HOME is {replacement}"


def raise_open_files() -> None:
    """The soft limit of open files becomes the hard one: DataLoader workers need many."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # Programs that close every possible descriptor crawl where the hard limit is in the thousand millions.
    wanted = max(soft, min(hard, _ENOUGH_FILES) if hard != resource.RLIM_INFINITY else _ENOUGH_FILES)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    except (OSError, ValueError):
        return


def restore_signals() -> None:
    """Undoes what Python sets for itself, so that a command starts with the signals of a fresh process."""
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)


def workspace_fault(folder: Path, uid: int) -> str | None:
    """Why the working folder can't be written to, and what to do; None where it can."""
    try:
        found = folder.stat()
    except OSError as error:
        return f"{folder} can't be used ({error.strerror})"
    if os.access(folder, os.W_OK | os.X_OK):
        return None
    if os.statvfs(folder).f_flag & os.ST_RDONLY:
        return f"{folder} is read-only: mount a folder or --tmpfs there to save work"
    owner = f"{found.st_uid}:{found.st_gid}"
    advice = f"chown it to {uid} on the host" if found.st_uid == 0 else f"start with --user {owner}"
    return f"{folder} can't be written to by uid {uid}: it belongs to {owner}; {advice}"
