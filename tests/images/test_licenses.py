"""The `licenses` program, on the packages of whichever Python runs it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from gpuyard import paths

PROGRAM = str(paths.ROOT / "entrypoints" / "licenses")


def test_every_package_has_a_word_and_most_have_a_text() -> None:
    """Names, versions and licences of all, and files that exist."""
    done = subprocess.run([sys.executable, PROGRAM, "--json"], check=True, capture_output=True, text=True)
    entries = {entry["name"]: entry for entry in json.loads(done.stdout)}
    assert entries["pydantic"]["license"] == "MIT"
    assert all(Path(file).is_file() for entry in entries.values() for file in entry["files"])
    assert sum(bool(entry["files"]) for entry in entries.values()) > len(entries) / 2
    assert all(entry["version"] and entry["license"] for entry in entries.values())


def test_a_reader_that_leaves_early_gets_no_traceback() -> None:
    """`licenses | head -1` is quiet."""
    done = subprocess.run(
        ["bash", "-c", f"{sys.executable} {PROGRAM} | head -1"], check=True, capture_output=True, text=True
    )
    assert done.stdout.count("\n") == 1
    assert done.stderr == ""
