"""No module of the start reads a variable that is not in its table of settings, and docs name no other."""

from __future__ import annotations

import re

from entrypoints.gpuyard_start import settings
from gpuyard import paths

NAME = r"(?:(?:GPUYARD|JUPYTER|NB|SSH)_[A-Z_]*[A-Z]|PUBLIC_KEY)"
# Jupyter's own, which a start sets for it.
SET = {"JUPYTER_CONFIG_DIR", "JUPYTER_CONFIG_PATH", "JUPYTER_DATA_DIR", "JUPYTER_PATH"}
KNOWN = {name for setting in settings.TABLE for name in (setting.name, setting.also) if name}


def test_every_variable_of_the_start_is_in_its_table() -> None:
    """Whichever module names it."""
    named: set[str] = set()
    for file in (paths.ROOT / "entrypoints" / "gpuyard_start").rglob("*.py"):
        named |= set(re.findall(rf'"({NAME})"', file.read_text()))
    assert named - SET - set(settings.FOREIGN) == KNOWN - SET
    assert len(KNOWN) == sum(1 + bool(setting.also) for setting in settings.TABLE)


def test_the_page_names_no_variable_that_does_not_exist() -> None:
    """In its prose; the table is generated, which another test compares."""
    text = (paths.ROOT / "docs" / "containers.md").read_text()
    assert set(re.findall(rf"\b{NAME}\b", text)) <= KNOWN | set(settings.FOREIGN)
