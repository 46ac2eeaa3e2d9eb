"""`gpuyard lock`."""

from __future__ import annotations

from typing import Annotated

import typer

from gpuyard.catalogue import table
from gpuyard.catalogue.lock import LockSet
from gpuyard.catalogue.table import Catalogue
from gpuyard.errors import UserError


def lock(
    line: Annotated[str | None, typer.Argument(help="A line of the catalogue; every line if left out.")] = None,
    check: Annotated[bool, typer.Option("--check", help="Only say whether the locks fit the catalogue.")] = False,
    outdated: Annotated[
        bool, typer.Option("--outdated", help="Change nothing; exit 1 if the indexes offer other versions now.")
    ] = False,
    devel: Annotated[bool, typer.Option("--devel", help="Resolve the compiler's lock alone; others stay.")] = False,
    os: Annotated[str | None, typer.Option(help="An operating system; those that are built here if left out.")] = None,
) -> None:
    """Resolve hash-locked requirement files for a line, or check that they are not stale."""
    catalogue = table.load()
    behind: list[str] = []
    names = list(catalogue.line) if line is None else [catalogue.find_line(line)]
    for locks in (LockSet(catalogue, name, python) for name in names for python in pythons(catalogue, os)):
        if devel and not (check or outdated) and "devel" in locks.layers:
            locks.write_devel()
        elif not (check or outdated or devel):
            locks.write()
        locks.refuse_stale()
        packages = len(locks.packages(locks.layers))
        print(f"{locks.line} on Python {locks.python}: {packages} packages, as the catalogue asks")
        behind += _outdated(locks) if outdated else []
    if behind:
        raise UserError(
            "lock-outdated",
            f"the indexes offer other versions of {len(behind)} packages; take them with: gpuyard lock\n  "
            + "\n  ".join(behind),
        )


def _outdated(locks: LockSet) -> list[str]:
    moved = locks.outdated().items()
    return [f"{locks.line}: {name} {old or '(new)'} -> {new or '(gone)'}" for name, (old, new) in moved]


def pythons(catalogue: Catalogue, os: str | None) -> list[str]:
    """The Pythons that locks are for: of one operating system, or of all that are built."""
    if os is None:
        return sorted({system.python for system in catalogue.os.values() if system.built})
    return [catalogue.os[catalogue.find_os(os)].python]
