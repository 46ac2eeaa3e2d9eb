"""The base image: the only one that runs commands. Built by BuildKit once per recipe, kept in the store."""

from __future__ import annotations

import hashlib
import json
import tarfile
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from gpuyard import paths
from gpuyard.catalogue.product import Product
from gpuyard.catalogue.table import Origin
from gpuyard.errors import UserError
from gpuyard.image import buildkit, load, oci
from gpuyard.image import origin as origins
from gpuyard.image.configuration import read_image
from gpuyard.layers.model import Layer
from gpuyard.process import log, run
from gpuyard.store.store import CHUNK, Store, copy_whole

OPTIONS = ",rewrite-timestamp=true,compression=zstd,compression-level=3"
"""Times are clamped to the epoch; the layers of a registry's image stay as they are."""


@dataclass(frozen=True)
class Base:
    """A base image in the store: what images inherit from it, and its exact Python."""

    origin: Origin
    layers: list[oci.Descriptor]
    config: Mapping[str, Any]
    python: str = ""

    @property
    def inherited(self) -> oci.Descriptors:
        """Layers, their diff ids and their history."""
        ids = tuple(self.config["rootfs"]["diff_ids"])
        return oci.Descriptors(tuple(self.layers), ids, tuple(self.config.get("history", ())))

    @property
    def settings(self) -> dict[str, Any]:
        """Its configuration without labels, which describe another image."""
        return {name: value for name, value in self.config["config"].items() if name != "Labels"}

    @property
    def image(self) -> oci.Image:
        """The base as an image of its own, in which byte code is compiled."""
        return self.with_layers([])

    def with_layers(self, layers: Iterable[Layer]) -> oci.Image:
        """The base with layers on it, configured as it is."""
        return oci.compose(self.inherited, layers, self.config["config"], self.config.get("created", ""))

    @property
    def reference(self) -> str:
        """Its name in the engine."""
        return f"gpuyard-base:{oci.short(self.image.digest)}"


def ensure(product: Product, store: Store, choice: origins.BaseChoice, offline: bool, no_cache: bool = False) -> Base:
    """The base of this operating system, from the store or built. Raises UserError."""
    if offline:
        return _stored(product, store, choice)
    system = product.catalogue.os[product.os]
    # The digest fixes its content, so the registry need not be asked for a base that is here.
    if choice != "bootstrap" and not no_cache and (pulled := _known(store, _key(product, "registry"))):
        return pulled
    origin = origins.choose(product.os, system, choice)
    rootfs = origins.rootfs(system) if origin == "bootstrap" else None
    key = _key(product, origin)
    with store.locked(f"base-{key}"):
        found = None if no_cache else _known(store, key)
        return found or _build(product, store, buildkit.Inputs(origin, rootfs, Path("uv"), {}, ""), key, no_cache)


def is_stored(product: Product, store: Store) -> bool:
    """Whether a base of this operating system is in the store, of either origin."""
    return any(_known(store, _key(product, origin)) for origin in product.catalogue.os[product.os].origins)


def _stored(product: Product, store: Store, choice: origins.BaseChoice) -> Base:
    origins = product.catalogue.os[product.os].origins if choice == "auto" else (choice,)
    for origin in origins:
        if found := _known(store, _key(product, origin)):
            return found
    raise UserError(
        "base-not-stored",
        f"no base image of {product.os} is in the store ({store.folder}), and --offline forbids building one. "
        "With a network, run: gpuyard build, then gpuyard fetch --export DIR; here: gpuyard fetch --import DIR",
    )


def _key(product: Product, origin: str) -> str:
    """The key of a base: a checksum of its recipe, without the state of the package archive."""
    system = product.catalogue.os[product.os]
    folder = paths.IMAGES / product.catalogue.image["base"].folder
    files = {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in sorted(folder.iterdir())}
    source = system.image if origin == "registry" else [system.suite, origins.bootstrap_checksum()]
    recipe = [files, origin, source, system.epoch.isoformat(), product.python, OPTIONS]
    return hashlib.sha256(json.dumps(recipe).encode()).hexdigest()


def carry(product: Product, source: Store, target: Store) -> None:
    """Copies the base of this operating system from store to store. Raises UserError if it isn't there, or damaged."""
    found = _stored(product, source, "auto")
    digests = [str(layer["digest"]) for layer in found.layers]
    missing = [digest for digest in digests if not target.intact(target.blob(digest), digest)]
    source.refuse_damaged(missing)
    for digest in missing:
        copy_whole(source.blob(digest), target.blob(digest))
    target.write_record("bases", _key(product, found.origin), asdict(found))


def _known(store: Store, key: str) -> Base | None:
    record = store.record("bases", key)
    if record is None:
        return None
    found = Base(**record)
    whole = all(store.whole(layer["digest"], layer["size"]) for layer in found.layers)
    return found if whole else None


def _build(product: Product, store: Store, inputs: buildkit.Inputs, key: str, no_cache: bool) -> Base:
    log.warning("building the base image (%s)", inputs.origin)
    targets = buildkit.definition(product, inputs, paths.BUILD / f"{product.line}-{product.image}")["target"]
    wanted = {name: targets[name] for name in ("rootfs", "base") if name in targets}
    wanted["base"]["contexts"] = {"rootfs": wanted["base"]["contexts"]["rootfs"]}
    with store.part() as out:
        buildkit.bake_oci({"target": wanted}, "base", out, no_cache, OPTIONS)
        found = _take(store, out, inputs.origin)
    load.ensure_base(found.image, found.reference, store)
    version = run(["docker", "run", "--rm", "--network", "none", found.reference, "python3", "--version"])
    found = Base(found.origin, found.layers, found.config, version.split()[-1])
    store.write_record("bases", key, asdict(found))
    return found


def _take(store: Store, layout: Path, origin: Origin) -> Base:
    with tarfile.open(layout) as tar:
        manifest, config = read_image(tar)
        for layer in manifest["layers"]:
            member = tar.extractfile(oci.blob_path(layer["digest"]))
            assert member is not None
            with store.part() as part:
                with part.open("wb") as out:
                    while chunk := member.read(CHUNK):
                        out.write(chunk)
                store.keep(part, layer["digest"])
    return Base(origin, manifest["layers"], config)
