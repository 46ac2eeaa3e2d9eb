"""Who a container becomes that was started as root: what was asked for, and what stands in its way."""

from __future__ import annotations

import contextlib
import grp
import os
import pwd
import re
from pathlib import Path
from typing import NamedTuple

from ..errors import Refusal
from ..values import flag
from . import mounts, namespaces, nofollow

HOME = Path("/home/trainer")
PASSWD = Path("/etc/passwd")
UID = ("GPUYARD_UID", "NB_UID")
GID = ("GPUYARD_GID", "NB_GID")
NAME = ("GPUYARD_USER", "NB_USER")
CHOWN = "GPUYARD_CHOWN"
# The last number means "no change" to the kernel.
_LARGEST_ID = 2**32 - 2
_USER_NAME = re.compile(r"[a-z_][a-z0-9_-]{0,31}\Z")
_MAY_BE_GIVEN = (Path("/workspace"), Path("/mnt"), HOME)


class Target(NamedTuple):
    """The user to become. ``before`` is the image's own entry; None where the user list is not the image's."""

    uid: int
    gid: int
    name: str
    before: pwd.struct_passwd | None
    give: tuple[Path, ...] = ()


def image_entry() -> pwd.struct_passwd | None:
    """The image's user, whatever it is called by now: its home never moves."""
    return next((entry for entry in pwd.getpwall() if entry.pw_dir == str(HOME)), None)


def _given(env: dict[str, str], names: tuple[str, ...]) -> tuple[str, str] | None:
    """Name and value of the setting; refuses two names that disagree."""
    found = [(name, env[name].strip()) for name in names if env.get(name, "").strip()]
    if len({value for _, value in found}) > 1:
        raise Refusal(f"{' and '.join(f'{name}={value}' for name, value in found)} disagree: give one of them")
    return found[0] if found else None


def _number(env: dict[str, str], names: tuple[str, ...]) -> int | None:
    if (found := _given(env, names)) is None:
        return None
    name, text = found
    if not (text.isascii() and text.isdigit() and int(text) <= _LARGEST_ID):
        raise Refusal(f"{name} is '{text}': expected a number from 0 to {_LARGEST_ID}, as 'id' prints it")
    return int(text)


def _refuse_outside(kind: str, number: int, setting: str) -> None:
    """A user namespace may hold a part of the numbers only."""
    if not namespaces.exists(kind, number):
        last = max(part.here + part.length for part in namespaces.ranges(kind)) - 1
        raise Refusal(
            f"{setting} is {number}, but this container's user namespace has numbers up to {last} only: choose one of"
            " those, or add --userns host"
        )


def _name(env: dict[str, str], before: pwd.struct_passwd | None) -> str:
    own = before.pw_name if before else "trainer"
    if (found := _given(env, NAME)) is None or found[1] == own:
        return own
    setting, name = found
    if not _USER_NAME.match(name):
        raise Refusal(f"{setting} is '{name}': expected lower-case letters, digits, - and _, at most 32")
    users, groups = {entry.pw_name for entry in pwd.getpwall()}, {entry.gr_name for entry in grp.getgrall()}
    if name in users | groups:
        raise Refusal(f"{setting} is '{name}', which is taken in this image: choose another name")
    return name


def _refuse_taken(uid: int, before: pwd.struct_passwd | None) -> None:
    if before is None or uid == before.pw_uid:
        return
    with contextlib.suppress(KeyError):
        holder = pwd.getpwuid(uid)
        raise Refusal(f"uid {uid} is '{holder.pw_name}' in this image: choose another GPUYARD_UID")


def _folders(env: dict[str, str]) -> tuple[Path, ...]:
    """The folders that ``GPUYARD_CHOWN`` names; only the user's own places may be given away."""
    found = []
    for text in filter(None, (part.strip() for part in env.get(CHOWN, "").split(","))):
        folder = Path(os.path.normpath(text))
        if not any(place in (folder, *folder.parents) for place in _MAY_BE_GIVEN) or folder == Path("/mnt"):
            raise Refusal(f"{CHOWN} names '{text}': expected {Path('/workspace')}, or folders below it, /mnt or {HOME}")
        if link := nofollow.first_link(folder):
            raise Refusal("chown-link", f"{CHOWN} names '{text}', but {link} is a link: name the folder itself")
        if not folder.is_dir():
            raise Refusal(f"{CHOWN} names '{text}', which is no folder: mount it, or leave it out")
        found.append(folder)
    return tuple(found)


def _refuse_without_root(env: dict[str, str], uid: int, gid: int) -> None:
    for names, own in ((UID, uid), (GID, gid)):
        if (wanted := _number(env, names)) is not None and wanted != own:
            raise Refusal(f"{names[0]}={wanted} needs a start as root, but this is uid {uid}: add --user root")
    for name in (*NAME, CHOWN):
        if env.get(name, "").strip() not in ("", "trainer"):
            raise Refusal(f"{name} needs a start as root, but this is uid {uid}: add --user root")


def target(env: dict[str, str], uid: int, gid: int) -> Target | None:
    """The user to become, or None where this process stays who it is. Refuses what must not be; changes nothing."""
    if uid != 0:
        _refuse_without_root(env, uid, gid)
        return None
    allowed = flag(env, "GPUYARD_ALLOW_ROOT")
    wanted, group, folders = _number(env, UID), _number(env, GID), _folders(env)
    if wanted is None and group is None and not folders and _given(env, NAME) is None:
        if allowed:
            return None
        raise Refusal(
            "the container was started as root: leave out --user to be trainer (uid 1000), give -e GPUYARD_UID=UID"
            " to become that user, or say GPUYARD_ALLOW_ROOT=yes"
        )
    before = image_entry()
    chosen = wanted if wanted is not None else before.pw_uid if before else 1000
    if chosen == 0:
        if allowed:
            return None
        raise Refusal("GPUYARD_UID is 0, which is root: choose your own uid ('id -u'), or say GPUYARD_ALLOW_ROOT=yes")
    _refuse_taken(chosen, before)
    chosen_group = group if group is not None else before.pw_gid if before else chosen
    _refuse_outside("uid", chosen, UID[0])
    _refuse_outside("gid", chosen_group, GID[0])
    return Target(chosen, chosen_group, _name(env, before), before, folders)


def listable(found: Target) -> bool:
    """Whether the system's list of users can say who we are: a list that was mounted is not ours to change."""
    if found.before is None or PASSWD in mounts.points() or not os.access(PASSWD, os.W_OK):
        return found.before is not None and (found.uid, found.name) == (found.before.pw_uid, found.before.pw_name)
    return True
