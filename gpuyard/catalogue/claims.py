"""What an image claims: `/etc/gpuyard`, its labels, and the tables that its suite reads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from gpuyard import paths
from gpuyard.catalogue.lock import NVIDIA
from gpuyard.catalogue.product import Product
from gpuyard.catalogue.table import Catalogue

LABEL = "io.gpuyard"
LICENSES = "BSD-3-Clause AND LicenseRef-NVIDIA-Software"
"""Of PyTorch and this project's own files, and of NVIDIA's libraries; the bill of materials has each package's."""


def image_json(product: Product) -> dict[str, Any]:
    """The claims, as the image holds them in /etc/gpuyard/image.json."""
    row, image = product.row, product.catalogue.image[product.image]
    return {
        "schema": 1,
        "image": product.image,
        "line": product.line,
        "os": product.os,
        "versions": {
            "python": product.python,
            "torch": row.torch_version,
            "torchvision": row.torchvision,
            "torchaudio": row.torchaudio,
            "cuda": row.cuda,
            "cudnn": row.cudnn,
            "nccl": row.nccl,
        },
        "arch_list": list(row.arch_list),
        "driver": {
            "floor": product.catalogue.driver_floor(row),
            "full": product.catalogue.driver_full(row),
        },
        "packages": dict(sorted(product.locks.packages(product.layers).items())),
        "lock": product.locks.digest(product.layers),
        "services": list(image.services),
        "required": list(image.required),
    }


def held(product: Product) -> dict[str, str]:
    """The packages that a user's install may not change: torch, its siblings, and NVIDIA's."""
    siblings = {"torch", "torchvision", "torchaudio", "triton"}
    packages = product.locks.packages([layer for layer in product.layers if layer != "workbench"])
    return {n: v for n, v in sorted(packages.items()) if n in siblings or NVIDIA.match(n)}


def constraints(product: Product) -> str:
    """The held packages as pip and uv read them, at exactly these builds.

    ``==`` would let a build with a local version (``+cpu``) take the place of the same release; ``===`` does not.
    """
    lines = [f"{name}==={version}\n" for name, version in held(product).items()]
    return "# Held by gpuyard: an install that needs another version is refused.\n" + "".join(lines)


def pip_configuration() -> str:
    """pip's system-wide file, for processes without the image's variables (env -i, cron)."""
    return "[install]\nconstraint = /etc/gpuyard/constraints.txt\n"


def uv_configuration(product: Product) -> str:
    """uv's system-wide file, for the same processes."""
    return "constraint-dependencies = " + json.dumps([f"{n}==={v}" for n, v in held(product).items()], indent=1) + "\n"


def labels(product: Product, revision: str, origin: str) -> dict[str, str]:
    """The OCI labels and ours. ``revision`` is the source commit, ``origin`` where the base came from."""
    row, os, claims = product.row, product.catalogue.os[product.os], image_json(product)
    base, digest = os.image.split("@")
    ours = {
        "line": product.line,
        "image": product.image,
        "os": product.os,
        **{name: claims["versions"][name] for name in claims["versions"]},
        "driver-floor": claims["driver"]["floor"],
        "arch-list": " ".join(row.arch_list),
        "lock": claims["lock"],
        "base-origin": origin,
    }
    return {
        "org.opencontainers.image.title": f"{product.catalogue.repository}:v{product.line}",
        "org.opencontainers.image.description": product.catalogue.image[product.image].title,
        "org.opencontainers.image.version": product.full_version,
        "org.opencontainers.image.revision": revision,
        "org.opencontainers.image.created": os.epoch.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "org.opencontainers.image.licenses": LICENSES,
        **({"org.opencontainers.image.source": product.catalogue.source} if product.catalogue.source else {}),
        "org.opencontainers.image.base.name": base,
        **({"org.opencontainers.image.base.digest": digest} if origin == "registry" else {}),
        **{f"{LABEL}.{name}": value for name, value in ours.items()},
    }


def tables(catalogue: Catalogue) -> dict[str, Any]:
    """The driver, line and GPU tables that the suite carries as verify/tables.json."""
    return {
        "generated_by": "gpuyard list --write-tables, from images/catalogue.toml",
        "lines": {
            name: {
                "tag": catalogue.tag(name, "workbench"),
                "torch": line.torch_version,
                "cuda": line.cuda,
                "driver_floor": catalogue.driver_floor(line),
                "driver_full": catalogue.driver_full(line),
                "arch_list": list(line.arch_list),
            }
            for name, line in catalogue.line.items()
        },
        "cuda_drivers": [{"cuda": c, "driver": d} for c, d in catalogue.drivers.bundled.items()],
        "family_floors": [{"major": int(m), "driver": d} for m, d in catalogue.drivers.family.items()],
        "gpus": [
            {"cc": cc, "generation": gpu.generation, "names": [*gpu.names, *gpu.arm64]}
            for cc, gpu in catalogue.gpu.items()
        ],
    }


def tables_text(catalogue: Catalogue) -> str:
    """verify/tables.json as it is committed."""
    return json.dumps(tables(catalogue), indent=1) + "\n"


def write_claims(product: Product, folder: Path) -> None:
    """Writes the content of /etc/gpuyard: image.json, the constraints for pip and uv, and the locks."""
    (folder / "locks").mkdir(parents=True, exist_ok=True)
    (folder / "image.json").write_text(json.dumps(image_json(product), indent=1) + "\n")
    (folder / "constraints.txt").write_text(constraints(product))
    (folder / "pip.conf").write_text(pip_configuration())
    (folder / "uv.toml").write_text(uv_configuration(product))
    for layer in product.layers:
        (folder / "locks" / f"{layer}.txt").write_text(product.locks.path(layer).read_text())


def write_tables(catalogue: Catalogue, path: Path = paths.TABLES) -> None:
    """Writes verify/tables.json."""
    path.write_text(tables_text(catalogue))
