"""OCI images as data: manifest, configuration, and a layout as a folder or a stream of tar."""

from __future__ import annotations

import hashlib
import io
import json
import os
import tarfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from gpuyard.layers.model import Layer
from gpuyard.store.store import CHUNK, Store, copy_whole

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar+zstd"
LAYOUT = b'{"imageLayoutVersion":"1.0.0"}'

Descriptor = dict[str, Any]


@dataclass(frozen=True)
class Image:
    """An image whose blobs all lie in a store."""

    manifest: bytes
    config: bytes
    layers: tuple[Descriptor, ...]

    @property
    def digest(self) -> str:
        return digest_of(self.manifest)

    @property
    def blobs(self) -> list[str]:
        """The digests of its layers, from the bottom up."""
        return [layer["digest"] for layer in self.layers]

    @property
    def size(self) -> int:
        """The compressed size: what a registry holds and a user downloads."""
        return sum(int(layer["size"]) for layer in self.layers) + len(self.manifest) + len(self.config)


def digest_of(data: bytes) -> str:
    """The digest of a blob."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


def blob_path(digest: str) -> str:
    """Where a layout has the blob of that digest."""
    return "blobs/" + digest.replace(":", "/")


def short(digest: str) -> str:
    """The first twelve digits of a digest: enough for people and for names in the engine."""
    return digest.removeprefix("sha256:")[:12]


def as_bytes(data: Mapping[str, Any]) -> bytes:
    """JSON in one spelling."""
    return json.dumps(data, sort_keys=True, separators=(",", ":")).encode()


def descriptor(layer: Layer) -> Descriptor:
    """A layer's entry in a manifest, with its bill of materials."""
    return {
        "mediaType": LAYER,
        "digest": layer.digest,
        "size": layer.size,
        "annotations": dict(sorted(layer.annotations.items())),
    }


def compose(below: Descriptors, layers: Iterable[Layer], settings: Mapping[str, Any], created: str) -> Image:
    """The image of a base, more layers on it, and a configuration."""
    layers = list(layers)
    history = [{"created": created, "created_by": _story(layer), "comment": "gpuyard"} for layer in layers]
    config = {
        "architecture": "amd64",
        "os": "linux",
        "created": created,
        "config": dict(settings),
        "rootfs": {"type": "layers", "diff_ids": [*below.diff_ids, *(layer.diff_id for layer in layers)]},
        "history": [*below.history, *history],
    }
    config_bytes = as_bytes(config)
    all_layers = (*below.layers, *(descriptor(layer) for layer in layers))
    manifest = {
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": {"mediaType": CONFIG, "digest": digest_of(config_bytes), "size": len(config_bytes)},
        "layers": list(all_layers),
    }
    return Image(as_bytes(manifest), config_bytes, all_layers)


@dataclass(frozen=True)
class Descriptors:
    """The layers and history that an image inherits from its base."""

    layers: tuple[Descriptor, ...]
    diff_ids: tuple[str, ...]
    history: tuple[Mapping[str, Any], ...]


def _story(layer: Layer) -> str:
    words = next(iter(layer.annotations.values()), "").split()
    more = f" and {len(words) - 3} more" if len(words) > 3 else ""
    return "gpuyard layer: " + " ".join(words[:3]) + more


def index(image: Image, name: str) -> bytes:
    """The layout's index, which names the image."""
    entry = {
        "mediaType": MANIFEST,
        "digest": image.digest,
        "size": len(image.manifest),
        "platform": {"architecture": "amd64", "os": "linux"},
        "annotations": {
            "io.containerd.image.name": f"docker.io/library/{name}",
            "org.opencontainers.image.ref.name": name.rpartition(":")[2],
        },
    }
    return as_bytes({"schemaVersion": 2, "mediaType": INDEX, "manifests": [entry]})


def docker_manifest(image: Image, name: str) -> bytes:
    """What Docker's classic image store reads instead of the index."""
    entry = {
        "Config": blob_path(digest_of(image.config)),
        "RepoTags": [name],
        "Layers": [blob_path(blob) for blob in image.blobs],
    }
    return json.dumps([entry]).encode()


def small_files(image: Image, name: str) -> dict[str, bytes]:
    """Everything of a layout but the layers, by path."""
    return {
        "oci-layout": LAYOUT,
        "index.json": index(image, name),
        "manifest.json": docker_manifest(image, name),
        blob_path(image.digest): image.manifest,
        blob_path(digest_of(image.config)): image.config,
    }


def write_tar(out: IO[bytes], image: Image, name: str, store: Store, leave_out: Iterable[str] = ()) -> None:
    """Streams a layout as `docker load` reads it, without the layers to leave out."""
    left = set(leave_out)
    with tarfile.open(fileobj=out, mode="w|", bufsize=CHUNK) as tar:
        for blob in dict.fromkeys(image.blobs):
            if blob not in left:
                with store.blob(blob).open("rb") as file:
                    _add(tar, blob_path(blob), store.blob(blob).stat().st_size, file)
        for path, data in small_files(image, name).items():
            _add(tar, path, len(data), io.BytesIO(data))


def write_layout(folder: Path, image: Image, name: str, store: Store) -> None:
    """Writes a layout as a folder, from which tools push. On the store's own disk it takes no space."""
    store.refuse_damaged(image.blobs)
    for blob in dict.fromkeys(image.blobs):
        place = folder / blob_path(blob)
        place.parent.mkdir(parents=True, exist_ok=True)
        if not place.exists():
            try:
                os.link(store.blob(blob), place)
            except OSError:
                copy_whole(store.blob(blob), place)
    for path, data in small_files(image, name).items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)


def _add(tar: tarfile.TarFile, path: str, size: int, content: IO[bytes]) -> None:
    entry = tarfile.TarInfo(path)
    entry.size = size
    tar.addfile(entry, content)
