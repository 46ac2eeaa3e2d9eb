"""Into the engine: `docker load` of a stream, without the blobs that it has already; tags last."""

from __future__ import annotations

import logging
import subprocess
from collections.abc import Sequence
from pathlib import Path

import docker
from docker.errors import APIError, ImageNotFound

from gpuyard.engine import daemon
from gpuyard.errors import UserError
from gpuyard.image import oci
from gpuyard.process import log, piped
from gpuyard.store.store import Damaged, Store

LOADING = "gpuyard-loading"
"""The repository an image has until it is whole in the engine."""


def load(image: oci.Image, tags: Sequence[str], store: Store) -> None:
    """Loads the image into the engine and tags it. The tags change only when it is complete."""
    client = daemon.client()
    identity = image.digest if daemon.content_store(client) else oci.digest_of(image.config)
    if has(client, identity):
        _remember(image, store)
    else:
        _send(client, image, store)
    for tag in tags:
        client.images.get(identity).tag(*tag.rsplit(":", 1))
    _unname(client, image)


def forget(image: oci.Image, store: Store) -> None:
    """Removes an image of ``stream``; layers that other images share stay."""
    _unname(daemon.client(), image)
    store.forget("manifests", image.digest.removeprefix("sha256:"))


def ensure_base(image: oci.Image, reference: str, store: Store) -> None:
    """Loads the base into the engine under its name, if it is not there."""
    if _identity(daemon.client(), reference) not in (image.digest, oci.digest_of(image.config)):
        load(image, [reference], store)


def _send(client: docker.DockerClient, image: oci.Image, store: Store) -> None:
    present = blobs_present(client, store, set(image.blobs)) if daemon.content_store(client) else set()
    if present:
        try:
            stream(image, store, present)
            return
        except Damaged:
            raise
        except UserError as error:
            log.info("the engine lacks a blob it should have (%s): sending all", error)
    stream(image, store, set())


def _remember(image: oci.Image, store: Store) -> None:
    if store.record("manifests", image.digest.removeprefix("sha256:")) is None:
        store.write_record("manifests", image.digest.removeprefix("sha256:"), {"layers": image.blobs})


def blobs_present(client: docker.DockerClient, store: Store, wanted: set[str]) -> set[str]:
    """The wanted blobs that the engine has, as part of images that gpuyard loaded before."""
    found: set[str] = set()
    # Asking about one image takes milliseconds; listing all makes the engine add up their sizes.
    for path in newest(store.folder / "manifests"):
        record = store.record("manifests", path.stem)
        more = wanted.intersection(record["layers"] if record else ()) - found
        if more and has(client, f"sha256:{path.stem}"):
            found |= more
    return found


def newest(folder: Path) -> list[Path]:
    """The records of a folder, the newest first."""
    return sorted(folder.glob("*.json"), key=lambda path: path.stat().st_mtime, reverse=True)


def stream(image: oci.Image, store: Store, leave_out: set[str], level: int = logging.WARNING) -> None:
    """Loads the image into the engine under a temporary name, without blobs that it has already.

    Raises UserError if the engine does not take it, and Damaged if a blob in the store is damaged.
    """
    sent = [layer for layer in image.layers if layer["digest"] not in leave_out]
    store.refuse_damaged(layer["digest"] for layer in sent)
    log.log(level, "into the engine: %d layers, %.0f MB", len(sent), sum(layer["size"] for layer in sent) / 1e6)
    process = piped(["docker", "load", "--quiet"], stderr=subprocess.STDOUT)
    assert process.stdin
    assert process.stdout
    try:
        with process.stdin as pipe:
            oci.write_tar(pipe, image, _temporary(image), store, leave_out)
    except BrokenPipeError:
        log.debug("docker load stopped reading")
    words = process.stdout.read().decode(errors="replace").strip()
    if process.wait():
        raise UserError("engine-load-failed", f"the engine did not take the image: {words}. Its tags are unchanged")
    log.debug("%s", words)
    _remember(image, store)


def _temporary(image: oci.Image) -> str:
    return f"{LOADING}:{oci.short(image.digest)}"


def has(client: docker.DockerClient, name: str) -> bool:
    """Whether the engine has an image of that name or digest."""
    return bool(_identity(client, name))


def _identity(client: docker.DockerClient, name: str) -> str:
    """The digest of an image in the engine; empty if it is not there."""
    try:
        return str(client.images.get(name).id)
    except ImageNotFound:
        return ""


def _unname(client: docker.DockerClient, image: oci.Image) -> None:
    try:
        client.images.remove(_temporary(image))
    except (ImageNotFound, APIError) as error:
        log.debug("%s", error)
