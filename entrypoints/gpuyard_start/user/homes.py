"""Folders of a home that can't be written to although the home can: Docker makes such for mounts below them."""

from __future__ import annotations

import os
from pathlib import Path

from ..errors import Notice, Refusal
from ..folder import make_folder

# For each folder the variable that moves it, and the one that keeps the old folder on the search path.
_MOVES = (
    ("JUPYTER_CONFIG_DIR", ".jupyter", "JUPYTER_CONFIG_PATH"),
    ("JUPYTER_DATA_DIR", ".local/share/jupyter", "JUPYTER_PATH"),
    ("IPYTHONDIR", ".ipython", ""),
    ("XDG_CACHE_HOME", ".cache", ""),
    ("XDG_CONFIG_HOME", ".config", ""),
    ("TRITON_CACHE_DIR", ".triton", ""),
)

# A font for letters that Matplotlib's own lacks.
_PICTURES = Path("/etc/gpuyard/matplotlibrc")


def pictured(env: dict[str, str], ours: Path = _PICTURES) -> dict[str, str]:
    """The environment without the image's MATPLOTLIBRC where the user has settings of their own."""
    config = Path(env.get("XDG_CONFIG_HOME") or Path(env.get("HOME") or "/") / ".config")
    own = (config / "matplotlib" / "matplotlibrc", Path(env.get("MPLCONFIGDIR") or "/nowhere") / "matplotlibrc")
    if env.get("MATPLOTLIBRC") != str(ours) or not any(os.path.lexists(file) for file in own):
        return env
    return {name: value for name, value in env.items() if name != "MATPLOTLIBRC"}


def _closed(folder: Path) -> bool:
    """Whether the folder, or the nearest one above it that exists, can't be written to."""
    nearest = next(place for place in (folder, *folder.parents) if os.path.lexists(place))
    return not nearest.is_dir() or not os.access(nearest, os.W_OK | os.X_OK)


def moved(env: dict[str, str]) -> tuple[dict[str, str], Notice | None]:
    """The environment in which programs write beside such folders, and the line that says so."""
    home = Path(env.get("HOME") or "/")
    closed = [move for move in _MOVES if move[0] not in env and _closed(home / move[1])]
    if not closed:
        return env, None
    names = ", ".join(place for _, place, _ in closed)
    said = f"{home} has folders that uid {os.getuid()} can't write to ({names})"
    try:
        beside = make_folder() / "home"
        beside.mkdir(mode=0o700, exist_ok=True)
    except (Refusal, OSError):
        return env, Notice("home-folders-unwritable", f"{said}: give them to that user on the host")
    changed = dict(env)
    for variable, place, searched in closed:
        changed[variable] = str(beside / place)
        if searched:
            changed[searched] = ":".join(filter(None, (str(home / place), env.get(searched))))
    return changed, Notice("home-folders-unwritable", f"{said}: {beside} is used instead, and ends with the container")
