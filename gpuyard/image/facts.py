"""Facts read in an image, and the tags that follow from them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gpuyard import paths
from gpuyard.catalogue.claims import LABEL
from gpuyard.errors import UserError
from gpuyard.layers.scan import Contents
from gpuyard.process import run

COMMIT = 12
DIRTY = "-dirty"


@dataclass(frozen=True)
class Facts:
    """Versions from an image's files, and the commit from its label."""

    torch: str
    cuda: str
    python: str
    os_id: str
    os_version: str
    revision: str
    image: Mapping[str, Any]
    """Its /etc/gpuyard/image.json."""

    @property
    def full(self) -> str:
        """Release, CUDA variant, Python and operating system, as the full tag spells them."""
        release, _, variant = self.torch.partition("+")
        return f"{release}-{variant or 'cpu'}-py{self.python}-{self.os_id}{self.os_version}"


@dataclass(frozen=True)
class Tags:
    """An image's tags on a registry. ``immutable`` is empty if it was built from uncommitted changes."""

    moving: tuple[str, ...]
    full: str
    immutable: str

    @property
    def in_order(self) -> tuple[str, ...]:
        """In the order of pushing: the immutable one first, those that people type last."""
        return tuple(tag for tag in (self.immutable, self.full, *reversed(self.moving)) if tag)


def facts(contents: Contents, labels: Mapping[str, str]) -> Facts:
    """The facts of an image. Raises UserError naming the file that is missing or lacks the value."""
    torch = _one(contents, "site-packages/torch/version.py")
    system = _one(contents, "usr/lib/os-release")
    try:
        claims = json.loads(_one(contents, "etc/gpuyard/image.json"))
    except ValueError as error:
        raise UserError("image-facts-unreadable", f"/etc/gpuyard/image.json is not JSON: {error}") from error
    if not isinstance(claims, dict):
        raise UserError("image-facts-unreadable", "/etc/gpuyard/image.json is not a table")
    version = _find(r"^version\s*=\s*(\d+\.\d+)", _one(contents, "opt/venv/pyvenv.cfg"), "pyvenv.cfg: version")
    return Facts(
        torch=_find(r"^__version__\s*(?::[^=]+)?=\s*['\"]([^'\"]+)", torch, "torch/version.py: __version__"),
        cuda=_find(r"^cuda\s*(?::[^=]+)?=\s*['\"]([^'\"]+)", torch, "torch/version.py: cuda"),
        python=version,
        os_id=_find(r'^ID="?([a-z]+)', system, "os-release: ID"),
        os_version=_find(r'^VERSION_ID="?([\d.]+)', system, "os-release: VERSION_ID"),
        revision=str(labels.get("org.opencontainers.image.revision") or ""),
        image=claims,
    )


def _one(contents: Contents, ending: str) -> str:
    found = [text for path, text in contents.files.items() if path == ending or path.endswith(f"/{ending}")]
    if len(found) != 1:
        many = f"{len(found)} times" if found else "not"
        raise UserError("image-facts-unreadable", f"…/{ending} is {many} in the image, so its tags can't be derived")
    return found[0]


def _find(pattern: str, text: str, what: str) -> str:
    found = re.search(pattern, text, re.MULTILINE)
    if not found:
        raise UserError("image-facts-unreadable", f"{what} was not found in the image, so its tags can't be derived")
    return found[1]


def refuse_untrue(found: Facts, labels: Mapping[str, str]) -> None:
    """Raises UserError if an image's claims differ from its files."""
    versions = found.image.get("versions") or {}
    os_name = f"{found.os_id}-{found.os_version}"
    pairs = (
        ("torch", found.torch, versions.get("torch")),
        ("CUDA", found.cuda, versions.get("cuda")),
        ("Python", found.python, versions.get("python")),
        ("operating system", os_name, str(found.image.get("os", ""))[: len(os_name)]),
        *((f"label {name}", labels.get(f"{LABEL}.{name}"), found.image.get(name)) for name in ("line", "image")),
    )
    for what, real, claimed in pairs:
        if real != claimed:
            raise UserError(
                "image-claims-false",
                f"the image claims {what} {claimed}, and its files have {real}. Build it again: gpuyard build",
            )


def tags(found: Facts, suffix: str, date: str) -> Tags:
    """The tags of an image of that suffix (``-runtime``) whose commit is of that date (``20310102``)."""
    series = ".".join(found.torch.split(".")[:2])
    full = found.full + suffix
    clean = found.revision and not found.revision.endswith(DIRTY)
    immutable = f"{full}-{date}-g{found.revision[:COMMIT]}" if clean and date else ""
    return Tags((f"v{series}{suffix}", f"{series}{suffix}"), full, immutable)


def commit_date(revision: str) -> str:
    """The day of a commit of this checkout, ``20310102``; empty for uncommitted changes and unknown commits."""
    if not re.fullmatch(r"[0-9a-f]{40,64}", revision):
        return ""
    git = ["git", "-C", str(paths.ROOT), "show", "-s", "--format=%cd", "--date=format-local:%Y%m%d", revision]
    try:
        return run(git).strip()
    except UserError:
        return ""
