"""`gpuyard page`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gpuyard import paths
from gpuyard.acceptance import reports
from gpuyard.acceptance.differences import side
from gpuyard.catalogue import table
from gpuyard.catalogue.product import Product, find_product
from gpuyard.catalogue.table import Catalogue
from gpuyard.commands import tree
from gpuyard.engine import daemon
from gpuyard.errors import UserError
from gpuyard.image import build as building
from gpuyard.image import sizes
from gpuyard.publish import release_page
from gpuyard.publish.release_page import Release
from gpuyard.render import commands_page, markdown, messages_page, settings_table
from gpuyard.store.store import Store

TABLES = {"docs/choose-a-tag.md": ("images",), "docs/support.md": ("gpus",), "docs/containers.md": ("settings",)}
"""Which generated tables stand between markers in which page."""


def page(
    line: Annotated[str | None, typer.Argument(help="A line: write its page. Left out: the tables alone.")] = None,
    image: Annotated[str, typer.Option("--image", help="workbench, runtime or devel.")] = "workbench",
    report: Annotated[Path | None, typer.Option(help="The report; the newest of this image if left out.")] = None,
) -> None:
    """Write docs/images/TAG.md from an image's verification report, and refresh the generated tables."""
    catalogue = table.load()
    if line:
        product = find_product(catalogue, line, image)
        place = release_page.path(product)
        text = release_page.text(release(product, report))
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
        print(place.relative_to(paths.ROOT))
    for file, names in TABLES.items():
        for name in names:
            if markdown.put(paths.ROOT / file, name, generated(catalogue, name)):
                print(file)
    if messages_page.write():
        print(messages_page.PAGE.relative_to(paths.ROOT))
    if commands_page.write(typer.main.get_command(tree.application())):
        print(commands_page.PAGE.relative_to(paths.ROOT))


def generated(catalogue: Catalogue, name: str) -> str:
    """The text between the markers of that name."""
    makers = {"images": release_page.images, "gpus": markdown.drivers_and_gpus}
    return settings_table.table() if name == "settings" else makers[name](catalogue)


def release(product: Product, file: Path | None) -> Release:
    """The image as it is here, with its report. Raises UserError without either."""
    daemon.ensure()
    found = building.find(product)
    here = side(product.catalogue, product.tag)
    report = reports.read(file) if file else reports.about(paths.REPORTS, {here.digest})
    if not report:
        raise UserError(
            "image-unverified",
            f"{product.tag} ({here.digest}) has no report in {paths.REPORTS}/. "
            f"Run: gpuyard verify {product.line} --image {product.image}",
        )
    known = sizes.known(Store()).get(product.tag, {})
    return Release(product, here, report.content, found.labels, known)
