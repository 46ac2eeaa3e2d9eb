"""Paths opened component by component without following a link.

Root works on folders that others can write to, such as volumes. A path could be redirected by a link, or replaced
between a check and a use; a descriptor can't.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Iterator
from pathlib import Path

_SEEN = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_FOLDER = _SEEN | os.O_DIRECTORY
_AT_EMPTY_PATH = 0x1000


@contextlib.contextmanager
def opened(path: Path, folder: bool = False) -> Iterator[int]:
    """A descriptor (``O_PATH``) of an absolute path; the last component may be a link, which is then itself opened.

    ``folder``: the last component must be a folder. Raises OSError where another component is not a folder.
    """
    parts = path.parts[1:]
    at = os.open("/", _FOLDER)
    try:
        for index, part in enumerate(parts):
            below = os.open(part, _SEEN if index == len(parts) - 1 and not folder else _FOLDER, dir_fd=at)
            os.close(at)
            at = below
        yield at
    finally:
        os.close(at)


@contextlib.contextmanager
def opened_below(folder: int, name: str) -> Iterator[int]:
    """A descriptor (``O_PATH``) of an entry of an open folder."""
    descriptor = os.open(name, _SEEN, dir_fd=folder)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def names(folder: int) -> list[str]:
    """The entries of an open folder in order. Raises OSError where it can't be read."""
    readable = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
    try:
        return sorted(os.listdir(readable))  # noqa: PTH208
    finally:
        os.close(readable)


def chown(descriptor: int, uid: int, gid: int) -> None:
    """Changes the owner of exactly what was opened. Raises OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    # fchown refuses O_PATH descriptors; this call takes them, and a link's own, too.
    if libc.fchownat(descriptor, b"", ctypes.c_uint(uid), ctypes.c_uint(gid), _AT_EMPTY_PATH) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def read(path: Path) -> bytes:
    """A file's content. Raises OSError where a component is a link or the file is not a regular one."""
    with opened(path.parent, folder=True) as folder:
        descriptor = os.open(path.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    with os.fdopen(descriptor, "rb") as file:
        return file.read()


def write(folder: int, name: str, text: str) -> None:
    """Puts a file with mode 0644 into an open folder, the whole file at once. Raises OSError."""
    fresh = f".{name}.gpuyard"
    with contextlib.suppress(FileNotFoundError):
        os.unlink(fresh, dir_fd=folder)
    descriptor = os.open(
        fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=folder
    )
    with os.fdopen(descriptor, "w", encoding="utf-8") as out:
        out.write(text)
        os.fchmod(descriptor, 0o644)
    os.replace(fresh, name, src_dir_fd=folder, dst_dir_fd=folder)


def first_link(path: Path) -> Path | None:
    """The first component of a path that is a link, or None."""
    return next((place for place in (*reversed(path.parents), path) if place.is_symlink()), None)
