"""A small project on top of the image: what `gpuyard new` writes, whole or not at all."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from pathlib import Path

from gpuyard import paths
from gpuyard.errors import UsageError, UserError
from gpuyard.render.devcontainer import Editor, configuration
from gpuyard.render.text import text
from gpuyard.render.work import NAME, check_image

FILES = {
    "Dockerfile": "Dockerfile",
    "requirements.txt": "requirements.txt",
    "compose.yaml": "compose.yaml",
    "train.py": "train.py",
    "README.md": "README.md",
    ".gitignore": "gitignore",
    ".dockerignore": "dockerignore",
    ".github/workflows/check.yml": "check.yml",
}
"""Each file and its template."""


def files(name: str, image: str) -> dict[str, str]:
    """The project's files by their paths. Raises UsageError for a name or image that is not valid."""
    if not NAME.fullmatch(name):
        raise UsageError(
            "project-name-invalid",
            f"the project's name {name!r}: expected up to 40 lower-case letters, digits and dashes, a letter first; "
            "give another with --name",
        )
    check_image(image)
    values = {"name": name, "image": image, "checkout": checkout()}
    found = {path: text(f"project/{template}.j2", **values) for path, template in FILES.items()}
    return {**found, ".devcontainer/devcontainer.json": configuration(Editor(image, name, dockerfile="../Dockerfile"))}


def checkout() -> str:
    """The action that our own workflow uses, by commit; Dependabot updates it there."""
    workflow = paths.ROOT / ".github" / "workflows" / "check.yml"
    found = re.search(r"uses: (actions/checkout@[0-9a-f]{40}.*)", workflow.read_text())
    if not found:
        raise UserError(
            "workflow-action-missing", f"{workflow}: no actions/checkout by commit: restore the file from git"
        )
    return found[1]


def create(folder: Path, contents: dict[str, str]) -> None:
    """Writes the files into a folder that is empty or not there yet; leaves nothing behind if it fails."""
    refuse(folder)
    fresh = Path(tempfile.mkdtemp(prefix=".gpuyard-", dir=folder.parent))
    try:
        fresh.chmod(0o755)
        for path, content in contents.items():
            (fresh / path).parent.mkdir(parents=True, exist_ok=True)
            (fresh / path).write_text(content)
        fresh.replace(folder)
    except OSError as error:
        shutil.rmtree(fresh, ignore_errors=True)
        raise UserError("project-folder-unusable", f"{folder}: cannot be written: {error.strerror}") from None


def refuse(folder: Path) -> None:
    """Raises UserError for a folder that can't take a project."""
    if folder.exists() and not folder.is_dir():
        raise UserError(
            "project-folder-unusable", f"{folder} is a file: name a folder that is empty or does not exist yet"
        )
    if folder.exists() and any(folder.iterdir()):
        raise UserError(
            "project-folder-unusable", f"{folder} is not empty: name a folder that is empty or does not exist yet"
        )
    if not folder.parent.is_dir():
        raise UserError("project-folder-unusable", f"{folder.parent} does not exist: mkdir -p {folder.parent}")
    if not os.access(folder.parent, os.W_OK | os.X_OK):
        raise UserError("project-folder-unusable", f"you may not write to {folder.parent}: name another folder")
