"""`gpuyard pick`."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import Annotated

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from gpuyard.catalogue import table
from gpuyard.catalogue.gpus import capabilities
from gpuyard.catalogue.pick import Answer, Driver, answers, best
from gpuyard.catalogue.table import Catalogue
from gpuyard.errors import UserError
from gpuyard.render import markdown


def pick(
    driver: Annotated[str | None, typer.Option(help="The host's driver, such as 550 or 550.99.")] = None,
    gpu: Annotated[
        list[str] | None, typer.Option(help="A GPU: 'RTX 4090', Ada, or 8.9. More than one: all must run.")
    ] = None,
    image: Annotated[str, typer.Option(help="Which image of the line.")] = "workbench",
    as_json: Annotated[bool, typer.Option("--json", help="The same as JSON.")] = False,
) -> None:
    """Say which tag runs on a driver and a GPU, and why; without either, show the whole table."""
    catalogue = table.load()
    catalogue.find_image(image)
    if driver is None and not gpu and not as_json:
        print(markdown.drivers_and_gpus(catalogue))
        return
    wanted = [cc for name in gpu or () for cc in capabilities(catalogue, name)]
    found = [
        answer if image in catalogue.images_of(answer.line) else _without(answer, image)
        for answer in answers(catalogue, Driver.parse(driver) if driver else None, wanted)
    ]
    chosen = best(catalogue, found)
    if as_json:
        tag = catalogue.tag(chosen.line, image) if chosen else None
        print(json.dumps({"tag": tag, "lines": [asdict(answer) for answer in found]}, indent=1))
    else:
        _show(catalogue, found, chosen, image)
    if not chosen:
        raise UserError("line-unfit", f"no line fits: {'; '.join(f'v{a.line} {a.reason}' for a in found)}")


def _without(answer: Answer, image: str) -> Answer:
    return replace(answer, runs=False, complete=False, reason=f"has no image {image}")


def _show(catalogue: Catalogue, found: list[Answer], chosen: Answer | None, image: str) -> None:
    shown = Table("tag", "runs", "why", box=box.SIMPLE_HEAD)
    for answer in found:
        runs = ("yes" if answer.complete else "yes, without PTX") if answer.runs else "no"
        there = image in catalogue.images_of(answer.line)
        shown.add_row(catalogue.tag(answer.line, image) if there else f"v{answer.line}", runs, answer.reason)
    Console(soft_wrap=True).print(shown)
    if chosen:
        print(f"take {catalogue.tag(chosen.line, image)}")
