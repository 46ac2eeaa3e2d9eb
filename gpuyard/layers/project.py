"""A project's own files as a layer: a pure function of their paths, bytes and modes."""

from __future__ import annotations

import hashlib
import io
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from gpuyard.layers.model import Layer, Target
from gpuyard.layers.tarball import LayerWriter

GROUP = 0
"""Root's group, as of the image's /workspace: any uid of a container is in it, so any uid may write."""


@dataclass(frozen=True)
class Entry:
    """A file of the layer: where it lies in the image, its content, and whether it is a program.

    ``content`` is a file to read, or the bytes themselves. ``link`` is a symbolic link's target, and then the whole
    content.
    """

    path: str
    content: Path | bytes = b""
    executable: bool = False
    link: str = ""
    system: bool = False
    """Whether it belongs to root, and is not for the project's user to change."""

    @property
    def size(self) -> int:
        return len(self.content) if isinstance(self.content, bytes) else self.content.stat().st_size

    def open(self) -> IO[bytes]:
        """Its content as a stream."""
        return io.BytesIO(self.content) if isinstance(self.content, bytes) else self.content.open("rb")


def project_layer(entries: Sequence[Entry], folder: str, target: Target, out: Path) -> Layer:
    """Writes the layer; entries in the order of their paths, each folder before what is in it."""
    with out.open("wb") as file, LayerWriter(file, target) as writer:
        made: set[str] = {""}
        for entry in sorted(entries, key=lambda entry: entry.path):
            for place in reversed([*map(str, Path(entry.path).parents)][:-1]):
                if place not in made and f"{place}/".startswith(f"{folder}/"):
                    made.add(place)
                    writer.add_member(_member(place, target, 0o775, tarfile.DIRTYPE), None)
            _add(writer, entry, target)
    return writer.layer({"io.gpuyard.files": f"/{folder}"})


def content_of(entries: Sequence[Entry]) -> list[list[object]]:
    """What the layer is made from, for its key."""
    return [
        [entry.path, _sha256(entry), entry.executable, entry.link, entry.system]
        for entry in sorted(entries, key=lambda entry: entry.path)
    ]


def _sha256(entry: Entry) -> str:
    with entry.open() as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()  # type: ignore[arg-type]


def _add(writer: LayerWriter, entry: Entry, target: Target) -> None:
    mode = 0o775 if entry.executable else 0o664
    if entry.system:
        member = tarfile.TarInfo(entry.path)
        member.mode, member.uid, member.gid = 0o644, 0, 0
    else:
        member = _member(entry.path, target, mode, tarfile.SYMTYPE if entry.link else tarfile.REGTYPE)
    member.linkname, member.size = entry.link, entry.size
    with entry.open() as stream:
        writer.add_member(member, None if entry.link else stream)


def _member(path: str, target: Target, mode: int, kind: bytes) -> tarfile.TarInfo:
    member = tarfile.TarInfo(path)
    member.type, member.mode, member.uid, member.gid = kind, mode, target.owner, GROUP
    return member
