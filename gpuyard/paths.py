"""Where things lie in this checkout."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
IMAGES = ROOT / "images"
CATALOGUE = IMAGES / "catalogue.toml"
LOCKS = IMAGES / "locks"
DOCKER = ROOT / "docker"
BUILD = ROOT / "build"
"""Generated inputs of a build (bake definition, contexts, root file systems); never committed."""
REPORTS = ROOT / "reports"
TABLES = ROOT / "verify" / "tables.json"


def cache_folder() -> Path:
    """The user's cache folder for downloads and root file systems that outlive a checkout."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gpuyard"
