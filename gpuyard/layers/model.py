"""What a layer is made for, and what is known of one that was made."""

from __future__ import annotations

from collections.abc import Mapping
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
    """The inputs of a layer beside its content: where it lies, for whom, and how it is packed."""

    python: str
    epoch: int
    prefix: str = "opt/venv"
    owner: int = 1000
    packing: Packing = Packing()

    @property
    def site(self) -> str:
        """Where packages go."""
        return f"{self.prefix}/lib/python{self.python}/site-packages"

    @property
    def interpreter(self) -> str:
        """What a script's first line names."""
        return f"/{self.prefix}/bin/python"

    def owner_of(self, directory: str) -> int:
        """The virtual environment is the user's; the system around it is root's."""
        return self.owner if f"{directory}/".startswith(f"{self.prefix}/") else 0


@dataclass(frozen=True)
class Layer:
    """A layer in the store. ``files`` says of each path whose it is and what its content is.

    ``digest`` is of the blob, ``diff_id`` of the tar in it; both as ``sha256:…``.
    """

    digest: str
    size: int
    diff_id: str
    annotations: Mapping[str, str]
    files: Mapping[str, tuple[str, str]] = field(repr=False)

    def as_json(self) -> dict[str, Any]:
        """The record of this layer."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Layer:
        """The layer of a record."""
        files = {path: (owner, content) for path, (owner, content) in data["files"].items()}
        return cls(data["digest"], data["size"], data["diff_id"], data["annotations"], files)


def refuse_conflicts(layers: list[Layer]) -> None:
    """Raises UserError, naming both, if two wheels bring the same path with different content."""
    seen: dict[str, tuple[str, str]] = {}
    for layer in layers:
        for path, (owner, content) in layer.files.items():
            first, same = seen.setdefault(path, (owner, content))
            if same != content:
                raise UserError(conflict(path, first, owner))


def conflict(path: str, one: str, other: str) -> str:
    """The line that says so."""
    return (
        f"/{path} is in {one} and, with other content, in {other}: which one wins would depend on the order. "
        "Lock a version of one of them that leaves it out"
    )
