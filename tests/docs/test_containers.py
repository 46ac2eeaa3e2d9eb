"""docs/containers.md names every variable that a start reads, and no other."""

from __future__ import annotations

import re

from gpuyard import paths

NAME = r"(?:(?:GPUYARD|JUPYTER|NB|SSH)_[A-Z_]*[A-Z]|PUBLIC_KEY)"
# Jupyter's own, which a start sets for it.
SET = {"JUPYTER_CONFIG_DIR", "JUPYTER_CONFIG_PATH", "JUPYTER_DATA_DIR", "JUPYTER_PATH"}


def test_every_setting_of_a_container_is_documented() -> None:
    """In the table of settings; a name that no longer exists is found, too."""
    read: set[str] = set()
    for file in (paths.ROOT / "entrypoints" / "gpuyard_start").rglob("*.py"):
        read |= set(re.findall(rf'"({NAME})"', file.read_text()))
    page = (paths.ROOT / "docs" / "containers.md").read_text()
    table = "\n".join(line for line in page.splitlines() if line.startswith("| `"))
    assert set(re.findall(rf"`({NAME})`", table)) == read - SET
    assert set(re.findall(rf"\b{NAME}\b", page)) <= read
