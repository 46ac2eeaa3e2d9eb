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
from gpuyard.image.oci import Image
from gpuyard.image.origin import BaseChoice
from gpuyard.project import build as project_build
from gpuyard.project import definition
from gpuyard.project import files as project_files
from gpuyard.project import lock as project_lock
from gpuyard.project.definition import Project


def build(
    context: typer.Context,
    line: Annotated[
        str | None,
        typer.Argument(
            metavar="[LINE|DIR]",
            help="A line, or a project's folder. Left out: the project in this folder, else the default line.",
        ),
    ] = None,
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
    """Build a line's or a project's image from its locks and give it its tags."""
    started = time.monotonic()
    known = catalogue.load()
    if project := definition.named(line, known):
        _refuse_line_options(context)
        _build_project(project, Options(base, offline, no_cache), layout, dry_run)
        return
    wanted = find_product(known, line, image, os)
    wanted.locks.refuse_stale()
    if layout and builder != "layers":
        raise UsageError("layout-needs-layers", "--layout needs --builder layers; for BuildKit use docker save")
    if dry_run:
        chain = " -> ".join(wanted.catalogue.chain(wanted.image))
        how = "layers from wheels" if builder == "layers" else f"BuildKit, {baking.COMPRESSION}"
        print(f"{wanted.tag}, {wanted.full_tag}: {chain} on {wanted.os}, {how}{f', to {layout}' if layout else ''}")
        return
    if layout:
        _say_layout(layout, building.to_layout(wanted, Options(base, offline, no_cache), layout))
        return
    built = building.build(wanted, base, no_cache, builder, offline)
    show(replace(built, seconds=time.monotonic() - started))
    names = f"{wanted.line} --image {wanted.image}"
    print(f"next: gpuyard verify {names} proves it; gpuyard run {names} starts it")


def _build_project(project: Project, options: Options, layout: Path | None, dry_run: bool) -> None:
    if dry_run:
        project_lock.refuse_stale(project)
        files = len(project_files.collect(project))
        beyond = len(project_lock.packages(project.lock))
        print(f"{project_build.tag(project)}: {project.product.tag}, {beyond} more packages, {files} files")
    elif layout:
        _say_layout(layout, project_build.to_layout(project, options, layout))
    else:
        show(project_build.build(project, options))
        print(f"next: docker run --rm --shm-size=8g {project_build.tag(project)} verify proves it")


def _refuse_line_options(context: typer.Context) -> None:
    for name, option in (("image", "--image"), ("os", "--os"), ("builder", "--builder")):
        source = context.get_parameter_source(name)
        if source and source.name == "COMMANDLINE":
            raise UsageError("project-option", f"{option} belongs to a line; a project sets line and image in its file")


def _say_layout(folder: Path, made: Image) -> None:
    print(f"{folder}: {made.digest}, {made.size / 1e9:.2f} GB compressed, {len(made.layers)} layers")


def show(built: building.Built) -> None:
    """Prints what a build ended with."""
    table = Table.grid(padding=(0, 2))
    table.add_row("tags", ", ".join(built.tags))
    table.add_row("digest", built.digest)
    table.add_row("size", f"{built.size / 1e9:.2f} GB compressed, {built.layers} layers")
    table.add_row("time", f"{built.seconds:.0f} s")
    Console(soft_wrap=True).print(table)
