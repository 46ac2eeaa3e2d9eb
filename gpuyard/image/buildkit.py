"""BuildKit: the bake definition of a product, the folders that it reads, and the builds themselves."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpuyard import paths
from gpuyard.catalogue.claims import labels, write_claims
from gpuyard.catalogue.product import Product
from gpuyard.catalogue.table import Origin
from gpuyard.engine import daemon
from gpuyard.errors import UserError
from gpuyard.image import origin as origins
from gpuyard.process import attempt, log

BUILDER = "gpuyard"
"""The builder in a container, for engines whose own BuildKit cannot write OCI layouts."""
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
    image = origins.pulled(product.catalogue.os[product.os].image)
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


def bake(file: Path, target: str, no_cache: bool = False, builder: str | None = None) -> None:
    """Builds one target of a bake definition; tags change only when all of it has been built.

    BuildKit's output goes to the terminal. Raises UserError if the build fails.
    """
    daemon.ensure_buildx()
    options = [*(["--builder", builder] if builder else []), *(["--no-cache"] if no_cache else [])]
    # Without this variable, buildx exports every inner layer as an image of its own, compressed by gzip.
    env = {**os.environ, "BUILDX_NO_DEFAULT_LOAD": "1"}
    command = ["docker", "buildx", "bake", "--file", str(file), target, *options]
    if code := attempt(command, env=env, capture=False).code:
        raise UserError("build-failed", f"the build of {target} failed (docker buildx bake, exit {code}); see above")


def bake_oci(definition: dict[str, Any], target: str, out: Path, no_cache: bool = False, options: str = "") -> None:
    """Builds one target of a definition into an OCI layout, the tar file ``out``. Raises UserError."""
    daemon.ensure_buildx()
    definition["target"][target]["output"] = [f"type=oci,dest={out}{options}"]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "docker-bake.json")
        file.write_text(json.dumps(definition))
        bake(file, target, no_cache, oci_builder())


def oci_builder() -> str | None:
    """The builder that can write an OCI layout: None for the engine's own, which needs containerd's image store.

    Engines with the classic store get a builder in a container, started once. Raises UserError if it cannot start.
    """
    if daemon.content_store(daemon.client()):
        return None
    if attempt(["docker", "buildx", "inspect", "--bootstrap", BUILDER]).code == 0:
        return BUILDER
    log.warning("this engine has the classic image store: starting a BuildKit container for it")
    create = ["docker", "buildx", "create", "--name", BUILDER, "--driver", "docker-container", "--bootstrap"]
    made = attempt(create)
    if made.code:
        attempt(["docker", "buildx", "rm", "--force", BUILDER])
        why = " ".join(made.output.strip().splitlines()[-1:])
        raise UserError(
            "builder-unavailable",
            f"this engine has the classic image store, whose BuildKit writes no OCI layouts, and a BuildKit container "
            f"cannot start: {why}. Turn containerd's image store on, or let the engine pull moby/buildkit",
        )
    return BUILDER
