"""A project's image: the layers of its line's image, its own wheels, its files, and what the image claims."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from gpuyard.catalogue import claims
from gpuyard.engine import daemon
from gpuyard.errors import UserError
from gpuyard.image import build as building
from gpuyard.image import load, oci, sizes
from gpuyard.image.assemble import Options, begin, compose, make_layers
from gpuyard.image.build import Built
from gpuyard.layers import cached, project
from gpuyard.layers.model import Layer, Target, refuse_conflicts
from gpuyard.layers.project import Entry
from gpuyard.packages.locked import read
from gpuyard.process import log, run
from gpuyard.project import files, lock
from gpuyard.project.definition import Project
from gpuyard.store.store import Store

MOST_LAYERS = 127
"""Docker's limit for the layers of an image (overlay2 and its snapshotter)."""
LABEL = f"{claims.LABEL}.project"


def tag(wanted: Project) -> str:
    """The image's name and tag."""
    return f"{wanted.name}:latest"


def build(wanted: Project, options: Options, store: Store | None = None) -> Built:
    """Builds the project's image, loads it and tags it.

    Everything that can be known before is refused before: a stale lock, files that must not be packed, platform and
    disk. A build that fails leaves the tag as it was. Raises UserError.
    """
    started, store = time.monotonic(), store or Store()
    lock.refuse_stale(wanted)
    entries = files.collect(wanted)
    daemon.ensure()
    building.refuse_platform(daemon.client().info()["Architecture"])
    building.refuse_full_disk(wanted.product, "layers")
    log.warning("building %s on %s from layers", tag(wanted), wanted.product.tag)
    image = assemble(wanted, entries, store, options)
    load.load(image, [tag(wanted)], store)
    sizes.remember(store, tag(wanted), image)
    return Built((tag(wanted),), image.digest, image.size, len(image.layers), time.monotonic() - started)


def to_layout(wanted: Project, options: Options, folder: Path, store: Store | None = None) -> oci.Image:
    """Writes the project's image as an OCI layout, from which it can be pushed."""
    store = store or Store()
    lock.refuse_stale(wanted)
    entries = files.collect(wanted)
    daemon.ensure()
    image = assemble(wanted, entries, store, options)
    oci.write_layout(folder, image, tag(wanted), store)
    return image


def assemble(wanted: Project, entries: list[Entry], store: Store, options: Options) -> oci.Image:
    """The project's image as blobs in the store. Its lower layers are those of the line's image, in their order."""
    product = wanted.product
    stage, making = begin(product, store, options)
    below = making.below
    theirs, wheels = make_layers(product, stage, making, [read(wanted.lock)])
    layers = [*theirs, *wheels, files_layer(wanted, entries, making.target, store)]
    refuse_conflicts(layers)
    if len(below.layers) + len(layers) > MOST_LAYERS:
        raise UserError("project-layers", f"{tag(wanted)} would have {len(layers)} layers; images have {MOST_LAYERS}")
    line = compose(product, building.revision(), store, below, theirs)
    config = json.loads(line.config)
    settings = configured(wanted, config["config"], line.digest)
    return oci.compose(below.inherited, layers, settings, config["created"])


def files_layer(wanted: Project, entries: list[Entry], target: Target, store: Store) -> Layer:
    """The layer of the project's files and claims, from the store or made."""
    made_for = replace(target, prefix=files.FOLDER)
    everything = [*entries, *claimed(wanted)]
    code = Path(project.__file__).read_text()
    key = cached.key([project.content_of(everything), code], made_for, None)
    return cached.ensure(store, key, lambda part: project.project_layer(everything, files.FOLDER, made_for, part))


def claimed(wanted: Project) -> list[Entry]:
    """What the image says of the project, for the suite and for a reader: its packages, requirements and lock."""
    said = {
        "schema": 1,
        "name": wanted.name,
        "requirements": list(wanted.requirements),
        "packages": lock.packages(wanted.lock),
        "lock": digest(wanted),
    }
    return [
        Entry("etc/gpuyard/project.json", (json.dumps(said, indent=1) + "\n").encode(), system=True),
        Entry("etc/gpuyard/locks/project.txt", wanted.lock.read_bytes(), system=True),
    ]


def digest(wanted: Project) -> str:
    """The lock's checksum."""
    return oci.digest_of(wanted.lock.read_bytes())


def configured(wanted: Project, settings: dict[str, Any], base: str) -> dict[str, Any]:
    """The image's configuration with the project's command, variables and labels; ``base`` is the line's image."""
    found = dict(settings)
    if wanted.settings.command:
        found["Cmd"] = list(wanted.settings.command)
    own = [f"{name}={value}" for name, value in sorted(wanted.settings.environment.items())]
    kept = [entry for entry in found.get("Env", []) if entry.partition("=")[0] not in wanted.settings.environment]
    found["Env"] = [*kept, *own]
    found["Labels"] = labels(wanted, settings["Labels"], base)
    return found


def labels(wanted: Project, inherited: dict[str, str], base: str) -> dict[str, str]:
    """The project's own OCI labels, the line's technical ones, and what it stands on. Nothing of ours is its title."""
    technical = {name: value for name, value in inherited.items() if name.startswith(f"{claims.LABEL}.")}
    revision = commit(wanted.folder)
    return {
        **technical,
        "org.opencontainers.image.title": wanted.name,
        "org.opencontainers.image.created": inherited["org.opencontainers.image.created"],
        "org.opencontainers.image.base.name": wanted.product.full_tag,
        "org.opencontainers.image.base.digest": base,
        **({"org.opencontainers.image.revision": revision} if revision else {}),
        LABEL: wanted.name,
        f"{LABEL}-lock": digest(wanted),
    }


def commit(folder: Path) -> str:
    """The commit that a project's folder is at; empty outside git and for a folder with uncommitted changes."""
    try:
        if run(["git", "-C", str(folder), "status", "--porcelain", "--", "."]).strip():
            return ""
        return run(["git", "-C", str(folder), "rev-parse", "HEAD"]).strip()
    except UserError:
        return ""
