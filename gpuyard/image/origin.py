"""Where the bottom of an image comes from: a registry's image by digest, or a bootstrap of the same system."""

from __future__ import annotations

import hashlib
import json
import os
import re
from pathlib import Path
from typing import Literal

from gpuyard import paths
from gpuyard.catalogue.table import OperatingSystem, Origin
from gpuyard.errors import UserError, warn
from gpuyard.process import TIMED_OUT, attempt, log, run

BaseChoice = Literal["auto", "registry", "bootstrap"]
Answer = Literal["there", "gone", "silent"]
MIRROR = "GPUYARD_MIRROR"
"""The variable that names a registry, and perhaps a name on it, that holds copies of the bases."""
BOOTSTRAP = paths.DOCKER / "bootstrap-rootfs.sh"


def pulled(image: str) -> str:
    """The reference to pull an image by: under the mirror that GPUYARD_MIRROR names, if it does.

    The digest fixes the content, so a mirror can't change an image. Raises UserError for a malformed value.
    """
    mirror = os.environ.get(MIRROR, "").rstrip("/")
    if mirror and not re.fullmatch(r"[\w.-]+(:\d+)?(/[a-z0-9._/-]+)?", mirror):
        raise UserError("mirror-invalid", f"{MIRROR} is {mirror!r}: expected HOST[:PORT][/NAME], without https://")
    return f"{mirror}/{image}" if mirror else image


def ask(image: str, seconds: float = 15) -> Answer:
    """Whether a registry has the image: ``there``, ``gone`` (it answers and has it not), or ``silent``."""
    code, said = _imagetools(image, seconds)
    if code == 0:
        return "there"
    return "gone" if re.search(r"not found|manifest unknown|MANIFEST_UNKNOWN|NAME_UNKNOWN", said) else "silent"


def newest(image: str, seconds: float = 15) -> str | None:
    """The digest that the image's tag stands for now, or None."""
    code, said = _imagetools(image.partition("@")[0], seconds, "--format", "{{json .Manifest.Digest}}")
    return json.loads(said.strip().splitlines()[-1]) if code == 0 else None


def _imagetools(image: str, seconds: float, *options: str) -> tuple[int, str]:
    try:
        done = attempt(["docker", "buildx", "imagetools", "inspect", *options, image], seconds=seconds)
    except UserError as error:
        return TIMED_OUT, str(error)
    return done.code, done.output


def removed(name: str, system: OperatingSystem) -> str:
    """The message about a base that was removed upstream: what it was, and what can replace it."""
    tag, _, digest = system.image.partition("@")
    lost = f"the base image {tag} was removed upstream: the registry answers and no longer has {digest}"
    if fresh := newest(pulled(system.image)):
        return (
            f"{lost} Its tag now stands for {fresh}: put that into images/catalogue.toml (os.{name}), and build again"
        )
    return (
        f"{lost} Its tag is gone too. Take it from a mirror ({MIRROR}=HOST/NAME, made by gpuyard bases --mirror), "
        f"or another operating system (gpuyard bases --check says which resolve)"
    )


def choose(name: str, system: OperatingSystem, wanted: BaseChoice) -> Origin:
    """The origin to build from. Raises UserError if the wanted one is not declared or not available."""
    if wanted != "auto" and wanted not in system.origins:
        raise UserError(
            "base-not-declared", f"{name} is not declared for --base {wanted}; declared: {', '.join(system.origins)}"
        )
    if wanted == "bootstrap":
        return "bootstrap"
    answer = ask(pulled(system.image))
    if answer == "there":
        return "registry"
    if wanted == "auto" and "bootstrap" in system.origins:
        if answer == "gone":
            warn("base-removed", f"{removed(name, system)}. Bootstrapping the same system instead")
        return "bootstrap"
    if answer == "gone":
        raise UserError("base-removed", removed(name, system))
    raise UserError(
        "base-unreachable",
        f"the base image {pulled(system.image).split('@')[0]} can't be resolved: no registry answers. Check the "
        f"network, name a mirror ({MIRROR}=HOST/NAME), or use an operating system that can be bootstrapped",
    )


def rootfs(system: OperatingSystem) -> Path:
    """The bootstrapped root file system of this row as a tar file, made once per row, script and machine.

    The same row and the same state of the archive give the same bytes.
    """
    epoch = int(system.epoch.timestamp())
    folder = paths.cache_folder() / f"rootfs-{system.suite}-{epoch}-{bootstrap_checksum()[:12]}"
    tar = folder / "rootfs.tar"
    if not tar.exists():
        bootstrap(system, tar)
    return tar


def bootstrap_checksum() -> str:
    """The checksum of the script: a tar made by another text of it is stale."""
    return hashlib.sha256(BOOTSTRAP.read_bytes()).hexdigest()


def bootstrap(system: OperatingSystem, tar: Path) -> None:
    """Bootstraps the system into ``tar``. Raises UserError where that needs another machine or user."""
    if os.geteuid() != 0:
        raise UserError("bootstrap-needs-root", "bootstrapping needs root: run as root, or where a registry answers")
    log.warning("bootstrapping %s from Debian's packages (about a minute)", system.suite)
    tar.parent.mkdir(parents=True, exist_ok=True)
    env = {**os.environ, "SOURCE_DATE_EPOCH": str(int(system.epoch.timestamp()))}
    run(["bash", str(BOOTSTRAP), str(system.suite), str(tar)], env=env, hint="The bootstrap failed.")
