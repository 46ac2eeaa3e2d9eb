"""Folders that a variable names: checked before anything is made in them."""

from __future__ import annotations

import os
from pathlib import Path

from .errors import Refusal

WORKSPACE = Path("/workspace")


def usable(folder: Path, given: tuple[Path, ...]) -> bool:
    """Whether things can be made in a folder, now or as soon as it has been given to the user."""
    if folder in given:
        return folder.is_dir() and not os.statvfs(folder).f_flag & os.ST_RDONLY
    return folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)


def refuse_unwritable(variable: str, folder: Path, given: tuple[Path, ...] = ()) -> None:
    """Refuses a folder that can't be written to, or made."""
    nearest = next(place for place in (folder, *folder.parents) if os.path.lexists(place))
    if not usable(nearest, given):
        raise Refusal(
            "setting-folder-unwritable",
            f"{variable} is '{folder}', but {nearest} can't be written to by uid {os.geteuid()}",
        )
