"""`gpuyard page`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gpuyard import build as building
from gpuyard import catalogue as table
from gpuyard import engine, paths, picture, releasepage, reports
from gpuyard.assemble import sizes
from gpuyard.catalogue import Catalogue
from gpuyard.claims import Product
from gpuyard.differences import side
from gpuyard.errors import UserError
from gpuyard.releasepage import Release
from gpuyard.store import Store

TABLES = {"README.md": ("images",), "docs/support.md": ("gpus",)}
"""Which generated tables stand between markers in which page."""


def page(
    line: Annotated[str | None, typer.Argument(help="A line: write its page. Left out: the tables alone.")] = None,
    image: Annotated[str, typer.Option("--image", help="workbench, runtime or devel.")] = "workbench",
    report: Annotated[Path | None, typer.Option(help="The report; the newest of this image if left out.")] = None,
) -> None:
    """Write docs/images/TAG.md from an image's verification report, and the generated tables anew."""
    catalogue = table.load()
    if line:
        product = building.product(catalogue, line, image)
        place = releasepage.path(product)
        text = releasepage.text(release(product, report))
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
        print(place.relative_to(paths.ROOT))
    for file, names in TABLES.items():
        for name in names:
            if picture.put(paths.ROOT / file, name, generated(catalogue, name)):
                print(file)


def generated(catalogue: Catalogue, name: str) -> str:
    """The text between the markers of that name."""
    return releasepage.images(catalogue) if name == "images" else picture.drivers_and_gpus(catalogue)


def release(product: Product, file: Path | None) -> Release:
    """The image as it is here, with its report. Raises UserError without either."""
    engine.ensure()
    found = building.find(product)
    here = side(product.catalogue, product.tag)
    name = reports.stem(product.line, product.image, here.digest)
    place = file or paths.REPORTS / f"{name}.json"
    if not place.exists():
        raise UserError(f"{product.tag} has no report: gpuyard verify {product.line} --image {product.image}")
    known = sizes.known(Store()).get(product.tag, {})
    return Release(product, here, reports.load(place), found.labels, known)
