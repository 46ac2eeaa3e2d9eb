"""What each printed id means and what repairs it, as data: one TOML file a room, and the start's beside its code."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
START = HERE.parents[1] / "entrypoints" / "messages.toml"


@dataclass(frozen=True)
class Message:
    """``means``: what happened. ``repair``: commands or steps, the likeliest first. ``room``: whose it is."""

    id: str
    room: str
    means: str
    repair: tuple[str, ...]


def load(folder: Path = HERE, start: Path = START) -> Mapping[str, Message]:
    """All messages of the command line and of a container's start, by id. Raises ValueError for an id used twice."""
    found: dict[str, Message] = {}
    for file in [*sorted(folder.glob("*.toml")), *([start] if start.exists() else [])]:
        room = "start" if file == start else file.stem
        for id_, row in tomllib.loads(file.read_text()).items():
            if id_ in found:
                raise ValueError(f"{file}: {id_} is already an id of {found[id_].room}")
            found[id_] = Message(id_, room, row["means"], tuple(row["repair"]))
    return found
