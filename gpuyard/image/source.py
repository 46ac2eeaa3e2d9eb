"""The image that is published: an OCI layout of the layer builder, and what is read in it."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from gpuyard.catalogue.claims import LABEL
from gpuyard.catalogue.product import Product
from gpuyard.errors import UserError
from gpuyard.image import facts as reading
from gpuyard.image import oci
from gpuyard.image.assemble import recall
from gpuyard.image.build import revision
from gpuyard.image.facts import Facts, Tags
from gpuyard.layers import scan
from gpuyard.layers.scan import Contents
from gpuyard.store.store import Store, sha256_of


@dataclass(frozen=True)
class Source:
    """An image in a layout. What it holds is read on first use, each layer once for good."""

    layout: Path
    manifest: bytes
    config_bytes: bytes
    suffix: str
    store: Store | None = None

    @property
    def digest(self) -> str:
        return oci.digest_of(self.manifest)

    @property
    def identities(self) -> frozenset[str]:
        """What an engine calls this image: the manifest's digest, or (classic store) that of the configuration."""
        return frozenset({self.digest, oci.digest_of(self.config_bytes)})

    @cached_property
    def layers(self) -> list[Mapping[str, Any]]:
        """The descriptors of its layers, from the bottom up."""
        return list(json.loads(self.manifest)["layers"])

    @cached_property
    def config(self) -> Mapping[str, Any]:
        """Its configuration."""
        return dict(json.loads(self.config_bytes))

    @property
    def labels(self) -> Mapping[str, str]:
        return dict(self.config["config"].get("Labels") or {})

    @property
    def size(self) -> int:
        """The compressed bytes of all of it."""
        return sum(int(layer["size"]) for layer in self.layers) + len(self.manifest) + len(self.config_bytes)

    @cached_property
    def contents(self) -> Contents:
        """Its telling files and packages."""
        return scan.scan(self.layers, self.layout / "blobs" / "sha256", self.store)

    @cached_property
    def facts(self) -> Facts:
        return reading.facts(self.contents, self.labels)

    @property
    def tags(self) -> Tags:
        return reading.tags(self.facts, self.suffix, reading.commit_date(self.facts.revision))


def from_checkout(product: Product, store: Store) -> Source:
    """The image that this checkout's layer builder made; see ``recall``, which also says what is raised."""
    image = recall(product, revision(), store)
    folder = store.folder / "layouts" / image.digest.removeprefix("sha256:")
    link(folder, image, product.tag, store)
    return Source(folder, image.manifest, image.config, product.catalogue.image[product.image].suffix or "", store)


def link(folder: Path, image: oci.Image, name: str, store: Store) -> None:
    """Writes an image as a layout whose layers are links into the store: a blob that is cleaned there is gone here.

    No layer is read for it: a reader compares its digest.
    """
    for digest in image.blobs:
        place = folder / oci.blob_path(digest)
        place.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            place.symlink_to(store.blob(digest))
    for path, data in oci.small_files(image, name).items():
        (folder / path).write_bytes(data)


def from_layout(folder: Path, suffixes: Mapping[str, str], store: Store | None = None) -> Source:
    """The one image of a layout (gpuyard build --layout). ``suffixes``: image to suffix. Raises UserError."""
    try:
        (entry,) = json.loads((folder / "index.json").read_text())["manifests"]
        manifest = _blob(folder, entry["digest"])
        config = _blob(folder, json.loads(manifest)["config"]["digest"])
        image = str((json.loads(config)["config"].get("Labels") or {}).get(f"{LABEL}.image"))
    except (OSError, ValueError, KeyError) as error:
        raise UserError(
            "layout-invalid",
            f"{folder} is not an OCI layout of one image ({error}). Make one: gpuyard build --layout DIR",
        ) from error
    if image not in suffixes:
        raise UserError(
            "layout-invalid", f"{folder} holds {image!r}; expected one of the published images: {', '.join(suffixes)}"
        )
    return Source(folder, manifest, config, suffixes[image], store)


def _blob(folder: Path, digest: str) -> bytes:
    path = folder / oci.blob_path(digest)
    if sha256_of(path) != digest.removeprefix("sha256:"):
        raise ValueError(f"{digest} is damaged")
    return path.read_bytes()
