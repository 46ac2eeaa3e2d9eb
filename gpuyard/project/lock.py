"""A project's lock: what it needs beyond its image, with all hashes, resolved against the image's own lock."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from gpuyard.catalogue.lock import compile_, entries
from gpuyard.catalogue.product import Product
from gpuyard.errors import UserError
from gpuyard.project.definition import Project

CAUSE = re.compile(r"^\s*(?:cause|×|╰─▶)\s*:?\s*(.*)", flags=re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Answer:
    """Whether a line can carry the project: its lock's packages beyond the image's, or uv's reason why not."""

    product: Product
    packages: Mapping[str, str]
    reason: str = ""


def stamp(project: Project) -> str:
    """A checksum of everything the lock is resolved from: requirements, Python, platform and the image's own lock."""
    product = project.product
    inputs = [project.requirements, product.python, product.catalogue.platform, product.locks.digest(product.layers)]
    return "sha256:" + hashlib.sha256(json.dumps(inputs).encode()).hexdigest()


def resolve(project: Project, kept: Mapping[str, str]) -> list[str]:
    """The blocks of the lock: what the project needs and the image lacks, sorted by name.

    ``kept`` are versions to stay at if they still fit, normalised name to version. Raises UserError with what
    stands against what if nothing fits, and for a placeholder where a package has no real release.
    """
    held = project.product.locks.packages(project.product.layers)
    if not project.requirements:
        return []
    bound = [f"{name}=={version}" for name, version in {**kept, **held}.items()]
    try:
        text = compile_(project.requirements, bound, project.product.python)
    except UserError as error:
        if kept:
            return resolve(project, {})
        raise explained(str(error), project, held) from None
    found = [(name, version, block) for name, version, block in entries(text) if name not in held]
    refuse_placeholders(((name, version) for name, version, _ in found), project.requirements)
    return [block for _, _, block in sorted(found)]


def explained(said: str, project: Project, held: Mapping[str, str]) -> UserError:
    """uv's refusal as one error: its cause, and what of the image it collides with."""
    cause = next((" ".join(found[1].split()) for found in [CAUSE.search(said)] if found), said.splitlines()[-1])
    cause = cause.partition(" hint:")[0]
    if "No solution found" not in said:
        return UserError("project-index-failed", f"the requirements could not be resolved: {cause}")
    if "no usable wheels" in cause or "no wheels" in cause:
        return UserError(
            "project-no-wheel",
            f"{cause} Images are built from wheels: take a version that has one for Python {project.product.python}, "
            "or build the wheel yourself and put it on your index",
        )
    if "was not found in the package registry" in cause:
        return UserError("project-package-unknown", f"{cause} Check the name; your index may lack it")
    named = sorted(name for name in held if re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", cause))
    pinned = ", ".join(f"{name}=={held[name]}" for name in named)
    image = f" The image {project.product.tag} holds {pinned}." if pinned else ""
    return UserError("project-conflict", f"{cause}{image} Which lines would fit: gpuyard lock --which-line")


def refuse_placeholders(found: Iterable[tuple[str, str]], requirements: Iterable[str]) -> None:
    """Raises UserError for 0.0.0 or a development release that nobody asked for by its exact version."""
    asked = [Requirement(line) for line in requirements]
    exact = {
        canonicalize_name(requirement.name)
        for requirement in asked
        if any(part.operator in ("==", "===") for part in requirement.specifier)
    }
    for name, version in found:
        if name not in exact and (Version(version).release == (0, 0, 0) or Version(version).is_devrelease):
            raise UserError(
                "project-placeholder",
                f"{name} resolves to {version}, which reserves a name and is not a release. If it is what you want, "
                f"ask for it exactly: {name}=={version}",
            )


def write(project: Project, upgrade: bool = False, names: Iterable[str] = ()) -> dict[str, str]:
    """Resolves and writes the lock; returns its packages. Versions stay where they fit, but those to upgrade.

    The file is replaced whole, or left as it was.
    """
    freed = {canonicalize_name(name) for name in names}
    before = packages(project.lock)
    for name in freed - set(before):
        raise UserError("project-upgrade-unknown", f"{name} is not in {project.lock.name}; --upgrade takes what is")
    kept = {} if upgrade and not freed else {name: version for name, version in before.items() if name not in freed}
    blocks = resolve(project, kept)
    body = "".join(blocks)
    header = (
        f"# Made by: gpuyard lock. On top of {project.product.tag}; do not edit.\n"
        f"# inputs: {stamp(project)}\n# content: sha256:{hashlib.sha256(body.encode()).hexdigest()}\n"
    )
    fresh = project.lock.with_name(f".{project.lock.name}.new")
    fresh.write_text(header + body)
    fresh.replace(project.lock)
    return packages(project.lock)


def packages(lock: Path) -> dict[str, str]:
    """The packages of a project's lock, normalised name to version; none where there is no lock."""
    return {name: version for name, version, _ in entries(lock.read_text())} if lock.is_file() else {}


def refuse_stale(project: Project) -> None:
    """Raises UserError unless the lock is there, was made from today's inputs, and is as it was written."""
    again = "Run: gpuyard lock"
    if not project.lock.is_file():
        raise UserError("project-lock-missing", f"{project.lock} is missing. {again}")
    text = project.lock.read_text()
    header = dict(re.findall(r"^# (inputs|content): (\S+)$", text, flags=re.MULTILINE))
    if header.get("inputs") != stamp(project):
        raise UserError(
            "project-lock-stale",
            f"{project.lock}: the requirements, or the lock of {project.product.tag}, have changed since. {again}",
        )
    body = text[text.index(header["content"]) + len(header["content"]) + 1 :] if "content" in header else ""
    if header.get("content") != f"sha256:{hashlib.sha256(body.encode()).hexdigest()}":
        raise UserError("project-lock-edited", f"{project.lock} was edited by hand. {again}")


def which_lines(project: Project) -> list[Answer]:
    """For each line that has the project's image: what its lock would add, or why it can't carry the project."""
    catalogue = project.product.catalogue
    answers = []
    for line in catalogue.line:
        if project.product.image not in catalogue.images_of(line):
            continue
        candidate = replace(project, product=replace(project.product, line=line))
        try:
            found = {name: version for block in resolve(candidate, {}) for name, version, _ in entries(block)}
            answers.append(Answer(candidate.product, found))
        except UserError as error:
            answers.append(Answer(candidate.product, {}, str(error).partition(" Which lines would fit")[0]))
    return answers
