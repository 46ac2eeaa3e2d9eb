"""Gives files to the user that root becomes, and gives up root for good."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import grp
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from ..errors import Notice, Refusal
from ..ssh import sessions
from . import mounts, names, nofollow
from .users import HOME, PASSWD, Target, listable

GROUP = Path("/etc/group")
# Folders of the image that belong to its user. Of the environment only the folders themselves, so that
# new packages can be installed: giving away each file would copy gigabytes.
_OURS = (Path("/workspace"), Path("/mnt/data"), Path("/mnt/models"), Path("/var/lib/gpuyard"))
_ENVIRONMENT = Path("/opt/venv")
_PR_SET_NO_NEW_PRIVS = 38
_PR_CAPBSET_DROP = 24
_LAST_CAPABILITY = 63


def _switch(uid: int, gid: int, groups: list[int], saved: int) -> None:
    os.setgroups(groups)
    os.setresgid(gid, gid, saved if saved == 0 else gid)
    os.setresuid(uid, uid, saved if saved == 0 else uid)


def _kept_groups() -> list[int]:
    """The groups that --group-add gave; root's own is not passed on."""
    return [number for number in os.getgroups() if number != 0]


@contextlib.contextmanager
def acting_as(target: Target | None) -> Iterator[None]:
    """A context in which this process has the rights of the target."""
    if target is None:
        yield
        return
    groups = os.getgroups()
    try:
        _switch(target.uid, target.gid, _kept_groups(), saved=0)
    except PermissionError:
        raise Refusal(
            "capabilities-missing",
            f"root can't become uid {target.uid} here: add --cap-add SETUID --cap-add SETGID, or leave root"
            f" out with --user {target.uid}:{target.gid}",
        ) from None
    try:
        yield
    finally:
        os.setresuid(0, 0, 0)
        os.setresgid(0, 0, 0)
        os.setgroups(groups)


def edited(text: str, old: str, new: str, numbers: dict[int, int]) -> str:
    """A user or group list in which one entry has another name and other numbers (by field)."""
    lines = []
    for line in text.splitlines():
        fields = line.split(":")
        if fields[0] == old:
            fields[0] = new
            for index, number in numbers.items():
                fields[index] = str(number)
        lines.append(":".join(fields))
    return "\n".join(lines) + "\n"


def _replace(path: Path, text: str) -> None:
    """The whole file at once: nobody ever sees half a list of users."""
    with nofollow.opened(path.parent, folder=True) as folder:
        nofollow.write(folder, path.name, text)


def list_user(target: Target) -> None:
    """Changes the image's user in /etc/passwd and /etc/group into the target."""
    assert target.before is not None
    old = target.before.pw_name
    _replace(PASSWD, edited(PASSWD.read_text("utf-8"), old, target.name, {2: target.uid, 3: target.gid}))
    if GROUP in mounts.points():
        return
    taken = any(entry.gr_gid == target.gid and entry.gr_name != old for entry in grp.getgrall())
    numbers = {} if taken else {2: target.gid}
    _replace(GROUP, edited(GROUP.read_text("utf-8"), old, target.name, numbers))


def _tree(path: Path, descriptor: int, closed: frozenset[Path]) -> Iterator[tuple[Path, int]]:
    """A folder and what lies in it, each opened, without a step into a mount or through a link."""
    yield path, descriptor
    if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
        return
    try:
        names = nofollow.names(descriptor)
    except OSError:
        # Root without its usual rights: what it can't see it can't give.
        return
    for name in names:
        if path / name in closed:
            continue
        with contextlib.suppress(OSError), nofollow.opened_below(descriptor, name) as below:
            yield from _tree(path / name, below, closed)


def _environment_folders() -> list[Path]:
    """The folders of the virtual environment that an install adds names to."""
    site = [folder for pattern in ("lib", "lib/python*", "lib/python*/site-packages") for folder in _glob(pattern)]
    return [_ENVIRONMENT, *_glob("bin"), *_glob("share"), *_glob("etc"), *site]


def _glob(pattern: str) -> list[Path]:
    return [folder for folder in sorted(_ENVIRONMENT.glob(pattern)) if folder.is_dir() and not folder.is_symlink()]


def _own(target: Target, home: Path) -> Iterator[tuple[Path, int]]:
    """The image's own files that belong to its user, each opened."""
    if target.before is None:
        return
    closed = mounts.points()
    trees = (home, Path("/var/lib/gpuyard"))
    for top in (*trees, *_OURS, *_environment_folders()):
        if top in closed:
            continue
        with contextlib.suppress(OSError), nofollow.opened(top) as descriptor:
            found = _tree(top, descriptor, closed) if top in trees else iter([(top, descriptor)])
            for path, opened in found:
                if os.fstat(opened).st_uid == target.before.pw_uid:
                    yield path, opened


def to_give(target: Target | None, home: Path = HOME) -> tuple[Path, ...]:
    """The image's own files, and what was named; nothing else on a mount."""
    if target is None:
        return ()
    return tuple(dict.fromkeys((*(path for path, _ in _own(target, home)), *target.give)))


def give(target: Target, home: Path = HOME) -> list[Notice]:
    """Hands them to the target; the warnings."""
    faults: list[Notice] = []
    for path, descriptor in _own(target, home):
        try:
            nofollow.chown(descriptor, target.uid, target.gid)
        except OSError as error:
            # Where the whole image is read-only, the line about the home says so once.
            if error.errno != errno.EROFS and not faults:
                faults.append(_not_given(path, target, error))
    for path in target.give:
        try:
            with nofollow.opened(path, folder=True) as descriptor:
                nofollow.chown(descriptor, target.uid, target.gid)
        except OSError as error:
            faults.append(_not_given(path, target, error))
    return faults


def _not_given(path: Path, target: Target, error: OSError) -> Notice:
    return Notice("folder-not-given", f"{path} can't be given to uid {target.uid} ({error.strerror})")


def _give_streams(target: Target) -> None:
    """Programs open /dev/stdout by name, which only its owner may; the engine did the same for root."""
    for number in (0, 1, 2):
        with contextlib.suppress(OSError):
            kind = os.fstat(number).st_mode
            if stat.S_ISFIFO(kind) or os.isatty(number):
                os.fchown(number, target.uid, -1)


def drop_root(target: Target) -> None:
    """Switches to the target's ids and gives up every capability for good. Raises Refusal where that fails."""
    _give_streams(target)
    libc = ctypes.CDLL(None, use_errno=True)
    for capability in range(_LAST_CAPABILITY + 1):
        libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)
    _switch(target.uid, target.gid, _kept_groups(), saved=-1)
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        raise Refusal("root-kept", "no_new_privs can't be set: the kernel is too old", code=1)
    with contextlib.suppress(OSError):
        os.setresuid(0, 0, 0)
        raise Refusal("root-kept", "root could not be given up", code=1)


def change_user(target: Target) -> list[Notice]:
    """The whole change from root to the target, its name and its files included; the warnings for the log."""
    warnings = []
    changed = target.before is None or (target.uid, target.gid, target.name) != (
        target.before.pw_uid, target.before.pw_gid, target.before.pw_name,
    )  # fmt: skip
    if changed and listable(target):
        list_user(target)
    elif changed and not (names.possible(target.uid) and names.give(target.uid, target.gid, HOME, sessions.PROGRAM)):
        warnings.append(Notice("user-unnamed", f"{PASSWD} is mounted or read-only: uid {target.uid} has no name here"))
    warnings += give(target)
    drop_root(target)
    return warnings
