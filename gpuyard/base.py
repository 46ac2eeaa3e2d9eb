"""Where the bottom of an image comes from: a registry's image by digest, or a bootstrap of the same system."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Literal

from gpuyard import paths
from gpuyard.catalogue import OperatingSystem, Origin
from gpuyard.errors import UserError
from gpuyard.process import log, run

Choice = Literal["auto", "registry", "bootstrap"]
BOOTSTRAP = paths.DOCKER / "bootstrap-rootfs.sh"


def cache_folder() -> Path:
    """The user's cache folder for downloads and root file systems that outlive a checkout."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gpuyard"


def registry_answers(image: str, seconds: float = 15) -> bool:
    """Whether the image can be resolved from here within ``seconds``."""
    command = ["docker", "buildx", "imagetools", "inspect", image]
    try:
        done = subprocess.run(command, check=False, capture_output=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def choose(name: str, system: OperatingSystem, wanted: Choice) -> Origin:
    """The origin to build from. Raises UserError if the wanted one is not declared or not to be had."""
    if wanted != "auto" and wanted not in system.origins:
        raise UserError(f"{name} is not declared for --base {wanted}; declared: {', '.join(system.origins)}")
    if wanted == "bootstrap":
        return "bootstrap"
    if registry_answers(system.image):
        return "registry"
    if wanted == "auto" and "bootstrap" in system.origins:
        return "bootstrap"
    raise UserError(
        f"the base image {system.image.split('@')[0]} can't be resolved: no registry answers, or it was removed. "
        f"Check the network, or use an operating system that can be bootstrapped"
    )


def rootfs(system: OperatingSystem) -> Path:
    """The bootstrapped root file system of this row as a tar file, made once per row and machine.

    The same row and the same state of the archive give the same bytes.
    """
    epoch = int(system.epoch.timestamp())
    folder = cache_folder() / f"rootfs-{system.suite}-{epoch}"
    tar = folder / "rootfs.tar"
    if not tar.exists():
        bootstrap(system, tar)
    return tar


def bootstrap(system: OperatingSystem, tar: Path) -> None:
    """Bootstraps the system into ``tar``. Raises UserError where that needs another machine or user."""
    if os.geteuid() != 0:
        raise UserError("bootstrapping a root file system needs root; run as root, or where a registry answers")
    log.warning("no registry answers: bootstrapping %s from Debian's packages (about a minute)", system.suite)
    tar.parent.mkdir(parents=True, exist_ok=True)
    env = {**os.environ, "SOURCE_DATE_EPOCH": str(int(system.epoch.timestamp()))}
    run(["bash", str(BOOTSTRAP), str(system.suite), str(tar)], env=env, hint="The bootstrap failed.")
