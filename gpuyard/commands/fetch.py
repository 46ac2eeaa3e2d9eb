"""`gpuyard fetch`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gpuyard import build as building
from gpuyard import catalogue, engine
from gpuyard.assemble import foundation
from gpuyard.errors import UsageError, UserError
from gpuyard.store import Store
from gpuyard.wheels.everything import fetch_all, requirements
from gpuyard.wheels.fetcher import Fetcher, carry


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
        raise UsageError("--export copies out of the store and --import into it: give one of them")
    product = building.product(catalogue.load(), line, image, os)
    product.locks.refuse_stale()
    wanted, store = requirements(product), Store()
    if import_:
        if not (import_ / "wheels").is_dir():
            raise UserError(
                f"{import_} holds no exported wheels; make it with: gpuyard fetch {product.line} --export DIR"
            )
        count = carry(wanted, product.python, Store(import_), store)
        foundation.carry(product, Store(import_), store)
        print(f"{count} wheels imported, {len(wanted) - count} were there, and the base image: {store.folder}")
        return
    wheels = fetch_all(Fetcher(store, product.python), wanted)
    print(f"{len(wheels)} wheels, {sum(wheel.size for wheel in wheels) / 1e9:.2f} GB, verified: {store.folder}")
    if export:
        engine.ensure()
        foundation.ensure(product, store, "auto", offline=False)
        count = carry(wanted, product.python, store, Store(export))
        foundation.carry(product, store, Store(export))
        print(f"{count} wheels and the base image copied to {export}")
