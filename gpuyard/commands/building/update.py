"""`gpuyard update`."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Annotated

import typer

from gpuyard import paths
from gpuyard.catalogue import table
from gpuyard.catalogue.table import Catalogue
from gpuyard.errors import UserError
from gpuyard.packages.proposals import apply, difference, offered, proposals, retired


def update(
    check: Annotated[bool, typer.Option("--check", help="Exit 1 if there is anything to propose.")] = False,
) -> None:
    """Propose rows of the catalogue from what the index offers now, as a diff; change nothing.

    Take it with `gpuyard update | git apply`, then `gpuyard lock LINE`.
    """
    catalogue = table.load()
    for note in notes(catalogue, datetime.now(UTC).date()):
        typer.echo(f"gpuyard: {note}", err=True)
    before = paths.CATALOGUE.read_text()
    found = proposals(catalogue, offered("torch"), offered("torchaudio"))
    after = apply(before, found)
    print(difference(before, after, str(paths.CATALOGUE.relative_to(paths.ROOT))), end="")
    if not found:
        typer.echo("gpuyard: the catalogue has the newest release of every line", err=True)
    elif check:
        raise UserError(
            "catalogue-behind-index",
            f"{len(found)} rows differ from what the index offers: " + ", ".join(p.line for p in found),
        )


def notes(catalogue: Catalogue, today: date) -> list[str]:
    """What a diff of rows can't say: Pythons that their makers retired, and which rows use them."""
    found = []
    for name, system in catalogue.os.items():
        if retired(system.python, today):
            found.append(f"{name} uses Python {system.python}, which its makers retired: move to a newer system")
    offered_ = sorted({python for line in catalogue.line.values() for python in line.pythons})
    gone = [python for python in offered_ if retired(python, today)]
    if gone:
        found.append(
            f"retired Pythons for which wheels of some line exist: {', '.join(gone)}; don't start anything on them"
        )
    return found
