"""Everything installed in an image: Python packages by lock, wheel and file system, Debian's by dpkg."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from email.parser import HeaderParser

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from gpuyard.catalogue.lock import NVIDIA, entries
from gpuyard.errors import UserError
from gpuyard.image.source import Source
from gpuyard.layers.make import ANNOTATION

INSTALLED = re.compile(r"^opt/venv/lib/python[^/]+/site-packages/([^/]+\.dist-info)/METADATA$")
SHOWN = 5


@dataclass(frozen=True)
class Python:
    """A package of the virtual environment: as its metadata in the image says, from the wheel of that hash."""

    name: str
    version: str
    wheel: str
    license: str
    expression: str
    text: str
    """Its licence text, kept for NVIDIA's packages and torch."""


@dataclass(frozen=True)
class Debian:
    """A package that dpkg has installed."""

    name: str
    version: str
    architecture: str
    source: str


@dataclass(frozen=True)
class Inventory:
    """All packages, sorted by name."""

    python: tuple[Python, ...]
    debian: tuple[Debian, ...]
    locks: Mapping[str, str]
    """The locks in the image: name and SHA-256."""


def take(source: Source) -> Inventory:
    """The inventory of an image. Raises UserError if its files, its locks and its wheels don't agree."""
    contents = source.contents
    locks = {path: text for path, text in contents.files.items() if "/locks/" in path}
    locked = {name: version for text in locks.values() for name, version, _ in entries(text)}
    made = {name: entry for layer in source.layers for name, entry in wheels(layer.get("annotations") or {}).items()}
    found = _installed(source)
    _refuse_different("locks", locked, found)
    _refuse_different("layers", {name: version for name, (version, _) in made.items()}, found)
    python = tuple(
        Python(
            name,
            data["version"],
            made[name][1],
            data["license"],
            data["expression"],
            _license_text(source, folder) if NVIDIA.match(name) or name == "torch" else "",
        )
        for name, (folder, data) in sorted(found.items())
    )
    sums = {path.rpartition("/")[2]: hashlib.sha256(text.encode()).hexdigest() for path, text in locks.items()}
    return Inventory(python, tuple(dpkg(contents.files.get("var/lib/dpkg/status", ""))), sums)


def _installed(source: Source) -> dict[str, tuple[str, Mapping[str, str]]]:
    """Folder and metadata of every package in the virtual environment, by normalised name."""
    return {
        canonicalize_name(data["name"]): (path.removesuffix("/METADATA"), data)
        for path, data in source.contents.packages.items()
        if INSTALLED.match(path)
    }


def wheels(annotations: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Version and wheel of each package of a layer, as its bill of materials says."""
    packages = annotations.get(f"{ANNOTATION}.packages", "").split()
    hashes = annotations.get(f"{ANNOTATION}.wheels", "").split()
    pairs = zip((package.partition("==") for package in packages), hashes, strict=True)
    return {canonicalize_name(name): (version, wheel) for (name, _, version), wheel in pairs}


def _refuse_different(what: str, named: Mapping[str, str], found: Mapping[str, tuple[str, Mapping[str, str]]]) -> None:
    there = {name: data["version"] for name, (_, data) in found.items()}
    names = [
        f"{name} {there.get(name, 'missing')} (named: {named.get(name, 'not at all')})"
        for name in sorted({*named, *there})
        if not same_version(named.get(name), there.get(name))
    ]
    if names:
        more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
        raise UserError(
            "packages-differ",
            f"the packages in the image are not those its {what} name: {', '.join(names[:SHOWN])}{more}. "
            "Build it again: gpuyard build --builder layers",
        )


def same_version(one: str | None, other: str | None) -> bool:
    """Whether two spellings are the same version."""
    try:
        return one == other or (bool(one and other) and Version(str(one)) == Version(str(other)))
    except InvalidVersion:
        return False


def _license_text(source: Source, folder: str) -> str:
    texts = sorted((path, text) for path, text in source.contents.licenses.items() if path.startswith(folder + "/"))
    return "\n\n".join(text for _, text in texts)


def dpkg(status: str) -> Iterable[Debian]:
    """The installed packages of dpkg's status file, sorted."""
    found = []
    for paragraph in filter(str.strip, status.split("\n\n")):
        fields = HeaderParser().parsestr(paragraph.lstrip("\n"))
        if str(fields.get("Status", "")).endswith(" installed"):
            name = str(fields["Package"])
            source = str(fields.get("Source") or name).split(" ")[0]
            found.append(Debian(name, str(fields["Version"]), str(fields["Architecture"]), source))
    return sorted(found, key=lambda package: (package.name, package.architecture))
