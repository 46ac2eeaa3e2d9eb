"""Mount points: what lies on one is the user's, everything else is the image's."""

from __future__ import annotations

import re
from pathlib import Path

_OCTAL = re.compile(r"\\([0-7]{3})")


def points(table: Path = Path("/proc/self/mountinfo")) -> frozenset[Path]:
    """Every mount point that this process sees."""
    found = set()
    for line in table.read_text("utf-8", "surrogateescape").splitlines():
        found.add(Path(_OCTAL.sub(lambda match: chr(int(match[1], 8)), line.split()[4])))
    return frozenset(found)


def is_mounted(path: Path, among: frozenset[Path]) -> bool:
    """Whether the path lies on a mount other than the container's root."""
    return any(place in among for place in (path, *path.parents) if place != Path("/"))
