"""`gpuyard verify`."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from gpuyard.acceptance import any_image, reports
from gpuyard.acceptance.proof import ProofRequest, prove
from gpuyard.acceptance.suite import choose
from gpuyard.catalogue import table as catalogue
from gpuyard.catalogue.product import Product, find_product
from gpuyard.commands.options import refuse_without_effect
from gpuyard.engine import daemon
from gpuyard.engine.preflight import choose_gpus, is_local, probe_gpus
from gpuyard.engine.start import parse_gpus, size
from gpuyard.errors import UsageError, warn
from gpuyard.image import build as building
from verify.engine import registry
from verify.report import table
from verify.report.report import Report


def verify(
    line: Annotated[
        str | None, typer.Argument(help="A line of the catalogue (gpuyard list); the default one if left out.")
    ] = None,
    image: Annotated[
        str,
        typer.Option(
            help="workbench, runtime or devel; or any image by its tag (NAME:TAG), into which the suite is mounted."
        ),
    ] = "workbench",
    gpus: Annotated[str, typer.Option(help="all, none, auto, or devices such as 0,1.")] = "auto",
    shm_size: Annotated[str, typer.Option(help="Shared memory of the container.")] = "1g",
    only: Annotated[list[str] | None, typer.Option(help="These checks or groups, comma-separated.")] = None,
    require: Annotated[list[str] | None, typer.Option(help="These must pass too, comma-separated.")] = None,
    report_dir: Annotated[Path, typer.Option(help="Where the report goes.")] = Path("reports"),
    image_ref: Annotated[str | None, typer.Option(hidden=True)] = None,
    build: Annotated[
        bool | None, typer.Option(help="Build first, which takes seconds if nothing changed; on by default.")
    ] = None,
) -> None:
    """Start the image as a user would, run the suite inside, look from outside, write one report.

    Exit codes: 0 all required checks passed; 1 one failed; 2 usage error; 3 one could not run.
    """
    other = image_ref or (image if any_image.is_reference(image) else None)
    if other:
        refuse_without_effect(["--build"] if build else [], f"on {other}: gpuyard builds only its own images")
        raise typer.Exit(_any_image(other, line, gpus, shm_size, names(only), names(require), report_dir))
    wanted = _product(line, image)
    choice = choose(names(only), names(require), wanted.catalogue.image[image].services)
    parse_gpus(gpus), size(shm_size)
    reports.require_writable(report_dir)
    daemon.ensure()
    client = daemon.client()
    chosen, note = choose_gpus(gpus, probe_gpus(client.info(), local=is_local(client)))
    if build is not False:
        building.ensure(wanted)
    if note:
        warn("gpu-absent", note)
    report = prove(client, ProofRequest(wanted, choice, chosen, shm_size), teller())
    files = reports.write(report, report_dir, reports.stem(wanted.line, image, report.digest or ""))
    show(report, files)
    raise typer.Exit(report.exit_code)


def _product(line: str | None, image: str) -> Product:
    known = catalogue.load()
    if image not in known.image:
        words = catalogue.unknown("image", image, known.published)
        raise UsageError("image-unknown", f"{words}; write an image from elsewhere with its tag: {image}:TAG")
    return find_product(known, line, image)


def show(report: Report, files: list[Path]) -> None:
    """Prints the table, and where the report lies."""
    color = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    print(table.render(report, color, shutil.get_terminal_size((100, 40)).columns))
    print(f"report: {files[0]} (also {', '.join(file.suffix for file in files[1:])})")


def _any_image(
    reference: str, line: str | None, gpus: str, shm: str, only: list[str], require: list[str], report_dir: Path
) -> int:
    """Runs the suite inside an image from elsewhere, writes its report, and returns its exit code."""
    if line:
        raise UsageError(
            "line-beside-reference",
            f"{reference} names one image already: leave out the line ({line})",
        )
    try:
        registry.resolve(registry.CHECKS, [*only, *require])
    except registry.UnknownName as error:
        raise UsageError("check-unknown", str(error)) from error
    parse_gpus(gpus), size(shm)
    reports.require_writable(report_dir)
    daemon.ensure()
    client = daemon.client()
    chosen, note = choose_gpus(gpus, probe_gpus(client.info(), local=is_local(client)))
    if note:
        warn("gpu-absent", note)
    options = {"--only": only, "--require": require}
    arguments = [word for option, values in options.items() if values for word in (option, ",".join(values))]
    report = any_image.diagnose(reference, chosen, shm, arguments)
    report = replace(report, digest=str(client.images.get(reference).id))
    show(report, reports.write(report, report_dir, reports.stem_of(reference, report.digest or "")))
    return report.exit_code


def names(values: list[str] | None) -> list[str]:
    """The names in comma-separated values."""
    return [name.strip() for value in values or [] for name in value.split(",") if name.strip()]


def teller() -> Callable[[str], None]:
    """Says on stderr what is being done."""
    return lambda text: print(f"gpuyard: {text}", file=sys.stderr, flush=True)
