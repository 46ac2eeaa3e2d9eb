"""An image's configuration, read by BuildKit from the same Dockerfiles: without their RUN instructions."""

from __future__ import annotations

import hashlib
import json
import re
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gpuyard import paths
from gpuyard.catalogue.product import Product
from gpuyard.errors import UserError
from gpuyard.image import oci
from gpuyard.image.buildkit import arguments, bake_oci
from gpuyard.store.store import Store

KEPT = ("FROM", "ARG", "ENV", "USER", "WORKDIR", "EXPOSE", "VOLUME", "HEALTHCHECK", "STOPSIGNAL", "ENTRYPOINT", "CMD")
"""The instructions that only configure. RUN is replaced by layers; others write files, or (LABEL) would be dropped."""


def settings(product: Product, base: Mapping[str, Any], store: Store) -> dict[str, Any]:
    """What the chain of Dockerfiles sets (ENV, USER, EXPOSE, HEALTHCHECK, ENTRYPOINT) on top of the base's.

    Labels are not among it. Asked once for each text of the Dockerfiles.
    """
    text = dockerfile(product, base)
    key = hashlib.sha256(json.dumps([text, arguments(product)]).encode()).hexdigest()
    found = store.record("settings", key)
    if found is None:
        found = _ask(product, text)
        store.write_record("settings", key, found)
    # An entry point resets the command that a base has. An empty list, because tools that add to it fail on null.
    return {**base, **{name: value for name, value in found.items() if value}, "Cmd": found.get("Cmd") or []}


def dockerfile(product: Product, base: Mapping[str, Any]) -> str:
    """The chain of Dockerfiles as the stages of one, on an empty base with the same environment."""
    bottom, *above = product.catalogue.chain(product.image)
    stages = [f"FROM scratch AS {bottom}\n" + _inherited(base)]
    for name in above:
        text = (paths.IMAGES / product.catalogue.image[name].folder / "Dockerfile").read_text()
        stages.append(re.sub(r"^(FROM \S+)$", rf"\1 AS {name}", without_run(text, name), flags=re.MULTILINE))
    return "\n".join(stages)


def without_run(text: str, name: str) -> str:
    """A Dockerfile without its RUN instructions, which layers replace.

    Raises UserError for an instruction that writes files in another way: it would be missing in the image.
    """
    left: list[str] = []
    instruction, continued = "", False
    for line in text.splitlines(keepends=True):
        empty = not line.strip() or line.lstrip().startswith("#")
        if not continued and not empty:
            instruction = line.split()[0].upper()
            if instruction not in (*KEPT, "RUN") or (instruction == "RUN" and "<<" in line):
                raise UserError(
                    "dockerfile-unsupported",
                    f"images/{name}/Dockerfile: layers can't replace {' '.join(line.split())[:60]!r}; "
                    "expected a RUN without a heredoc, or settings",
                )
        if instruction != "RUN" or (empty and not continued):
            left.append(line)
        continued = line.rstrip("\n").endswith("\\") or (continued and empty)
    return "".join(left)


def _inherited(base: Mapping[str, Any]) -> str:
    lines = [f"WORKDIR {base['WorkingDir']}"] if base.get("WorkingDir") else []
    for name, _, value in (entry.partition("=") for entry in base.get("Env", [])):
        quoted = re.sub(r'([\\"$])', r"\\\1", value)
        lines.append(f'ENV {name}="{quoted}"')
    return "\n".join(lines) + "\n"


def _ask(product: Product, text: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        # A file, because bake would put its own variables into an inline one.
        Path(folder, "Dockerfile").write_text(text)
        target = {
            "context": folder,
            "args": arguments(product),
            "platforms": [product.catalogue.platform],
            "attest": ["type=provenance,disabled=true"],
        }
        out = Path(folder, "image.tar")
        bake_oci({"target": {product.image: target}}, product.image, out)
        with tarfile.open(out) as tar:
            return dict(read_image(tar)[1]["config"])


def read_image(tar: tarfile.TarFile) -> tuple[dict[str, Any], dict[str, Any]]:
    """Manifest and configuration of the one image in a layout."""
    manifest = _json(tar, _json(tar, "index.json")["manifests"][0]["digest"])
    if "manifests" in manifest:
        manifest = _json(tar, manifest["manifests"][0]["digest"])
    return manifest, _json(tar, manifest["config"]["digest"])


def _json(tar: tarfile.TarFile, name: str) -> dict[str, Any]:
    member = tar.extractfile(oci.blob_path(name) if name.startswith("sha256:") else name)
    assert member is not None
    found = json.load(member)
    assert isinstance(found, dict)
    return found
