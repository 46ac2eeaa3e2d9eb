"""A wheel into a layer: PyPA's installer decides what goes where; nothing is unpacked to a disk."""

from __future__ import annotations

import hashlib
import io
import posixpath
import re
import stat
import zipfile
import zlib
from base64 import urlsafe_b64encode
from collections.abc import Iterable, Iterator
from typing import IO, TYPE_CHECKING, BinaryIO, cast

from installer import install
from installer.destinations import WheelDestination
from installer.exceptions import InstallerError
from installer.records import Hash, RecordEntry, parse_record_file
from installer.sources import WheelContentElement, WheelFile
from installer.utils import Scheme, construct_record_file, fix_shebang
from isal import isal_zlib
from isal.igzip_lib import IsalError

from gpuyard.errors import UserError
from gpuyard.layers.container import Filter
from gpuyard.layers.tarball import LayerWriter
from gpuyard.packages.fetcher import Wheel
from gpuyard.packages.locked import rank

if TYPE_CHECKING:
    from installer.scripts import ScriptSection

# As uv writes it, so that images of both builders are equal, RECORD included.
SCRIPT = """\
#!{interpreter}
# -*- coding: utf-8 -*-
import sys
from {module} import {attribute}
if __name__ == "__main__":
    if sys.argv[0].endswith("-script.pyw"):
        sys.argv[0] = sys.argv[0][:-11]
    elif sys.argv[0].endswith(".exe"):
        sys.argv[0] = sys.argv[0][:-4]
    sys.exit({call}())
"""


class Member(io.RawIOBase):
    """A file in a wheel as a stream that knows its size, its CRC-32 and its line of RECORD."""

    def __init__(self, info: zipfile.ZipInfo, stream: BinaryIO, record: RecordEntry) -> None:
        super().__init__()
        self.info, self.record, self._stream = info, record, stream

    def read(self, size: int = -1) -> bytes:
        """Reads from the stream."""
        return self._stream.read(size)


class SortedWheel(WheelFile):
    """A wheel whose content comes in sorted order, with the archive's metadata of each file."""

    def get_contents(self) -> Iterator[WheelContentElement]:
        """Every file, sorted by name."""
        records = {record[0]: record for record in parse_record_file(self.read_dist_info("RECORD").splitlines())}
        for info in sorted(self._zipfile.infolist(), key=lambda info: info.filename):
            if not info.is_dir():
                record = records.get(info.filename, (info.filename, "", ""))
                executable = self.is_executable(info.filename)
                with inflating(self._zipfile, info) as stream:
                    member = Member(info, cast(BinaryIO, stream), RecordEntry.from_elements(*record))
                    yield record, cast(BinaryIO, member), executable

    def is_executable(self, path: str) -> bool:
        """Whether the archive has an execute bit for it."""
        return bool(self._zipfile.getinfo(path).external_attr >> 16 & 0o111)


