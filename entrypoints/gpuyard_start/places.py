"""Folders that a variable names: checked before anything is made in them."""

from __future__ import annotations

import os
from pathlib import Path

from .errors import Refusal


def usable(folder: Path, given: tuple[Path, ...]) -> bool:
    """Whether things can be made in a folder, now or as soon as it has been given to the user."""
    if folder in given:
        return folder.is_dir() and not os.statvfs(folder).f_flag & os.ST_RDONLY
    return folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)


def refuse_unwritable(variable: str, folder: Path, given: tuple[Path, ...] = ()) -> None:
    """Refuses a folder that can't be written to, or made."""
    nearest = next(place for place in (folder, *folder.parents) if os.path.lexists(place))
    if not usable(nearest, given):
        raise Refusal(f"{variable} is '{folder}', but {nearest} can't be written to by uid {os.geteuid()}")


def chosen(env: dict[str, str], variable: str, example: str) -> Path | None:
    """The folder that a variable names, which may not exist yet; None where it names none. Changes nothing."""
    text = env.get(variable, "").strip()
    if not text:
        return None
    folder = Path(text)
    if not folder.is_absolute() or ".." in folder.parts or any(char in text for char in ":\n"):
        raise Refusal(f"{variable} is '{text}': expected the full path of a folder, such as {example}")
    return folder
