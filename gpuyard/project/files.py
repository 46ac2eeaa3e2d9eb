"""Which files of a project go into its image: the folder without junk and without what must not leave the machine."""

from __future__ import annotations

import fnmatch
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

from docker.utils.build import PatternMatcher

from gpuyard.errors import UserError
from gpuyard.layers.project import Entry
from gpuyard.project.definition import Project

FOLDER = "workspace"
"""Where the files lie in the image: the working directory of every image of ours."""
JUNK = (
    *(".git", ".venv", "venv", "node_modules", "**/__pycache__", "**/*.pyc", "**/.ipynb_checkpoints", "**/.DS_Store"),
    *("**/.mypy_cache", "**/.ruff_cache", "**/.pytest_cache", "**/*.egg-info"),
)
"""Left out of every image; a `.dockerignore` adds to it, and can bring something back with ``!``."""
SECRETS = (
    *(".env", ".env.*", "*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519"),
    *(".netrc", ".pypirc", ".git-credentials", ".pgpass", "credentials", "kubeconfig", "*service-account*.json"),
)
"""Names of files that hold a secret more often than not."""
EXAMPLES = (".env.example", ".env.sample", ".env.template", ".env.dist")
MARK = re.compile(rb"-----BEGIN [A-Z ]*PRIVATE KEY-----")
PEEK = 16 << 10


def collect(project: Project) -> list[Entry]:
    """The entries of the project's layer, sorted by path.

    Raises UserError that names the first file which can't be packed: a secret, a link out of the project, something
    that is not a file, or files that are larger together than ``max_megabytes``.
    """
    found = [_entry(project, path) for path in _chosen(project.folder)]
    _refuse_size(project, found)
    return sorted(found, key=lambda entry: entry.path)


def _chosen(folder: Path) -> Iterator[Path]:
    ignore = folder / ".dockerignore"
    lines = ignore.read_text().splitlines() if ignore.is_file() else []
    patterns = [*JUNK, *(line.strip() for line in lines if line.strip() and not line.startswith("#"))]
    for name in sorted(PatternMatcher(patterns).walk(str(folder))):
        path = folder / name
        # docker's matcher always keeps it, for a builder to read.
        if name == ".dockerignore":
            continue
        if path.is_symlink() or not path.is_dir():
            yield path


def _entry(project: Project, path: Path) -> Entry:
    name = path.relative_to(project.folder).as_posix()
    place = f"{FOLDER}/{name}"
    if path.is_symlink():
        target = path.readlink()
        inside = Path(os.path.normpath(path.parent / target)).is_relative_to(project.folder)
        if target.is_absolute() or not inside:
            raise UserError(
                "project-link-outside",
                f"{path} points out of the project, to {target}: copy the file into the project, or list it in "
                ".dockerignore",
            )
        return Entry(place, link=str(target))
    mode = path.stat().st_mode
    if not stat.S_ISREG(mode):
        raise UserError("project-not-a-file", f"{path} is neither a file nor a folder: list it in .dockerignore")
    if name not in project.settings.allow and _is_secret(path):
        raise UserError(
            "project-secret",
            f"{path} looks like a secret and would be in the image for everybody who can pull it. List it in "
            f".dockerignore, or, if it is not a secret, in [tool.gpuyard] allow",
        )
    return Entry(place, path, bool(mode & 0o100))


def _is_secret(path: Path) -> bool:
    if path.name not in EXAMPLES and any(fnmatch.fnmatch(path.name.lower(), pattern) for pattern in SECRETS):
        return True
    with path.open("rb") as file:
        return bool(MARK.search(file.read(PEEK)))


def _refuse_size(project: Project, entries: list[Entry]) -> None:
    limit = project.settings.max_megabytes * 1_000_000
    total = sum(entry.size for entry in entries)
    if total > limit:
        largest = max(entries, key=lambda entry: entry.size)
        name, size = largest.path.removeprefix(f"{FOLDER}/"), largest.size / 1e6
        raise UserError(
            "project-too-large",
            f"the project's files are {total / 1e6:.0f} MB, and max_megabytes is {project.settings.max_megabytes}; the "
            f"largest is {name} with {size:.0f} MB. Keep data on a volume and list it in .dockerignore",
        )
