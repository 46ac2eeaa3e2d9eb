"""Single values of the environment, checked."""

from __future__ import annotations

import os
from pathlib import Path

from .errors import Refusal
from .user import nofollow

_YES = ("yes", "true", "1")
_NO = ("", "no", "false", "0")


def flag(env: dict[str, str], name: str) -> bool:
    """A yes-or-no variable; unset and empty mean no."""
    value = env.get(name, "").strip().lower()
    if value not in _YES + _NO:
        raise Refusal(f"{name} is '{env[name]}': expected yes or no")
    return value in _YES


def port(env: dict[str, str], name: str, default: int) -> int:
    """A port number from the environment."""
    text = env.get(name, "").strip() or str(default)
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= 65535):
        raise Refusal(f"{name} is '{text}': expected a port number from 1 to 65535")
    return int(text)


def read_file(path: Path) -> bytes:
    """A file's content, read as the user that root will become; raises OSError.

    What only root may read is read as root, but never through a link: a volume's could lead to any file.
    """
    try:
        return path.read_bytes()
    except PermissionError:
        _, effective, saved = os.getresuid()
        if effective == 0 or saved != 0:
            raise
    os.setresuid(-1, 0, -1)
    try:
        return nofollow.read(path)
    finally:
        os.setresuid(-1, effective, -1)
