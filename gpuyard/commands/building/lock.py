"""`gpuyard lock`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from gpuyard import paths
from gpuyard.catalogue import table
from gpuyard.catalogue.lock import LockSet
from gpuyard.catalogue.table import Catalogue
from gpuyard.commands.options import refuse_without_effect
from gpuyard.errors import UsageError, UserError
from gpuyard.project import definition
from gpuyard.project import lock as project_lock
from gpuyard.project.definition import Project


def lock(
    line: Annotated[
        str | None,
        typer.Argument(
            metavar="[LINE|DIR]",
            help="A line, or a project's folder. Left out: the project in this folder, else every line.",
        ),
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Change nothing; exit 1 if a lock is stale.")] = False,
    outdated: Annotated[
        bool, typer.Option("--outdated", help="Change nothing; exit 1 if the indexes offer other versions now.")
    ] = False,
    devel: Annotated[bool, typer.Option("--devel", help="Resolve the compiler's lock alone; others stay.")] = False,
    os: Annotated[str | None, typer.Option(help="An operating system; those that are built here if left out.")] = None,
    upgrade: Annotated[bool, typer.Option("--upgrade", help="A project: take the newest versions that fit.")] = False,
    upgrade_package: Annotated[
        list[str], typer.Option(metavar="NAME", help="A project: take the newest version of this package.")
    ] = [],  # noqa: B006
    which_line: Annotated[
        bool, typer.Option("--which-line", help="A project: say which lines can carry it, and write nothing.")
    ] = False,
) -> None:
    """Resolve a project's or a line's hash-locked requirements, or check that they are not stale."""
    catalogue = table.load()
    ours = {"--upgrade": upgrade, "--upgrade-package": bool(upgrade_package), "--which-line": which_line}
    theirs = {"--outdated": outdated, "--devel": devel, "--os": os is not None}
    if project := definition.named(line, catalogue):
        _refuse(theirs, "belongs to the catalogue's lines; name one: gpuyard lock LINE")
        read_only = [option for option, given in (("--check", check), ("--which-line", which_line)) if given]
        if read_only:
            writing = [
                option for option, given in (("--upgrade", upgrade), ("--upgrade-package", upgrade_package)) if given
            ]
            refuse_without_effect(writing, f"beside {read_only[0]}, which changes nothing")
        _lock_project(project, check, upgrade, upgrade_package, which_line)
        return
    _refuse(ours, "belongs to a project; run it in its folder, or name the folder: gpuyard lock DIR")
    if line is None and not (check or outdated) and not Path.cwd().is_relative_to(paths.ROOT):
        raise UserError(
            "project-missing",
            f"{Path.cwd()} is not a project: write an empty {definition.OWN_FILE} into it, or name a line: "
            f"gpuyard lock {catalogue.default_line}",
        )
    refuse_without_effect(["--devel"] if devel and (check or outdated) else [], "where nothing is locked")
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


def _refuse(options: Mapping[str, bool], why: str) -> None:
    for option, given in options.items():
        if given:
            raise UsageError("project-option", f"{option} {why}")


def _lock_project(project: Project, check: bool, upgrade: bool, names: list[str], which_line: bool) -> None:
    if which_line:
        for answer in project_lock.which_lines(project):
            said = answer.reason or f"fits; packages beyond the image's: {len(answer.packages)}"
            print(f"{answer.product.tag}: {said}")
        return
    before = project_lock.packages(project.lock)
    found = before if check else project_lock.write(project, upgrade, names)
    project_lock.refuse_stale(project)
    print(f"{project.lock.name}: {len(found)} packages beyond those of {project.product.tag}")
    for name in sorted({*before, *found}):
        if before.get(name) != found.get(name):
            print(f"  {name} {before.get(name, '(new)')} -> {found.get(name, '(gone)')}")


def _outdated(locks: LockSet) -> list[str]:
    moved = locks.outdated().items()
    return [f"{locks.line}: {name} {old or '(new)'} -> {new or '(gone)'}" for name, (old, new) in moved]


def pythons(catalogue: Catalogue, os: str | None) -> list[str]:
    """The Pythons that locks are for: of one operating system, or of all that are built."""
    if os is None:
        return sorted({system.python for system in catalogue.os.values() if system.built})
    return [catalogue.os[catalogue.find_os(os)].python]
