"""Reads what a shared library needs from its ELF headers, with the standard library alone.

The suite is mounted into images that are not ours, so it cannot count on pyelftools.
"""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass
from typing import BinaryIO, Dict, List, Optional, Tuple

PT_LOAD, PT_DYNAMIC = 1, 2
NEEDED, STRTAB, STRSZ, SONAME, RPATH, RUNPATH = 1, 5, 10, 14, 15, 29
MOST = 1 << 28
"""No table is longer; a damaged header may say that one is, and reading sets that much memory aside."""


@dataclass(frozen=True)
class Library:
    """The dynamic section: own name, names of what it needs, and its search path ($ORIGIN resolved)."""

    path: str
    soname: str
    needed: Tuple[str, ...]
    search: Tuple[str, ...]


def read_library(path: str) -> Optional[Library]:
    """The library; None unless it is a complete 64-bit little-endian ELF file with a dynamic section."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - thousands of files: Path.open costs twice as much
            return _parse(path, file)
    except (OSError, struct.error, LookupError, StopIteration, ValueError, OverflowError):
        return None


def _parse(path: str, file: BinaryIO) -> Optional[Library]:
    header = file.read(64)
    if header[:6] != b"\x7fELF\x02\x01":
        return None
    offset, size, count = struct.unpack_from("<Q", header, 32)[0], *struct.unpack_from("<HH", header, 54)
    file.seek(offset)
    table = file.read(min(size * count, MOST))
    segments = [struct.unpack_from("<IIQQQQ", table, index * size) for index in range(count)]
    dynamic = next((s for s in segments if s[0] == PT_DYNAMIC), None)
    if dynamic is None:
        return None
    file.seek(dynamic[2])
    entries = struct.iter_unpack("<qQ", _whole(file.read(min(dynamic[5], MOST))))
    values: Dict[int, List[int]] = {}
    for tag, value in entries:
        values.setdefault(tag, []).append(value)
    names = _strings(file, segments, values)
    return _library(path, values, names)


def _whole(data: bytes) -> bytes:
    return data[: len(data) // 16 * 16]


def _strings(file: BinaryIO, segments: List[Tuple[int, ...]], values: Dict[int, List[int]]) -> bytes:
    """The table of names: its address is translated to a place in the file by the loaded segments."""
    address, size = values[STRTAB][0], values[STRSZ][0]
    load = next(s for s in segments if s[0] == PT_LOAD and s[3] <= address < s[3] + s[5])
    file.seek(address - load[3] + load[2])
    return file.read(min(size, MOST))


def _library(path: str, values: Dict[int, List[int]], names: bytes) -> Library:
    def texts(*tags: int) -> List[str]:
        places = [place for tag in tags for place in values.get(tag, [])]
        return [names[place : names.index(b"\0", place)].decode() for place in places]

    origin = os.path.dirname(path)  # noqa: PTH120 - see read_library
    found = [part for text in texts(RPATH, RUNPATH) for part in text.split(":") if part]
    search = [part.replace("${ORIGIN}", origin).replace("$ORIGIN", origin) for part in found]
    return Library(path, "".join(texts(SONAME)[:1]), tuple(texts(NEEDED)), tuple(search))
