"""Where an image comes from, as an in-toto statement with SLSA provenance. The same image gives the same bytes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from gpuyard.catalogue.claims import LABEL
from gpuyard.image.facts import DIRTY
from gpuyard.image.source import Source
from gpuyard.publish.inventory import Inventory, wheels
from gpuyard.publish.sbom import deb, pypi, title

STATEMENT = "https://in-toto.io/Statement/v1"
PREDICATE = "https://slsa.dev/provenance/v1"
BUILD_TYPE = "urn:gpuyard:build:layers:1"
BUILDER = "urn:gpuyard:builder:layers"

Resource = dict[str, Any]


def provenance(source: Source, inventory: Inventory) -> bytes:
    """The statement about an image: every wheel by hash, base, locks, commit."""
    labels = source.labels
    statement = {
        "_type": STATEMENT,
        "subject": [{"name": title(source), "digest": {"sha256": source.digest.removeprefix("sha256:")}}],
        "predicateType": PREDICATE,
        "predicate": {
            "buildDefinition": {
                "buildType": BUILD_TYPE,
                "externalParameters": {name: labels.get(f"{LABEL}.{name}", "") for name in ("line", "image", "os")},
                "internalParameters": {"epoch": source.config["created"], "lock": labels.get(f"{LABEL}.lock", "")},
                "resolvedDependencies": list(dependencies(source, inventory)),
            },
            "runDetails": {
                "builder": {"id": BUILDER, "version": {"gpuyard": source.facts.revision}},
                "byproducts": [
                    {"name": "layer", "digest": _digest(layer["digest"]), "annotations": {"size": layer["size"]}}
                    for layer in source.layers
                ],
            },
        },
    }
    return (json.dumps(statement, indent=1) + "\n").encode()


def dependencies(source: Source, inventory: Inventory) -> Iterator[Resource]:
    """All that went into an image."""
    yield {"name": "source", "digest": {"gitCommit": source.facts.revision.removesuffix(DIRTY)}}
    yield from base(source)
    for name, digest in sorted(inventory.locks.items()):
        yield {"name": f"lock {name}", "digest": {"sha256": digest}}
    for package in inventory.python:
        yield {"uri": str(pypi(package)), "digest": _digest(package.wheel)}
    for debian in inventory.debian:
        yield {"uri": str(deb(debian, source))}


def base(source: Source) -> Iterator[Resource]:
    """What the image stands on: a registry's image by digest, or the layers of a bootstrap."""
    labels, name = source.labels, "org.opencontainers.image.base"
    origin = labels.get(f"{LABEL}.base-origin", "")
    if digest := labels.get(f"{name}.digest"):
        yield {"name": "base", "uri": f"docker://{labels.get(f'{name}.name')}", "digest": _digest(digest)}
    for layer in source.layers:
        notes = layer.get("annotations") or {}
        if not wheels(notes) and not any(key.startswith(f"{LABEL}.") for key in notes):
            yield {"name": f"base layer ({origin})", "digest": _digest(layer["digest"])}


def _digest(text: str) -> dict[str, str]:
    algorithm, _, value = text.partition(":")
    return {algorithm: value}
