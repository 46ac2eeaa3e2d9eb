"""A name for a user that the image's list lacks: without one, ssh, git and sshd refuse to work.

glibc's second list of users (libnss-extrausers) lies where any start may write; it knows ids from 500 on only,
so that nothing in it can speak for root or for a service.
"""

from __future__ import annotations

import os
from pathlib import Path

from . import nofollow

PLACE = Path("/run/gpuyard/users")
SWITCH = Path("/etc/nsswitch.conf")
SMALLEST = 500


def possible(uid: int) -> bool:
    """Whether this start can give the user a name."""
    nearest = next(place for place in (PLACE, *PLACE.parents) if place.exists())
    return uid >= SMALLEST and "extrausers" in SWITCH.read_text("utf-8") and os.access(nearest, os.W_OK | os.X_OK)


def name(uid: int) -> str:
    """The name that such a user gets."""
    return f"uid{uid}"


def give(uid: int, gid: int, home: Path, shell: Path) -> bool:
    """Puts the user on the second list; whether it could."""
    lists = {"passwd": f"{name(uid)}:x:{uid}:{gid}::{home}:{shell}\n", "group": f"{name(uid)}:x:{gid}:\n"}
    try:
        PLACE.mkdir(mode=0o755, parents=True, exist_ok=True)
        # Any user may have made something there before, such as a link that leads root elsewhere.
        with nofollow.opened(PLACE, folder=True) as folder:
            for kind, text in lists.items():
                nofollow.write(folder, kind, text)
    except OSError:
        return False
    return True
