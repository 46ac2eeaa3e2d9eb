"""`gpuyard bases`."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from gpuyard.catalogue import table
from gpuyard.catalogue.table import Catalogue, OperatingSystem
from gpuyard.errors import UserError
from gpuyard.image import origin
from gpuyard.publish.oras_errors import failure
from gpuyard.publish.registry import Repository, execute

SHOWN = {
    "there": "resolves",
    "gone": "removed: the registry answers and no longer has it",
    "silent": "no registry answers",
}
LIMIT = 3600.0
"""Seconds for the copy of one base; the largest has a compiler and several gigabytes."""


def bases(
    check: Annotated[bool, typer.Option("--check", help="Exit 1 unless every digest still resolves.")] = False,
    mirror: Annotated[
        str | None, typer.Option(metavar="REGISTRY", help="Copy every base that resolves to HOST:PORT/NAME.")
    ] = None,
    ca_file: Annotated[Path | None, typer.Option(help="The mirror's certificate authority.")] = None,
) -> None:
    """Show which base images still resolve by their digests, or copy them to a mirror.

    Builds take them from there with GPUYARD_MIRROR=REGISTRY. Digests stay, so what is built stays the same.
    """
    catalogue = table.load()
    answers = asked(catalogue)
    show(catalogue, answers)
    if mirror:
        copy_all(catalogue, answers, mirror, ca_file)
    lost = [name for name, answer in answers.items() if answer != "there"]
    if lost and (check or mirror):
        raise UserError(
            "bases-unresolved",
            f"{len(lost)} of {len(answers)} bases don't resolve: {', '.join(lost)}. {advice(catalogue, answers)}",
        )


def asked(catalogue: Catalogue) -> dict[str, origin.Answer]:
    """What a registry says of each operating system's base, all asked at once."""
    with ThreadPoolExecutor() as pool:
        images = [origin.pulled(system.image) for system in catalogue.os.values()]
        return dict(zip(catalogue.os, pool.map(origin.ask, images), strict=True))


def show(catalogue: Catalogue, answers: dict[str, origin.Answer]) -> None:
    """A row for each base."""
    shown = Table("operating system", "base", "", "without it", box=box.SIMPLE_HEAD)
    for name, answer in answers.items():
        system = catalogue.os[name]
        other = "bootstrapped from Debian's packages" if "bootstrap" in system.origins else "no build"
        shown.add_row(
            name + ("" if system.built else "\n(declared, not built here)"),
            origin.pulled(system.image).split("@")[0],
            SHOWN[answer],
            other,
        )
    console = Console()
    # Names that people copy are never cut; a narrow terminal wraps them.
    console.width = max(console.width, 140)
    console.print(shown)


def advice(catalogue: Catalogue, answers: dict[str, origin.Answer]) -> str:
    """What to do about the first base that is gone, or about a network without any."""
    gone = next((name for name, answer in answers.items() if answer == "gone"), None)
    if gone:
        return origin.removed(gone, catalogue.os[gone])
    return f"Check the network, or name a mirror: {origin.MIRROR}=HOST/NAME"


def copy_all(catalogue: Catalogue, answers: dict[str, origin.Answer], mirror: str, ca_file: Path | None) -> None:
    """Copies every base that resolves, whole and by digest, with the client that publishes."""
    Repository.parse(mirror, "gpuyard", ca_file)
    for name, answer in answers.items():
        if answer == "there":
            print(f"{name}: {copy(catalogue.os[name], mirror, ca_file)}", flush=True)


def copy(system: OperatingSystem, mirror: str, ca_file: Path | None) -> str:
    """Copies one base to the mirror; the reference it has there. Raises UserError."""
    tag, _, digest = system.image.partition("@")
    target = f"{mirror.rstrip('/')}/{tag}"
    there = Repository.parse(target.rpartition(":")[0], "", ca_file)
    source = full(origin.pulled(system.image))
    plain = ["--from-plain-http"] if Repository.parse(source.split("/")[0], "x").plain_http else []
    words = ["cp", "--recursive", *plain, *there.options("to-"), source, target, "--no-tty"]
    code, out, err = execute(["oras", *words], LIMIT)
    if code:
        raise failure(str(there), f"{out}\n{err}", LIMIT)
    if (found := there.resolve(digest)) != digest:
        raise UserError(
            "registry-content-differs", f"{target} is {found} after the copy, not {digest}: don't use this mirror"
        )
    return f"{there}@{digest}"


def full(image: str) -> str:
    """An image's reference with what Docker leaves out, by digest alone."""
    name, _, digest = image.partition("@")
    name = name.rpartition(":")[0]
    first = name.partition("/")[0]
    if "." not in first and ":" not in first and first != "localhost":
        name = f"docker.io/{name}" if "/" in name else f"docker.io/library/{name}"
    return f"{name}@{digest}"
