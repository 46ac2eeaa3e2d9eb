"""Parsers of single values: each gets the variable's name and its text, and raises Refusal for a bad one."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from .errors import Refusal
from .user import nofollow

_YES = ("yes", "true", "1")
_NO = ("", "no", "false", "0")
# The last number means "no change" to the kernel.
_LARGEST_ID = 2**32 - 2


def text(_: str, value: str) -> str:
    return value


def flag(name: str, value: str) -> bool:
    """Yes or no; empty means no."""
    if value.lower() not in _YES + _NO:
        raise Refusal("setting-invalid", f"{name} is '{value}': expected yes or no")
    return value.lower() in _YES


def port(name: str, value: str) -> int:
    if not (value.isascii() and value.isdigit() and 1 <= int(value) <= 65535):
        raise Refusal("setting-invalid", f"{name} is '{value}': expected a port number from 1 to 65535")
    return int(value)


def user_number(name: str, value: str) -> int | None:
    """A uid or gid; None if empty."""
    if not value:
        return None
    if not (value.isascii() and value.isdigit() and int(value) <= _LARGEST_ID):
        raise Refusal(
            "setting-invalid", f"{name} is '{value}': expected a number from 0 to {_LARGEST_ID}, as 'id' prints it"
        )
    return int(value)


def items(_: str, value: str) -> tuple[str, ...]:
    """The parts between commas, without blanks and empty ones."""
    return tuple(part.strip() for part in value.split(",") if part.strip())


def one_of(*choices: str) -> Callable[[str, str], str]:
    """A parser that takes one of these words."""

    def parse(name: str, value: str) -> str:
        if value not in choices:
            raise Refusal("setting-invalid", f"{name} is '{value}': expected one of {', '.join(choices)}")
        return value

    return parse


def file(_: str, value: str) -> Path | None:
    """A file that the container can see, or None; whoever uses it checks that it can be read."""
    return Path(value) if value else None


def folder(example: str) -> Callable[[str, str], Path | None]:
    """A parser of the full path of a folder, which may not exist yet; None if empty."""

    def parse(name: str, value: str) -> Path | None:
        if not value:
            return None
        found = Path(value)
        if not found.is_absolute() or ".." in found.parts or any(char in value for char in ":\n"):
            raise Refusal(
                "setting-invalid", f"{name} is '{value}': expected the full path of a folder, such as {example}"
            )
        return found

    return parse


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
