"""The user that a container started as root becomes: what was asked for, and what prevents it."""

from __future__ import annotations

import contextlib
import grp
import os
import pwd
import re
from pathlib import Path
from typing import NamedTuple

from .. import settings
from ..errors import Refusal
from . import mounts, namespaces, nofollow

HOME = Path("/home/trainer")
PASSWD = Path("/etc/passwd")
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


def _refuse_outside(kind: str, number: int, setting: str) -> None:
    """A user namespace may have only some of the ids."""
    if not namespaces.exists(kind, number):
        last = max(part.here + part.length for part in namespaces.ranges(kind)) - 1
        raise Refusal(
            "id-outside-namespace",
            f"{setting} is {number}, but this container's user namespace has numbers up to {last} only: choose one of"
            " those, or add --userns host",
        )


def _name(env: dict[str, str], before: pwd.struct_passwd | None) -> str:
    own = before.pw_name if before else "trainer"
    setting, name = settings.USER.given(env)
    if name in ("", own):
        return own
    if not _USER_NAME.match(name):
        raise Refusal(
            "setting-invalid", f"{setting} is '{name}': expected lower-case letters, digits, - and _, at most 32"
        )
    users, groups = {entry.pw_name for entry in pwd.getpwall()}, {entry.gr_name for entry in grp.getgrall()}
    if name in users | groups:
        raise Refusal("user-taken", f"{setting} is '{name}', which is taken in this image: choose another name")
    return name


def _refuse_taken(setting: str, uid: int, before: pwd.struct_passwd | None) -> None:
    if before is None or uid == before.pw_uid:
        return
    with contextlib.suppress(KeyError):
        holder = pwd.getpwuid(uid)
        raise Refusal("user-taken", f"{setting} is {uid}, which is '{holder.pw_name}' in this image: choose another")


def _folders(env: dict[str, str]) -> tuple[Path, ...]:
    """The folders that ``GPUYARD_CHOWN`` names; only the user's own places may be given away."""
    found = []
    for text in settings.CHOWN.read(env):
        folder = Path(os.path.normpath(text))
        if not any(place in (folder, *folder.parents) for place in _MAY_BE_GIVEN) or folder == Path("/mnt"):
            raise Refusal(
                "chown-place",
                f"GPUYARD_CHOWN names '{text}': expected /workspace, or folders below it, /mnt or {HOME}",
            )
        if link := nofollow.first_link(folder):
            raise Refusal("chown-link", f"GPUYARD_CHOWN names '{text}', but {link} is a link: name the folder itself")
        if not folder.is_dir():
            raise Refusal(
                "chown-place", f"GPUYARD_CHOWN names '{text}', which is not a folder: mount it, or leave it out"
            )
        found.append(folder)
    return tuple(found)


def _refuse_without_root(env: dict[str, str], uid: int, gid: int) -> None:
    for setting, own in ((settings.UID, uid), (settings.GID, gid)):
        if (wanted := setting.read(env)) is not None and wanted != own:
            _refuse_root_needed(f"{setting.given(env)[0]}={wanted}", uid)
    name, value = settings.USER.given(env)
    if value not in ("", "trainer"):
        _refuse_root_needed(f"{name}={value}", uid)
    if settings.CHOWN.read(env):
        _refuse_root_needed(settings.CHOWN.name, uid)


def _refuse_root_needed(setting: str, uid: int) -> None:
    raise Refusal("root-needed", f"{setting} needs a start as root, but this is uid {uid}: add --user root")


def target(env: dict[str, str], uid: int, gid: int) -> Target | None:
    """The user to become, or None if the user stays the same. Raises Refusal; changes nothing."""
    if uid != 0:
        _refuse_without_root(env, uid, gid)
        return None
    allowed = settings.ALLOW_ROOT.read(env)
    wanted, group, folders = settings.UID.read(env), settings.GID.read(env), _folders(env)
    if wanted is None and group is None and not folders and not settings.USER.given(env)[1]:
        if allowed:
            return None
        raise Refusal(
            "root-not-allowed",
            "the container was started as root: leave out --user to be trainer (uid 1000), add -e GPUYARD_UID=UID"
            " to become that user, or -e GPUYARD_ALLOW_ROOT=yes to stay root",
        )
    before = image_entry()
    chosen = wanted if wanted is not None else before.pw_uid if before else 1000
    if chosen == 0:
        if allowed:
            return None
        raise Refusal(
            "root-not-allowed",
            f"{settings.UID.given(env)[0]} is 0, which is root: choose your own uid ('id -u'), or add"
            " -e GPUYARD_ALLOW_ROOT=yes",
        )
    _refuse_taken(settings.UID.given(env)[0], chosen, before)
    chosen_group = group if group is not None else before.pw_gid if before else chosen
    _refuse_outside("uid", chosen, settings.UID.given(env)[0])
    _refuse_outside("gid", chosen_group, settings.GID.given(env)[0])
    return Target(chosen, chosen_group, _name(env, before), before, folders)


def listable(found: Target) -> bool:
    """Whether /etc/passwd can name the target: one that was mounted is not changed."""
    if found.before is None or PASSWD in mounts.points() or not os.access(PASSWD, os.W_OK):
        return found.before is not None and (found.uid, found.name) == (found.before.pw_uid, found.before.pw_name)
    return True
