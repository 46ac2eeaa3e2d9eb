"""`gpuyard fetch`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gpuyard.catalogue import table
from gpuyard.catalogue.product import find_product
from gpuyard.engine import daemon
from gpuyard.errors import UsageError, UserError
from gpuyard.image import base
from gpuyard.packages.fetcher import Fetcher, carry, fetch_all, requirements
from gpuyard.store.store import Store


def fetch(
    line: Annotated[str | None, typer.Argument(help="A line of the catalogue; the default one if left out.")] = None,
    image: Annotated[str, typer.Option("--image", help="workbench, runtime or devel.")] = "workbench",
    os: Annotated[str | None, typer.Option(help="An operating system of the catalogue.")] = None,
    export: Annotated[
        Path | None, typer.Option("--export", help="Then copy them, and the base image, to this folder.")
    ] = None,
    import_: Annotated[Path | None, typer.Option("--import", help="Take them from such a folder.")] = None,
) -> None:
    """Bring every wheel of a lock into the store, verified, so that a build needs no network."""
    if export and import_:
        raise UsageError("export-and-import", "--export and --import exclude each other: give one of them")
    product = find_product(table.load(), line, image, os)
    product.locks.refuse_stale()
    wanted, store = requirements(product), Store()
    if import_:
        if not (import_ / "wheels").is_dir():
            raise UserError(
                "export-missing",
                f"{import_} does not hold exported wheels. Make it with: gpuyard fetch {product.line} --export DIR",
            )
        count = carry(wanted, product.python, Store(import_), store)
        base.carry(product, Store(import_), store)
        print(f"{count} wheels imported, {len(wanted) - count} were there, and the base image: {store.folder}")
        return
    wheels = fetch_all(Fetcher(store, product.python), wanted)
    print(f"{len(wheels)} wheels, {sum(wheel.size for wheel in wheels) / 1e9:.2f} GB, verified: {store.folder}")
    if export:
        daemon.ensure()
        base.ensure(product, store, "auto", offline=False)
        count = carry(wanted, product.python, store, Store(export))
        base.carry(product, store, Store(export))
        print(f"{count} wheels and the base image copied to {export}")
