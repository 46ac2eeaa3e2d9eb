"""A product like the real ones with locks of a few small packages, taken from the real locks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gpuyard.catalogue.lock import LockSet, entries
from gpuyard.catalogue.product import Product
from gpuyard.catalogue.table import Catalogue, Layer

PACKAGES: dict[Layer, tuple[str, ...]] = {
    "cuda": ("nvtx", "cufile"),
    "torch": ("jinja2", "markupsafe", "mpmath"),
    "workbench": ("six", "tqdm", "jupyterlab-widgets", "websocket-client", "pyyaml", "pyzmq", "contourpy"),
}
"""By the start of a name: entry points, data files, modules without a package, extension modules."""


@dataclass(frozen=True)
class Small(Product):
    """The default line with small locks, under a tag of the tests' own."""

    tag_name: str = "gpuyard-small:test"

    @property
    def tag(self) -> str:
        return self.tag_name

    @property
    def full_tag(self) -> str:
        return self.tag_name + "-full"


def product(table: Catalogue, folder: Path, tag: str, image: str = "workbench") -> Small:
    """Writes the small locks to a folder; the product that is made of them."""
    real = LockSet(table, table.default_line, table.os[table.default_os].python)
    small = Small(table, table.default_line, image, table.default_os, folder, tag)
    folder.mkdir(parents=True, exist_ok=True)
    for layer in PACKAGES:
        chosen = [block for name, _, block in entries(real.path(layer).read_text()) if _is_small(name, layer)]
        small.locks.path(layer).write_text("".join(chosen))
    return small


def _is_small(name: str, layer: Layer) -> bool:
    return any(name == word or f"-{word}" in name for word in PACKAGES[layer])
