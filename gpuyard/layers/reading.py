"""Layers as they are read: the tar in a blob, and every file of every layer of an image, deleted ones included.

Nothing is unpacked to a disk. There are two ways to the layers of an image in an engine: the directories of which
a running container's overlay is made (a second, for root on the engine's machine), or the stream of `docker save`
(any engine; as fast as it can be read).
"""

from __future__ import annotations

import gzip
import io
import os
import re
import tarfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

import docker
import zstandard
from docker.models.containers import Container

BUFFER = 1 << 20
PEEK = 16 << 10
HIDDEN = ".wh."
"""The beginning of a whiteout's name: it hides a path of the layers below."""
_MARK = re.compile(rb"-----BEGIN [A-Z ]*PRIVATE KEY-----")
# Packages ship keys for their own tests; what is installed from a signed archive or by hash from a
# lock holds no secret of ours. Names are judged there all the same.
_PUBLISHED = ("/site-packages/", "/dist-packages/", "/usr/share/", "/usr/lib/", "/usr/include/")


@dataclass(frozen=True)
class Entry:
    """A file in a layer (``layer`` counts or names it). ``private``: it begins with a private key."""

    layer: str
    path: str
    size: int
    private: bool = False


def read_layers(
    client: docker.DockerClient, image: str, container: Container, tell: Callable[[str], None]
) -> list[Entry]:
    """The entries of all layers, by the fastest way that works here."""
    folders = overlay_folders(container)
    if folders:
        return [entry for number, folder in enumerate(folders) for entry in walk(folder, f"layer {number}")]
    tell("reading the layers from docker save (as root on the engine's machine this takes a second)")
    return list(read_save(Stream(client.api.get_image(image))))


def overlay_folders(container: Container) -> list[Path]:
    """The lower directories of a running container's root, bottom first; none if they can't be read."""
    try:
        text = Path(f"/proc/{container.attrs['State']['Pid']}/mountinfo").read_text()
    except OSError:
        return []
    folders = lower_folders(text)
    complete = bool(folders) and all(f.is_absolute() and os.access(f, os.R_OK | os.X_OK) for f in folders)
    return folders if complete else []


def lower_folders(mountinfo: str) -> list[Path]:
    """The lower directories of the overlay mounted on ``/``, bottom first.

    Of many layers they are given relative to the folder of all layers, two above the upper directory: the options
    of a mount have to fit on a page.
    """
    for line in mountinfo.splitlines():
        place, _, source = line.partition(" - ")
        found = re.search(r"lowerdir=([^,]+),upperdir=([^,]+)", source)
        if place.split()[4:5] == ["/"] and source.startswith("overlay") and found:
            return [Path(found[2]).parents[1] / folder for folder in reversed(found[1].split(":"))]
    return []


def walk(folder: Path, layer: str) -> Iterator[Entry]:
    """The files below a layer's directory; links are entries, and are not followed."""
    root, pending = str(folder), [str(folder)]
    while pending:
        with os.scandir(pending.pop()) as listed:
            for item in listed:
                if item.is_dir(follow_symlinks=False):
                    pending.append(item.path)
                else:
                    yield _entry(item, item.path.removeprefix(root), layer)


def _entry(item: os.DirEntry[str], path: str, layer: str) -> Entry:
    size = item.stat(follow_symlinks=False).st_size
    readable = item.is_file(follow_symlinks=False) and _worth_reading(path, size)
    return Entry(layer, path, size, readable and _holds_key(Path(item.path).read_bytes()))


class Stream(io.RawIOBase):
    """A readable file made of chunks of bytes."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        super().__init__()
        self._chunks = iter(chunks)
        self._rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, into: memoryview | bytearray) -> int:  # type: ignore[override]
        """As many bytes as one chunk still holds; 0 at the end."""
        while not self._rest:
            chunk = next(self._chunks, None)
            if chunk is None:
                return 0
            self._rest = chunk
        size = min(len(into), len(self._rest))
        into[:size], self._rest = self._rest[:size], self._rest[size:]
        return size


def read_save(stream: Stream) -> Iterator[Entry]:
    """The entries of all layers in a `docker save` stream, of either image store."""
    with tarfile.open(fileobj=io.BufferedReader(stream, BUFFER), mode="r|", bufsize=BUFFER) as outer:
        for member in outer:
            content = outer.extractfile(member) if member.isfile() else None
            layer = unpacked(content) if content else None
            if layer:
                yield from read_layer(layer, Path(member.name).name[:12])


def unpacked(content: IO[bytes]) -> IO[bytes] | None:
    """The uncompressed tar in a layer's blob, whichever way it is compressed; None for other blobs."""
    source = io.BufferedReader(cast(io.RawIOBase, content), BUFFER)
    head = source.peek(512)[:512]
    if head.startswith(b"\x1f\x8b"):
        return cast(IO[bytes], gzip.GzipFile(fileobj=source))
    if head.startswith(b"\x28\xb5\x2f\xfd"):
        reader = zstandard.ZstdDecompressor().stream_reader(source, read_across_frames=True)
        return io.BufferedReader(cast(io.RawIOBase, reader), BUFFER)
    return source if head[257:262] == b"ustar" else None


def path_of(member: tarfile.TarInfo) -> str:
    """An entry's path from the root, without the slash."""
    return member.name.removeprefix("./").strip("/")


def read_layer(layer: IO[bytes], name: str) -> Iterator[Entry]:
    """The files in a layer's tar; whiteouts, which hide a lower file, are not files."""
    with tarfile.open(fileobj=layer, mode="r|", bufsize=BUFFER) as tar:
        for member in tar:
            path = "/" + path_of(member)
            if member.isdir() or Path(path).name.startswith(HIDDEN):
                continue
            content = tar.extractfile(member) if member.isreg() and _worth_reading(path, member.size) else None
            yield Entry(name, path, member.size, bool(content and _holds_key(content.read())))


def _worth_reading(path: str, size: int) -> bool:
    return 0 < size <= PEEK and not any(part in path for part in _PUBLISHED)


def _holds_key(data: bytes) -> bool:
    return _MARK.search(data) is not None
