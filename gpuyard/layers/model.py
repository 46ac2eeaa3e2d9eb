"""Layer inputs and results, and the paths that the wheels of an image may not both bring."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from gpuyard.errors import UserError


@dataclass(frozen=True)
class Packing:
    """zstd's parameters, chosen by `make bench-compression`: faster than level 3, and smaller.

    CUDA libraries repeat themselves over megabytes, so a wide window with a larger hash table finds what
    a higher level would; 2^23 is the widest window that every decoder has to support (RFC 8878, 3.1.1.1.2).
    """

    level: int = 1
    window_log: int = 23
    hash_log: int = 18
    min_match: int = 7


@dataclass(frozen=True)
class Target:
    """The inputs of a layer beside its content: its place, its owner, and how it is packed."""

    python: str
    epoch: int
    prefix: str = "opt/venv"
    owner: int = 1000
    packing: Packing = Packing()

    @property
    def site(self) -> str:
        """The folder of packages."""
        return f"{self.prefix}/lib/python{self.python}/site-packages"

    @property
    def interpreter(self) -> str:
        """The program in a script's first line."""
        return f"/{self.prefix}/bin/python"

    def owner_of(self, directory: str) -> int:
        """The virtual environment is the user's; the system around it is root's."""
        return self.owner if f"{directory}/".startswith(f"{self.prefix}/") else 0


@dataclass(frozen=True)
class Layer:
    """A layer in the store. ``files`` gives the owner and a checksum for each path.

    ``digest`` is of the blob, ``diff_id`` of the tar in it; both as ``sha256:…``.
    """

    digest: str
    size: int
    diff_id: str
    annotations: Mapping[str, str]
    files: Mapping[str, tuple[str, str]] = field(repr=False)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Layer:
        files = {path: (owner, content) for path, (owner, content) in data["files"].items()}
        return cls(data["digest"], data["size"], data["diff_id"], data["annotations"], files)


class Paths:
    """The paths that wheels bring, each with one owner and one content, and none both a file and a folder."""

    def __init__(self) -> None:
        self.files: dict[str, tuple[str, str]] = {}
        self._folders: dict[str, str] = {}

    def add(self, path: str, owner: str, content: str) -> bool:
        """Whether this owner is the first to bring the path. Raises UserError, naming both owners of a conflict."""
        for folder in _folders(path):
            if folder in self.files:
                raise _file_and_folder(folder, self.files[folder][0], owner)
            if folder in self._folders:
                break
            self._folders[folder] = owner
        if path in self._folders:
            raise _file_and_folder(path, owner, self._folders[path])
        first, same = self.files.setdefault(path, (owner, content))
        if first != owner and same != content:
            raise UserError(
                "wheel-conflict",
                f"/{path} is in {first} and, with other content, in {owner}: which one wins would depend on the order. "
                "Lock a version of one of them without that file",
            )
        return first == owner


def _folders(path: str) -> Iterator[str]:
    while path := posixpath.dirname(path):
        yield path


def _file_and_folder(path: str, file: str, folder: str) -> UserError:
    return UserError(
        "wheel-conflict",
        f"/{path} is a file in {file} and a folder in {folder}: an image cannot hold both. "
        "Lock a version of one of them without that path",
    )


def refuse_conflicts(layers: Iterable[Layer]) -> None:
    """Raises UserError, naming both, if two wheels bring one path with different content, or as file and folder."""
    seen = Paths()
    for layer in layers:
        for path, (owner, content) in layer.files.items():
            seen.add(path, owner, content)
