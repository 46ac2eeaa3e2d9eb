"""The content of an image: its few telling files and its installed packages, read from the layers' tars."""

from __future__ import annotations

import re
import tarfile
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from email.parser import HeaderParser
from pathlib import Path
from typing import IO, Any

from gpuyard.layers.reading import HIDDEN, path_of, unpacked
from gpuyard.store.store import CHUNK, Store

KIND = "contents"
VERSION = 2
"""Of the records: a new version makes them be read again."""

METADATA = re.compile(r"(?:^|/)[^/]+\.dist-info/METADATA$")
LICENSE = re.compile(r"(?:^|/)[^/]+\.dist-info/(?:licenses?/)?[^/]*(?:LICEN[CS]E|EULA|COPYING)[^/]*$", re.IGNORECASE)
WANTED = re.compile(
    r"^(?:usr/lib/os-release|var/lib/dpkg/status|etc/gpuyard/(?:image\.json|locks/[^/]+\.txt)"
    r"|opt/venv/pyvenv\.cfg|.*/site-packages/torch/version\.py)$"
)
LONGEST = 2 << 20
"""Bytes of a licence text that are kept; the longest known one has half a megabyte."""


@dataclass(frozen=True)
class Contents:
    """Telling files by path, Python packages by the path of their metadata, licence texts by path.

    ``gone`` are the paths that a layer hides in those below it.
    """

    files: Mapping[str, str] = field(default_factory=dict)
    packages: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    licenses: Mapping[str, str] = field(default_factory=dict)
    gone: tuple[str, ...] = ()


def scan(layers: Iterable[Mapping[str, Any]], blobs: Path, store: Store | None = None) -> Contents:
    """The content of an image with these layers (descriptors), as it is when all lie on each other.

    ``blobs`` is the layout's folder of blobs. With a store, every layer is read once and remembered.
    """
    merged = Contents({}, {}, {})
    for layer in layers:
        merged = over(merged, known(layer, blobs, store))
    return merged


def known(layer: Mapping[str, Any], blobs: Path, store: Store | None) -> Contents:
    """The telling content of one layer, from the store's record or read."""
    digest = str(layer["digest"])
    key = f"{digest.removeprefix('sha256:')}-{VERSION}"
    if store and (record := store.record(KIND, key)):
        return Contents(record["files"], record["packages"], record["licenses"], tuple(record["gone"]))
    with (blobs / digest.removeprefix("sha256:")).open("rb") as file:
        plain = unpacked(file)
        if plain is None:
            raise tarfile.ReadError(f"{digest} is not a layer")
        found = read(plain)
    if store:
        store.write_record(KIND, key, asdict(found))
    return found


def over(below: Contents, layer: Contents) -> Contents:
    """A layer on the content below it."""
    return Contents(
        {**_left(below.files, layer.gone), **layer.files},
        {**_left(below.packages, layer.gone), **layer.packages},
        {**_left(below.licenses, layer.gone), **layer.licenses},
    )


def _left(paths: Mapping[str, Any], gone: tuple[str, ...]) -> dict[str, Any]:
    return {
        path: what for path, what in paths.items() if not any(path == out or path.startswith(out + "/") for out in gone)
    }


def read(layer: IO[bytes]) -> Contents:
    """The telling content of a layer's tar."""
    files: dict[str, str] = {}
    packages: dict[str, Mapping[str, str]] = {}
    licenses: dict[str, str] = {}
    gone: list[str] = []
    with tarfile.open(fileobj=layer, mode="r|", bufsize=CHUNK) as tar:
        for member in tar:
            path = path_of(member)
            folder, _, name = path.rpartition("/")
            if name.startswith(HIDDEN):
                gone.append(hidden(folder, name))
            elif member.isreg() and WANTED.match(path):
                files[path] = _text(tar, member)
            elif member.isreg() and METADATA.search(path):
                packages[path] = distribution(_text(tar, member))
            elif member.isreg() and member.size <= LONGEST and LICENSE.search(path):
                licenses[path] = _text(tar, member)
    return Contents(files, packages, licenses, tuple(gone))


def hidden(folder: str, name: str) -> str:
    """What a whiteout hides: one path, or all that a folder held."""
    if name == ".wh..wh..opq":
        return folder
    return f"{folder}/{name.removeprefix(HIDDEN)}".lstrip("/")


def distribution(metadata: str) -> dict[str, str]:
    """Name, version and licence of a Python package, from its METADATA."""
    headers = HeaderParser().parsestr(metadata)
    classifiers = [str(value) for value in headers.get_all("Classifier") or []]
    licences = [line.rpartition(" :: ")[2] for line in classifiers if line.startswith("License :: ")]
    stated = str(headers.get("License-Expression") or "")
    free = " ".join(str(headers.get("License") or "").split())
    return {
        "name": str(headers.get("Name", "")),
        "version": str(headers.get("Version", "")),
        "expression": stated,
        "license": stated or (free if 0 < len(free) <= 80 else "") or ", ".join(licences),
    }


def _text(tar: tarfile.TarFile, member: tarfile.TarInfo) -> str:
    content = tar.extractfile(member)
    assert content is not None
    return content.read().decode(errors="replace")