def inflating(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> IO[bytes]:
    """A file of an archive as a stream, checked by its CRC-32 at the end, inflated by ISA-L instead of zlib.

    zlib's inflate took most of the time of making a layer.
    """
    stream = archive.open(info)
    if info.compress_type == zipfile.ZIP_DEFLATED:
        stream._decompressor = isal_zlib.decompressobj(-zlib.MAX_WBITS)  # type: ignore[attr-defined]
    return stream


class TarDestination(WheelDestination):
    """Writes a wheel's files into a layer, and its Python sources to the compiler."""

    def __init__(self, writer: LayerWriter, wheel: Wheel, bytecode: Filter | None) -> None:
        self.writer, self.wheel, self.bytecode = writer, wheel, bytecode
        self.whose = f"{wheel.name}=={wheel.version}"
        self.record_executable = False
        self._extra: list[RecordEntry] = []
        target = writer.target
        self._places = {
            "purelib": target.site,
            "platlib": target.site,
            "headers": f"{target.prefix}/include/site/python{target.python}/{wheel.name}",
            "scripts": f"{target.prefix}/bin",
            "data": target.prefix,
        }

    def write_script(self, name: str, module: str, attr: str, section: ScriptSection) -> RecordEntry:
        """The script of an entry point."""
        del section  # consoles and desktops differ on Windows only
        if (self.wheel.name, name) == ("pip", "pip3"):
            # pip has a script for the very Python it is installed in, which no wheel for all of them can name.
            self._extra.append(self._script(f"pip{self.writer.target.python}", module, attr))
        return self._script(name, module, attr)

    def _script(self, name: str, module: str, attr: str) -> RecordEntry:
        text = SCRIPT.format(
            interpreter=self.writer.target.interpreter, module=module, attribute=attr.split(".")[0], call=attr
        )
        refuse_path(name, self.wheel.path.name)
        return self._small("scripts", name, text.encode(), True)

    def write_file(self, scheme: Scheme, path: object, stream: BinaryIO, is_executable: bool) -> RecordEntry:
        """A file of the wheel; a script's ``#!python`` becomes the image's."""
        member = cast(Member, stream)
        name = str(path)
        if scheme == "scripts":
            with fix_shebang(cast(BinaryIO, io.BytesIO(member.read())), self.writer.target.interpreter) as fixed:
                return self._small(scheme, name, fixed.read(), True)
        place = posixpath.join(self._places[scheme], name)
        if name.endswith(".py") and scheme in ("purelib", "platlib") and self.bytecode:
            data = member.read()
            self.bytecode.give(place, data)
            self.writer.add_bytes(place, data, self.whose, is_executable)
        else:
            info = member.info
            self.writer.add(place, info.file_size, info.CRC, cast(BinaryIO, member), self.whose, is_executable)
        return RecordEntry(self._relative(scheme, name), member.record.hash_, member.record.size)

    def finalize_installation(
        self, scheme: Scheme, record_file_path: str, records: Iterable[tuple[Scheme, RecordEntry]]
    ) -> None:
        """RECORD, as it is after an installation, sorted."""
        extra = [(Scheme("scripts"), record) for record in self._extra]
        with construct_record_file([*records, *extra]) as stream:
            place = posixpath.join(self._places[scheme], record_file_path)
            self.writer.add_bytes(place, stream.read(), self.whose, self.record_executable)

    def _small(self, scheme: str, name: str, data: bytes, executable: bool) -> RecordEntry:
        self.writer.add_bytes(posixpath.join(self._places[scheme], name), data, self.whose, executable)
        value = urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
        return RecordEntry(self._relative(scheme, name), Hash("sha256", value), len(data))

    def _relative(self, scheme: str, name: str) -> str:
        return posixpath.relpath(posixpath.join(self._places[scheme], name), self._places["purelib"])


def add_wheel(writer: LayerWriter, wheel: Wheel, bytecode: Filter | None) -> None:
    """Adds all of a wheel to a layer. Raises UserError, naming the wheel, if it must not be installed."""
    name = wheel.path.name
    if rank(name, writer.target.python) is None:
        raise UserError(
            "wheel-platform",
            f"{name} is for another Python or platform; expected Python {writer.target.python} on x86-64 Linux",
        )
    try:
        with SortedWheel.open(wheel.path) as source:
            refuse_members(cast(SortedWheel, source), name)
            destination = TarDestination(writer, wheel, bytecode)
            destination.record_executable = cast(SortedWheel, source).is_executable(f"{source.dist_info_dir}/RECORD")
            install(source, destination, {})
    except (zipfile.BadZipFile, IsalError, EOFError, KeyError, ValueError, InstallerError) as error:  # type: ignore[misc]
        raise UserError("wheel-damaged", f"{name} is not a complete wheel: {error}") from error


def refuse_members(source: SortedWheel, wheel: str) -> None:
    """Raises UserError for a wheel with links, paths that leave the prefix, or a path twice."""
    seen = set()
    for info in source._zipfile.infolist():
        refuse_path(info.filename, wheel)
        if stat.S_ISLNK(info.external_attr >> 16):
            raise UserError(
                "wheel-unsafe", f"{wheel} holds a link ({info.filename}); wheels hold files only. Don't install it"
            )
        if info.filename in seen:
            raise UserError("wheel-unsafe", f"{wheel} holds {info.filename} twice. Don't install it")
        seen.add(info.filename)


def refuse_path(path: str, wheel: str) -> None:
    """Raises UserError unless the path stays where it is put."""
    if path.startswith("/") or ".." in path.split("/") or re.search(r"[\\\0\n]", path):
        raise UserError(
            "wheel-unsafe", f"{wheel} holds the path {path!r}, which leaves the installation folder. Don't install it"
        )
