"""Where things lie in this checkout."""

from __future__ import annotations

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
