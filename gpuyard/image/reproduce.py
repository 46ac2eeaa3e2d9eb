"""Making every layer twice and comparing: with the record too, and file by file where they differ."""

from __future__ import annotations

import hashlib
import os
import tarfile
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import zstandard

from gpuyard import paths
from gpuyard.image.oci import short
from gpuyard.layers import make
from gpuyard.layers.model import Layer, Target
from gpuyard.layers.plan import Group
from gpuyard.packages.fetcher import Wheel

DIGESTS = paths.IMAGES / "digests.toml"
HEADER = """\
# Made by: gpuyard reproduce LINE --write. The digest and the diff id (of the tar in it) of every layer of
# wheels: a function of lock and code alone, whatever the base. The layer of this project's own files is
# left out, because every edit in entrypoints/ or verify/ changes it.
"""

Row = Mapping[str, str]


@dataclass(frozen=True)
class Twice:
    """A layer that was made twice, and what differs between the two, a line for each file."""

    layer: Layer
    differences: tuple[str, ...]


def once(group: Group, target: Target, compiler: str | None, folder: Path, name: str) -> tuple[Layer, Path]:
    """Makes the layer in a folder of its own, from wheels that lie there too."""
    place = folder / name
    place.mkdir(parents=True)
    wheels = [_here(wheel, place) for wheel in group.wheels]
    out = place / "layer.tar.zst"
    return make.wheels_layer(wheels, target, compiler, out), out


def _here(wheel: Wheel, folder: Path) -> Wheel:
    path = folder / wheel.path.name
    try:
        os.link(wheel.path, path)
    except OSError:
        path.symlink_to(wheel.path)
    return Wheel(wheel.name, wheel.version, wheel.sha, path, wheel.size)


def compare(one: tuple[Layer, Path], other: tuple[Layer, Path]) -> Twice:
    """What differs between a layer and the same layer made again."""
    if one[0].digest == other[0].digest:
        return Twice(one[0], ())
    found = differing_files(one[1], other[1])
    return Twice(one[0], tuple(found or ["the compressed bytes alone: the files in them are equal"]))


def differing_files(one: Path, other: Path) -> list[str]:
    """The paths at which two layers differ, and in what."""
    first, second = _entries(one), _entries(other)
    found = []
    for path in sorted(first.keys() | second.keys()):
        a, b = first.get(path), second.get(path)
        if a is None or b is None:
            found.append(f"{path}: only in the {'second' if a is None else 'first'}")
        elif a != b:
            found.append(f"{path}: " + ", ".join(name for name in a if a[name] != b[name]))
    order = [path for path in first if path in second] != [path for path in second if path in first]
    return [*found, *(["the order of entries"] if order else [])]


def _entries(layer: Path) -> dict[str, dict[str, object]]:
    with zstandard.open(layer) as packed, tarfile.open(fileobj=packed, mode="r|") as tar:
        return {member.name: _facts(tar, member) for member in tar}


def _facts(tar: tarfile.TarFile, member: tarfile.TarInfo) -> dict[str, object]:
    content = tar.extractfile(member) if member.isreg() else None
    return {
        "type": member.type,
        "mode": member.mode,
        "owner": (member.uid, member.gid),
        "time": member.mtime,
        "target": member.linkname,
        "content": hashlib.sha256(content.read()).hexdigest() if content else "",
    }


def row(layer: Layer) -> Row:
    """What the record says of a layer."""
    return {"digest": layer.digest, "diff_id": layer.diff_id}


def recorded(path: Path = DIGESTS) -> dict[str, dict[str, Row]]:
    """The record: by line, then by what the layer holds."""
    return tomllib.loads(path.read_text()) if path.exists() else {}


def write(line: str, rows: Mapping[str, Row], path: Path = DIGESTS) -> None:
    """Replaces the rows of one line; those of other lines stay."""
    tables = {**recorded(path), line: dict(rows)}
    parts = [HEADER]
    for name in sorted(tables):
        parts.append(f'\n["{name}"]\n')
        for what, digests in sorted(tables[name].items()):
            parts.append(f'"{what}" = {{ digest = "{digests["digest"]}", diff_id = "{digests["diff_id"]}" }}\n')
    path.write_text("".join(parts))


def changed(rows: Mapping[str, Row], known: Mapping[str, Row]) -> list[str]:
    """What is not as recorded, a line each. A changed diff id is other files, a digest alone other packing."""
    found = []
    for what in sorted(rows.keys() | known.keys()):
        now, then = rows.get(what), known.get(what)
        if now is None or then is None:
            found.append(f"{what}: {'is not a layer any more' if now is None else 'is not recorded'}")
        elif now["diff_id"] != then["diff_id"]:
            found.append(f"{what}: other files (diff id {short(now['diff_id'])}, recorded {short(then['diff_id'])})")
        elif now["digest"] != then["digest"]:
            found.append(f"{what}: the same files, packed otherwise")
    return found
