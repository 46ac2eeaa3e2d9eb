"""The first notebook: put into a workspace that is empty, and never into another."""

from __future__ import annotations

import os
from pathlib import Path

NOTEBOOK = Path(__file__).resolve().parents[2] / "first-steps.ipynb"
# Every disk that was formatted as ext4 has it.
_NOTHING = {"lost+found"}


def greet(workspace: Path, notebook: Path = NOTEBOOK) -> bool:
    """Copies the notebook; whether it did. A workspace that can't be read or written is left alone."""
    try:
        if {path.name for path in workspace.iterdir()} - _NOTHING:
            return False
        target = workspace / notebook.name
        descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    except OSError:
        return False
    with os.fdopen(descriptor, "wb") as out:
        out.write(notebook.read_bytes())
    return True
