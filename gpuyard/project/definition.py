"""What a project's folder says: the `[tool.gpuyard]` table, and the packages that the project asks for."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from gpuyard.catalogue.product import Product, find_product
from gpuyard.catalogue.table import Catalogue
from gpuyard.errors import UsageError, UserError

OWN_FILE, PYPROJECT, REQUIREMENTS = "gpuyard.toml", "pyproject.toml", "requirements.txt"
LOCK = "requirements.lock"
NAME = r"^[a-z0-9]+(?:[._-][a-z0-9]+)*$"
"""A path component of an image's name (OCI distribution specification, "Pulling manifests")."""


class Settings(BaseModel):
    """The `[tool.gpuyard]` table. Every field has a default; an unknown one is refused.

    ``extras`` names groups of ``[project.optional-dependencies]`` that the image gets as well. ``command`` is what a
    container runs (the image's services if empty), ``environment`` its variables. ``allow`` lists files, by their
    path in the project, that look like secrets and are not; ``max_megabytes`` bounds the project's files together.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    line: str | None = None
    image: str = "workbench"
    name: Annotated[str, Field(pattern=NAME, max_length=128)] | None = None
    extras: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    environment: Mapping[Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")], str] = {}
    allow: tuple[str, ...] = ()
    max_megabytes: Annotated[int, Field(ge=1)] = 100


@dataclass(frozen=True)
class Project:
    """A project: its folder, its settings, what it stands on, and what it asks for (PEP 508, as written, sorted)."""

    folder: Path
    settings: Settings
    product: Product
    requirements: tuple[str, ...]

    @property
    def name(self) -> str:
        """The image's name; the folder's where the table has none."""
        return self.settings.name or self.folder.name

    @property
    def lock(self) -> Path:
        """Where the lock lies."""
        return self.folder / LOCK


def is_project(folder: Path) -> bool:
    """Whether a folder has a `gpuyard.toml`, or a `pyproject.toml` with a `[tool.gpuyard]` table.

    A file that cannot be parsed counts: reading it says why.
    """
    if (folder / OWN_FILE).is_file():
        return True
    try:
        return "gpuyard" in _read(folder / PYPROJECT).get("tool", {})
    except UserError:
        return "[tool.gpuyard" in (folder / PYPROJECT).read_text(errors="replace")


def named(word: str | None, catalogue: Catalogue) -> Project | None:
    """The project that a command's argument names: a folder, or the working directory if there is no argument.

    None where the argument names a line instead, or there is none and the working directory is not a project.
    Raises UserError for a folder that is not a project.
    """
    if word is None:
        return load(Path.cwd(), catalogue) if is_project(Path.cwd()) else None
    if "/" not in word and word not in (".", ".."):
        return None
    if not is_project(Path(word)):
        raise UserError(
            "project-missing", f"{word} is not a project: it has no {OWN_FILE} and no [tool.gpuyard] in {PYPROJECT}"
        )
    return load(Path(word), catalogue)


def load(folder: Path, catalogue: Catalogue) -> Project:
    """The project in a folder.

    Raises UserError or UsageError, naming file, field, found and expected, for anything that can't be used.
    """
    folder = folder.resolve()
    pyproject = _read(folder / PYPROJECT)
    own = folder / OWN_FILE
    source = own if own.is_file() else folder / PYPROJECT
    settings = _settings(_read(own) if own.is_file() else pyproject.get("tool", {}).get("gpuyard", {}), source)
    if not settings.name and not re.fullmatch(NAME, folder.name):
        raise UsageError(
            "project-name",
            f"{folder.name!r} can't be an image's name: lower-case letters, digits, and single . _ - between them. "
            f'Set name = "..." in {source.name}',
        )
    product = find_product(catalogue, settings.line, settings.image)
    return Project(folder, settings, product, tuple(sorted(_requirements(folder, pyproject, settings))))


def _settings(table: Mapping[str, Any], source: Path) -> Settings:
    try:
        return Settings.model_validate(table)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        if first["type"] == "extra_forbidden":
            known = ", ".join(Settings.model_fields)
            raise UsageError("project-field", f"{source}: unknown field {field!r}; known: {known}") from None
        found = first.get("input")
        raise UsageError("project-field", f"{source}: {field} is {found!r}: {first['msg']}") from None


def _requirements(folder: Path, pyproject: Mapping[str, Any], settings: Settings) -> list[str]:
    project = pyproject.get("project")
    if project is None:
        if settings.extras:
            raise UsageError(
                "project-extra", f"{folder}: extras needs a {PYPROJECT} with [project.optional-dependencies]"
            )
        file = folder / REQUIREMENTS
        return [line for _, line in _lines(file)] if file.is_file() else []
    if "dependencies" in project.get("dynamic", ()):
        raise UserError(
            "project-dynamic",
            f"{folder / PYPROJECT}: dependencies are dynamic, which needs a build to know them; list them in "
            "[project] dependencies",
        )
    found = list(project.get("dependencies", ()))
    optional = {canonicalize_name(name): asked for name, asked in project.get("optional-dependencies", {}).items()}
    for extra in settings.extras:
        if canonicalize_name(extra) not in optional:
            there = ", ".join(sorted(optional)) or "none"
            raise UsageError("project-extra", f"{folder / PYPROJECT}: unknown extra {extra!r}; there are: {there}")
        found += optional[canonicalize_name(extra)]
    return [_checked(line, f"{folder / PYPROJECT}") for line in found]


def _lines(file: Path) -> list[tuple[int, str]]:
    """The requirements of a requirements file with their line numbers; files named by ``-r`` are read in place."""
    found: list[tuple[int, str]] = []
    try:
        text = file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError("project-unreadable", f"{file}: cannot be read: {error}") from None
    for number, raw in enumerate(text.splitlines(), 1):
        line = re.sub(r"(^|\s)#.*$", "", raw).strip()
        if include := re.fullmatch(r"(?:-r|--requirement)[ =]\s*(\S+)", line):
            found += _lines(file.parent / include[1])
        elif line:
            found.append((number, _checked(line, f"{file}:{number}")))
    return found


def _checked(line: str, place: str) -> str:
    """The requirement, if it is a name with versions: an address or a path can't be locked by an index's hashes."""
    if line.startswith("-"):
        raise UserError(
            "project-requirement",
            f"{place}: {line!r} is an option of pip: only requirements such as einops==0.8.1 and -r FILE are read",
        )
    try:
        requirement = Requirement(line)
    except InvalidRequirement as error:
        raise UserError(
            "project-requirement", f"{place}: {line!r} is not a requirement: {str(error).splitlines()[0]}"
        ) from None
    if requirement.url:
        raise UserError(
            "project-requirement",
            f"{place}: {requirement.name} comes from an address; a lock names versions from your index. "
            "Put its wheel on the index",
        )
    return str(requirement)


def _read(file: Path) -> dict[str, Any]:
    if not file.is_file():
        return {}
    try:
        return tomllib.loads(file.read_text())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError("project-unreadable", f"{file}: not valid TOML: {error}") from None
