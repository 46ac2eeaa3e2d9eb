"""`gpuyard build`."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from gpuyard.catalogue import table as catalogue
from gpuyard.catalogue.product import find_product
from gpuyard.errors import UsageError
from gpuyard.image import build as building
from gpuyard.image import buildkit as baking
from gpuyard.image.assemble import Options
from gpuyard.image.origin import BaseChoice


def build(
    line: Annotated[str | None, typer.Argument(help="A line of the catalogue; the default one if left out.")] = None,
    image: Annotated[str, typer.Option("--target", "--image", help="workbench, runtime or devel.")] = "workbench",
    os: Annotated[str | None, typer.Option(help="An operating system of the catalogue.")] = None,
    base: Annotated[BaseChoice, typer.Option(help="Where the operating system comes from.")] = "auto",
    builder: Annotated[
        building.Builder, typer.Option(help="Layers straight from wheels, or BuildKit on the Dockerfiles.")
    ] = "layers",
    offline: Annotated[bool, typer.Option("--offline", help="Use what gpuyard fetch brought, no network.")] = False,
    layout: Annotated[Path | None, typer.Option(help="Write an OCI layout to this folder; load nothing.")] = None,
    no_cache: Annotated[bool, typer.Option("--no-cache", help="Rebuild every layer.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be built, and build nothing.")] = False,
) -> None:
    """Build an image from its locks and give it its tags."""
    started = time.monotonic()
    wanted = find_product(catalogue.load(), line, image, os)
    wanted.locks.refuse_stale()
    if layout and builder != "layers":
        raise UsageError("layout-needs-layers", "--layout needs --builder layers; for BuildKit use docker save")
    if dry_run:
        chain = " -> ".join(wanted.catalogue.chain(wanted.image))
        how = "layers from wheels" if builder == "layers" else f"BuildKit, {baking.COMPRESSION}"
        print(f"{wanted.tag}, {wanted.full_tag}: {chain} on {wanted.os}, {how}{f', to {layout}' if layout else ''}")
        return
    if layout:
        made = building.to_layout(wanted, Options(base, offline, no_cache), layout)
        print(f"{layout}: {made.digest}, {made.size / 1e9:.2f} GB compressed, {len(made.layers)} layers")
        return
    built = building.build(wanted, base, no_cache, builder, offline)
    show(replace(built, seconds=time.monotonic() - started))
    names = f"{wanted.line} --image {wanted.image}"
    print(f"next: gpuyard verify {names} proves it; gpuyard run {names} starts it")


def show(built: building.Built) -> None:
    """Prints what a build ended with."""
    table = Table.grid(padding=(0, 2))
    table.add_row("tags", ", ".join(built.tags))
    table.add_row("digest", built.digest)
    table.add_row("size", f"{built.size / 1e9:.2f} GB compressed, {built.layers} layers")
    table.add_row("time", f"{built.seconds:.0f} s")
    Console(soft_wrap=True).print(table)
