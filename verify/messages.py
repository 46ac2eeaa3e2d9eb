"""What each id means that is printed in brackets: those of verify itself, and those of the container's start."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Dict, Tuple

START = Path(__file__).parents[1] / "entrypoints" / "messages.toml"
"""Beside this package, in the repository as in an image; one zip file has none."""


@dataclass(frozen=True)
class Message:
    """``means``: what happened. ``repair``: commands or steps, the likeliest first."""

    means: str
    repair: Tuple[str, ...]


OWN: Dict[str, Message] = {
    "verify-usage": Message(
        "An option or its value does not exist, or two options contradict each other. Nothing was run (exit 2).",
        ("verify --help",),
    ),
    "verify-unknown-name": Message(
        "No check, group, level, profile or id has the name. Nothing was run (exit 2).",
        ("verify --list", "verify --help"),
    ),
    "verify-report-unwritable": Message(
        "A report cannot be written to the path after --json, --junit or --html. The line says whether checks ran.",
        ("name a path in a writable folder, such as /tmp/report.json", "verify --json - >report.json"),
    ),
    "verify-claims-invalid": Message(
        "/etc/gpuyard/image.json, or the file in GPUYARD_IMAGE_JSON, is not a JSON object, so there is nothing to "
        "compare the image with (exit 3).",
        ("unset GPUYARD_IMAGE_JSON", "start a fresh container from the image", "rebuild the image: gpuyard build"),
    ),
}


def start_messages(file: Path = START) -> Dict[str, Message]:
    """The messages of the container's start; empty where the file is missing or this Python has no TOML reader."""
    try:
        # mypy reads this for Python 3.9, which has none.
        import tomllib  # type: ignore[import-not-found,unused-ignore]

        rows = tomllib.loads(file.read_text())
    except (ImportError, OSError):
        return {}
    return {id_: Message(row["means"], tuple(row["repair"])) for id_, row in rows.items()}


def known() -> Dict[str, Message]:
    """All of them, by id."""
    return {**start_messages(), **OWN}


def text(id_: str) -> str:
    """The explanation of an id of ``known``."""
    message = known()[id_]
    return "\n".join([id_, "", message.means, "", "What to do:", *(f"  - {step}" for step in message.repair)])
