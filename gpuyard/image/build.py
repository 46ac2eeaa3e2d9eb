"""Building an image: check everything first, then hand BuildKit one definition."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from docker.errors import ImageNotFound
from docker.models.images import Image as EngineImage

from gpuyard import indexes, paths
from gpuyard.catalogue.product import Product
from gpuyard.engine import daemon
from gpuyard.errors import UsageError, UserError, warn
from gpuyard.image import buildkit, load, sizes
from gpuyard.image import origin as origins
from gpuyard.image.assemble import Options, assemble
from gpuyard.image.oci import Image, write_layout
from gpuyard.image.preload import Preloader
from gpuyard.packages import uv
from gpuyard.packages.fetcher import Fetcher, requirements
from gpuyard.process import log, run
from gpuyard.store import usage
from gpuyard.store.store import Damaged, Store

Builder = Literal["dockerfile", "layers"]

COLD_GB = 24.0
"""Disk of the engine that a first build of one line by BuildKit needs, with its caches (measured)."""
LAYERS_GB = {"engine": 12.0, "store": 10.0}
"""The same for a build from layers: the image unpacked, and its wheels and layers in the store."""
WARM_GB = 3.0
"""Disk that a build needs when the image, or another of its line, is there and only its upper layers differ."""


@dataclass(frozen=True)
class Built:
    """An image that has been built: its tags, digest, size in bytes as the engine keeps it, and layers.

    With the containerd image store the size is that of the compressed content.
    """

    tags: tuple[str, ...]
    digest: str
    size: int
    layers: int
    seconds: float


def build(
    wanted: Product,
    choice: origins.BaseChoice = "auto",
    no_cache: bool = False,
    builder: Builder = "layers",
    offline: bool = False,
) -> Built:
    """Builds the image and gives it its tags.

    ``builder`` is our own layers straight from wheels, or BuildKit on the Dockerfiles; the files are equal.
    Platform, stale locks and disk space are checked before anything is built. A build that fails leaves
    the tags as they were. Raises UserError.
    """
    started = time.monotonic()
    if offline and builder != "layers":
        raise UsageError("offline-needs-layers", "--offline needs --builder layers: BuildKit asks the package index")
    wanted.locks.refuse_stale()
    daemon.ensure()
    refuse_platform(daemon.client().info()["Architecture"])
    refuse_full_disk(wanted, builder)
    if builder == "layers":
        from_layers(wanted, Options(choice, offline, no_cache))
    else:
        from_dockerfiles(wanted, choice, no_cache)
    return describe(wanted, time.monotonic() - started)


def from_layers(wanted: Product, options: Options, store: Store | None = None) -> Image:
    """Puts the image together from layers, loads it, and gives it its tags.

    Layers that turn out to be damaged in the store are made again, once.
    """
    store = store or Store()
    log.warning("building %s on %s from layers", wanted.tag, wanted.os)
    try:
        return _assembled(wanted, options, store)
    except Damaged as error:
        warn("store-damaged", str(error))
        return _assembled(wanted, options, store)


def to_layout(wanted: Product, options: Options, folder: Path, store: Store | None = None) -> Image:
    """Writes the image as an OCI layout, from which it can be pushed; the engine gets the base only."""
    store = store or Store()
    wanted.locks.refuse_stale()
    daemon.ensure()
    image = assemble(wanted, revision(), store, options)
    write_layout(folder, image, wanted.tag, store)
    sizes.remember(store, wanted.tag, image)
    return image


def _assembled(wanted: Product, options: Options, store: Store) -> Image:
    preloader = Preloader(store)
    try:
        image = assemble(wanted, revision(), store, options, preloader.offer)
        preloader.wait()
        load.load(image, [wanted.tag, wanted.full_tag], store)
    finally:
        preloader.forget()
    sizes.remember(store, wanted.tag, image)
    return image


def from_dockerfiles(wanted: Product, choice: origins.BaseChoice, no_cache: bool) -> None:
    """Hands BuildKit the Dockerfiles. Raises UserError if it fails."""
    system = wanted.catalogue.os[wanted.os]
    origin = origins.choose(wanted.os, system, choice)
    log.warning("building %s on %s (base: %s)", wanted.tag, wanted.os, origin)
    inputs = buildkit.Inputs(
        origin=origin,
        rootfs=origins.rootfs(system) if origin == "bootstrap" else None,
        uv=uv.uv_for_images(wanted.catalogue.uv, wanted.python),
        secrets=secrets(),
        revision=revision(),
    )
    buildkit.bake(buildkit.write(wanted, inputs), wanted.image, no_cache)


def ensure(wanted: Product) -> None:
    """Makes sure that the image is there and made from this checkout; a warm build takes seconds."""
    build(wanted)


def find(wanted: Product) -> EngineImage:
    """The image under the product's tag. Raises UserError with the command that builds it."""
    try:
        return daemon.client().images.get(wanted.tag)
    except ImageNotFound:
        command = f"gpuyard build {wanted.line} --image {wanted.image}"
        raise UserError("image-not-built", f"{wanted.tag} is not on this machine. Run: {command}") from None


