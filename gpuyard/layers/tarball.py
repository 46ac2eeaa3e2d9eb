"""Writing a layer: one stream through tar, hash, zstd and hash again into a file."""

from __future__ import annotations

import hashlib
import io
import posixpath
import tarfile
import zlib
from types import TracebackType
from typing import IO, BinaryIO, Self, cast

import zstandard

from gpuyard.layers.model import Layer, Packing, Paths, Target
from gpuyard.store.store import CHUNK


def parameters(packing: Packing) -> zstandard.ZstdCompressionParameters:
    """The parameters as zstandard names them; each frame carries a checksum of its content."""
    return zstandard.ZstdCompressionParameters.from_level(
        packing.level,
        window_log=packing.window_log,
        hash_log=packing.hash_log,
        min_match=packing.min_match,
        write_checksum=True,
    )


class Hashing(io.RawIOBase):
    """A writer that passes everything on and computes its SHA-256 and size."""

    def __init__(self, below: BinaryIO) -> None:
        super().__init__()
        self._below, self._hash, self._size = below, hashlib.sha256(), 0

    def write(self, data: bytes) -> int:  # type: ignore[override]
        self._hash.update(data)
        self._below.write(data)
        self._size += len(data)
        return len(data)

    def tell(self) -> int:
        return self._size

    @property
    def digest(self) -> str:
        return "sha256:" + self._hash.hexdigest()


class LayerWriter:
    """Writes entries in the given order, each directory before its content.

    Times, owners and modes follow from the target alone. Memory stays at a few buffers, whatever
    the size of the files.
    """

    def __init__(self, file: BinaryIO, target: Target) -> None:
        self.target = target
        self.members = 0
        self._paths = Paths()
        self._directories: set[str] = {""}
        self._packed = Hashing(file)
        packer = zstandard.ZstdCompressor(compression_params=parameters(target.packing))
        self._packer = packer.stream_writer(cast(IO[bytes], self._packed), closefd=False)
        self._plain = Hashing(cast(BinaryIO, self._packer))
        self._tar = tarfile.TarFile(fileobj=cast(IO[bytes], self._plain), mode="w", format=tarfile.PAX_FORMAT)
        self._tar.copybufsize = CHUNK  # type: ignore[attr-defined]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        if kind is None:
            self._tar.close()
            self._packer.close()  # type: ignore[no-untyped-call]

    def add(self, path: str, size: int, crc: int, stream: IO[bytes], whose: str, executable: bool = False) -> None:
        """A file from a stream of that size and CRC-32, owned by the user of the virtual environment."""
        if self._paths.add(path, whose, f"{size}-{crc:08x}"):
            entry = self._entry(path, 0o755 if executable else 0o644, self.target.owner)
            entry.size = size
            self._tar.addfile(entry, stream)

    def add_bytes(self, path: str, data: bytes, whose: str, executable: bool = False) -> None:
        """A small file of the user."""
        self.add(path, len(data), zlib.crc32(data), io.BytesIO(data), whose, executable)

    def add_derived(self, path: str, size: int, stream: IO[bytes]) -> None:
        """A file made from others of this layer, such as byte code."""
        entry = self._entry(path, 0o644, self.target.owner_of(path))
        entry.size = size
        self._tar.addfile(entry, stream)

    def add_member(self, member: tarfile.TarInfo, stream: IO[bytes] | None) -> None:
        """An entry of another tar, with its type, mode and owner."""
        path = member.name.strip("/")
        if member.isdir():
            self._directories.add(path)
        entry = self._entry(path, member.mode, member.uid)
        entry.type, entry.linkname, entry.size, entry.gid = member.type, member.linkname, member.size, member.gid
        self._tar.addfile(entry, stream)

    def directory(self, path: str) -> None:
        """A directory and its parents, unless they were written before."""
        if path in self._directories:
            return
        self._directories.add(path)
        entry = self._entry(path, 0o755, self.target.owner_of(path))
        entry.type = tarfile.DIRTYPE
        self._tar.addfile(entry)

    def layer(self, annotations: dict[str, str]) -> Layer:
        """The written layer; call it after closing."""
        return Layer(self._packed.digest, self._packed.tell(), self._plain.digest, annotations, self._paths.files)

    def _entry(self, path: str, mode: int, owner: int) -> tarfile.TarInfo:
        self.directory(posixpath.dirname(path))
        self.members += 1
        entry = tarfile.TarInfo(path)
        entry.mode, entry.uid, entry.gid, entry.mtime = mode, owner, owner, self.target.epoch
        return entry
