"""The BuildKit bake definition of a product, and the folders it reads, generated from the catalogue."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpuyard import paths
from gpuyard.catalogue.claims import labels, write_claims
from gpuyard.catalogue.product import Product
from gpuyard.catalogue.table import Origin
from gpuyard.image import origin as base

COMPRESSION = "compression=zstd,compression-level=7,oci-mediatypes=true"
"""Level 7 costs about twice the time of level 3 and saves a tenth of the size (docs/figures.md)."""


@dataclass(frozen=True)
class Inputs:
    """What a build takes from this machine: where the base comes from, uv, and the secrets."""

    origin: Origin
    rootfs: Path | None
    uv: Path
    secrets: dict[str, Path]
    revision: str


def stage(product: Product, folder: Path) -> None:
    """Lays out, under ``folder``, exactly the files that the images of this product copy."""
    if folder.exists():
        shutil.rmtree(folder)
    write_claims(product, folder / "claims")
    (folder / "locks").mkdir()
    for layer in product.layers:
        shutil.copyfile(product.locks.path(layer), folder / "locks" / f"{layer}.txt")
    for source in rooms(product):
        shutil.copytree(source, folder / source.name, ignore=shutil.ignore_patterns("__pycache__", "*.pyc"))


def rooms(product: Product) -> list[Path]:
    """The folders of this checkout that the product holds as they are."""
    table = product.catalogue
    examples = [paths.IMAGES / table.image[name].folder / "examples" for name in table.chain(product.image)]
    return [paths.ROOT / "verify", paths.ROOT / "entrypoints", *(folder for folder in examples if folder.is_dir())]


def definition(product: Product, inputs: Inputs, folder: Path) -> dict[str, Any]:
    """The bake file: one target per image of the chain, each building on the one below."""
    targets = {"rootfs": _rootfs(inputs)} if inputs.rootfs else {}
    for name in product.catalogue.chain(product.image):
        targets[name] = _target(product, name, inputs, folder)
    final = targets[product.image]
    final["tags"] = [product.tag, product.full_tag]
    final["labels"] = labels(product, inputs.revision, inputs.origin)
    final["output"] = [f"type=image,{COMPRESSION}"]
    return {"target": targets}


def _target(product: Product, name: str, inputs: Inputs, folder: Path) -> dict[str, Any]:
    image = product.catalogue.image[name]
    below = {image.parent: f"target:{image.parent}"} if image.parent else {"rootfs": _base(product, inputs)}
    ours = {room: str(folder / room) for room in ("locks", "claims", *(source.name for source in rooms(product)))}
    return {
        "context": str(paths.IMAGES / image.folder),
        "contexts": {**below, **ours, "docker": str(paths.DOCKER), "uv": str(inputs.uv.parent)},
        "args": arguments(product),
        "secret": [f"id={name},src={path}" for name, path in inputs.secrets.items()],
        "platforms": [product.catalogue.platform],
        # The bill of materials and provenance belong to publishing; here they would change the digest.
        "attest": ["type=provenance,disabled=true"],
    }


def arguments(product: Product) -> dict[str, str]:
    """The build arguments of the Dockerfiles."""
    return {
        "SOURCE_DATE_EPOCH": str(int(product.catalogue.os[product.os].epoch.timestamp())),
        "PYTHON": product.python,
        "TORCH": product.row.torch,
        "ARCH_LIST": product.arch_list,
        "REQUIRE_CUDA": product.require_cuda,
    }


def _base(product: Product, inputs: Inputs) -> str:
    image = base.pulled(product.catalogue.os[product.os].image)
    return "target:rootfs" if inputs.rootfs else f"docker-image://{image}"


def _rootfs(inputs: Inputs) -> dict[str, Any]:
    assert inputs.rootfs is not None
    return {
        "context": str(inputs.rootfs.parent),
        "dockerfile-inline": f"FROM scratch\nADD {inputs.rootfs.name} /\n",
    }


def write(product: Product, inputs: Inputs) -> Path:
    """Stages the files and writes the bake definition; returns its path."""
    folder = paths.BUILD / f"{product.line}-{product.image}"
    stage(product, folder)
    file = folder / "docker-bake.json"
    file.write_text(json.dumps(definition(product, inputs, folder), indent=1) + "\n")
    return file
