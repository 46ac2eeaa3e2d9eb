"""Reads the image's claims, and the tables generated from the catalogue."""

from __future__ import annotations

import json
import os
import pkgutil
from pathlib import Path
from typing import Any, Dict, Optional

from verify.model import Claims

IMAGE_JSON = Path("/etc/gpuyard/image.json")
PROJECT_JSON = "project.json"
"""Beside image.json in the image of a user's project: its name, and the packages of its own lock."""


class BadClaims(Exception):
    """A claims file exists but cannot be used; the text is one line for the user."""

    id = "verify-claims-invalid"


def load_claims(image: Optional[Path] = None) -> Claims:
    """Claims of this image; both parts are empty where their file does not exist.

    In the image of a project, ``packages`` are those of both locks, and ``project`` is the project's name.
    GPUYARD_IMAGE_JSON names another file, so that a test or a derived image can say what it claims.
    """
    path = image or Path(os.environ.get("GPUYARD_IMAGE_JSON") or IMAGE_JSON)
    # By the loader, not by a path: the suite also runs out of one zip file.
    tables = json.loads(pkgutil.get_data("verify", "tables.json") or b"{}")
    claimed, project = _object(path), _object(path.with_name(PROJECT_JSON))
    if project:
        both = {**claimed.get("packages", {}), **project.get("packages", {})}
        claimed = {**claimed, "packages": both, "project": project.get("name", "")}
    return Claims(image=claimed, tables=tables)


def _object(path: Path) -> Dict[str, Any]:
    try:
        parsed = json.loads(path.read_text())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise BadClaims(f"{path}: expected a JSON object, found: {error}. Rebuild the image.") from error
    if not isinstance(parsed, dict):
        raise BadClaims(f"{path}: expected a JSON object, found {type(parsed).__name__}. Rebuild the image.")
    return parsed


def claimed_version(claims: Claims, name: str) -> str:
    """The version the image claims for ``name`` (torch, cuda, nccl, ...), empty when it claims none."""
    versions = claims.image.get("versions") or {}
    return str(versions.get(name) or "")
