"""`gpuyard diff`."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated, Any

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from gpuyard.acceptance.differences import Change, Side, changes, facts, shared_layers, side
from gpuyard.catalogue import table as catalogue
from gpuyard.commands.building.clean import human


def diff(
    old: Annotated[str, typer.Argument(help="A tag, a digest, or a line: v2.9, 2.9-runtime.")],
    new: Annotated[str, typer.Argument(help="The other one.")],
    as_json: Annotated[bool, typer.Option("--json", help="The same as JSON.")] = False,
) -> None:
    """Say what differs between two images: versions, packages, driver, size, layers, results of checks."""
    table = catalogue.load()
    left, right = side(table, old), side(table, new)
    found = compare(left, right)
    if as_json:
        print(json.dumps(found, indent=1))
    else:
        _show(left, right, found)


def compare(left: Side, right: Side) -> dict[str, Any]:
    """The differences as plain data."""
    both, only_left, only_right = shared_layers(left, right)
    return {
        "old": {"name": left.name, "digest": left.digest, "size": left.size, "disk": left.disk},
        "new": {"name": right.name, "digest": right.digest, "size": right.size, "disk": right.disk},
        "versions": [asdict(change) for change in changes(facts(left), facts(right))],
        "packages": [asdict(change) for change in changes(left.packages, right.packages)],
        "checks": [asdict(change) for change in changes(left.checks, right.checks)] if _reported(left, right) else None,
        "layers": {"shared": both, "old": only_left, "new": only_right} if left.built and right.built else None,
    }


def _reported(left: Side, right: Side) -> bool:
    return bool(left.checks and right.checks)


def _show(left: Side, right: Side, found: dict[str, Any]) -> None:
    console = Console(soft_wrap=True, highlight=False)
    for kind in ("versions", "packages", "checks"):
        rows = [Change(**row) for row in found[kind] or ()]
        if found[kind] is None:
            print(f"{kind}: not both have a report here; make them with gpuyard verify")
        elif not rows:
            print(f"{kind}: the same")
        else:
            shown = Table(kind, left.name, right.name, box=box.SIMPLE_HEAD)
            for row in rows:
                shown.add_row(row.name, row.old or "-", row.new or "-")
            console.print(shown)
    print(f"size on disk: {human(left.disk)}, {human(right.disk)}")
    if layers := found["layers"]:
        print(
            f"layers: {layers['shared']} shared, {layers['old']} only in the first, {layers['new']} only in the second"
        )
