"""`gpuyard load`."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Annotated

import typer

from gpuyard.catalogue import table
from gpuyard.catalogue.claims import LABEL
from gpuyard.catalogue.product import find_product
from gpuyard.engine import daemon
from gpuyard.image import load as loading
from gpuyard.image import oci
from gpuyard.image.source import Source
from gpuyard.publish.prepare import Selection, source_of
from gpuyard.store.store import Store


def load(layout: Annotated[Path, typer.Argument(help="An OCI layout (gpuyard build --layout).")]) -> None:
    """Load an image that another machine built into the engine, under its tags: the same digest, layer for layer."""
    catalogue, store = table.load(), Store()
    source = source_of(Selection(layout=layout), catalogue, store)
    line, image, os = (source.labels[f"{LABEL}.{name}"] for name in ("line", "image", "os"))
    product = find_product(catalogue, line, image, os)
    daemon.ensure()
    adopt(source, store)
    loading.load(
        oci.Image(source.manifest, source.config_bytes, layers(source)), [product.tag, product.full_tag], store
    )
    print(f"{product.tag}, {product.full_tag}: {source.digest}")


def layers(source: Source) -> tuple[oci.Descriptor, ...]:
    """The descriptors of its layers."""
    return tuple(dict(layer) for layer in source.layers)


def adopt(source: Source, store: Store) -> None:
    """Copies the layers that the store lacks; the store checks their content before it sends them on."""
    for layer in source.layers:
        digest = str(layer["digest"])
        if not store.whole(digest, int(layer["size"])):
            with store.part() as part:
                shutil.copyfile(source.layout / oci.blob_path(digest), part)
                store.keep(part, digest)