def refuse_platform(architecture: str) -> None:
    """Raises UserError unless the engine runs x86-64: other platforms are declared, not supported yet."""
    if architecture not in ("x86_64", "amd64"):
        raise UserError("platform-unsupported", f"this engine is {architecture}; images are built for linux/amd64 only")


def refuse_full_disk(wanted: Product, builder: Builder) -> None:
    """Raises UserError, saying how much is needed, if the disks of engine and store can't hold the build.

    An image of the same line in the engine, and wheels in the store, are taken into account.
    """
    client, store = daemon.client(), Store()
    root = Path(client.info()["DockerRootDir"])
    if load.has(client, wanted.full_tag):
        needs = {root: WARM_GB}
    elif builder == "dockerfile":
        needs = {root: COLD_GB}
    else:
        names = wanted.catalogue.images_of(wanted.line)
        line = [Product(wanted.catalogue, wanted.line, name, wanted.os).full_tag for name in names]
        fetcher, wheels = Fetcher(store, wanted.python, offline=True), requirements(wanted)
        missing = sum(not (wheel := fetcher.promised(locked)) or not wheel.path.exists() for locked in wheels)
        needs = {
            root: WARM_GB if any(load.has(client, tag) for tag in line) else LAYERS_GB["engine"],
            store.folder: max(WARM_GB, LAYERS_GB["store"] * missing / len(wheels)),
        }
    if not root.exists():
        del needs[root]  # a remote engine's disk is not here to be measured
    usage.require(needs)


def secrets() -> dict[str, Path]:
    """The build's secrets, which no layer keeps: trusted certificates and package indexes."""
    found: dict[str, Path] = {}
    if ca := indexes.ca_bundle():
        found["ca"] = ca
    if urls := indexes.indexes():
        paths.BUILD.mkdir(exist_ok=True)
        found["uv"] = paths.BUILD / "uv.toml"
        found["uv"].touch(mode=0o600)
        found["uv"].write_text(indexes.uv_configuration(urls))
    return found


def revision() -> str:
    """The commit of this checkout, marked when it has changes; empty outside git."""
    git = ["git", "-C", str(paths.ROOT)]
    try:
        commit = run([*git, "rev-parse", "HEAD"]).strip()
        return commit + ("-dirty" if run([*git, "status", "--porcelain"]).strip() else "")
    except UserError:
        return ""


def describe(wanted: Product, seconds: float) -> Built:
    """The image that has the product's tag now."""
    image = daemon.client().images.get(wanted.tag)
    tags = tuple(tag for tag in image.tags if tag in (wanted.tag, wanted.full_tag))
    return Built(tags, str(image.id), int(image.attrs["Size"]), len(image.attrs["RootFS"]["Layers"]), seconds)
