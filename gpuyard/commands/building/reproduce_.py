"""`gpuyard reproduce`."""

from __future__ import annotations

import tempfile
from concurrent.futures import Future
from pathlib import Path
from typing import Annotated

import typer

from gpuyard.catalogue import table
from gpuyard.catalogue.product import Product, find_product
from gpuyard.commands.options import refuse_without_effect
from gpuyard.engine import daemon
from gpuyard.errors import UserError, warn
from gpuyard.image import assemble, base, load, reproduce
from gpuyard.image import build as building
from gpuyard.image.workers import pool
from gpuyard.layers import cached
from gpuyard.layers.model import Layer, Target
from gpuyard.layers.plan import Group, groups
from gpuyard.packages.fetcher import Fetcher, fetching
from gpuyard.packages.locked import read
from gpuyard.store.store import Store


def reproduce_(
    line: Annotated[str | None, typer.Argument(help="A line of the catalogue; the default one if left out.")] = None,
    image: Annotated[str, typer.Option("--image", help="workbench, runtime or devel.")] = "workbench",
    os: Annotated[str | None, typer.Option(help="An operating system of the catalogue.")] = None,
    write: Annotated[bool, typer.Option("--write", help="Update images/digests.toml.")] = False,
) -> None:
    """Make every layer of wheels twice, and compare its digests with each other and with images/digests.toml."""
    product = find_product(table.load(), line, image, os)
    product.locks.refuse_stale()
    if write and image != "workbench":
        refuse_without_effect(["--write"], f"with --image {image}: images/digests.toml records the workbench's layers")
    daemon.ensure()
    store = Store()
    below = base.ensure(product, store, "auto", offline=False)
    load.ensure_base(below.image, below.reference, store)
    results = twice(planned(product, store), assemble.target(product), below, store)
    for what, result in results.items():
        print(f"{'equal' if not result.differences else 'DIFFERS'}  {result.layer.digest}  {what}")
        for difference in result.differences[:20]:
            print(f"         {difference}")
    if any(result.differences for result in results.values()):
        raise UserError("layer-not-reproducible", "some layers differ when made twice; see the list above")
    if image == "workbench":
        compare_with_record(
            product.line, {what: reproduce.row(result.layer) for what, result in results.items()}, write
        )
    made = assemble.assemble(product, building.revision(), store, assemble.Options())
    if unequal := {result.layer.digest for result in results.values()} - set(made.blobs):
        raise UserError(
            "layer-store-differs",
            f"the image in the store has other layers than were made just now: {', '.join(sorted(unequal))}",
        )
    print(f"base   {below.image.digest}\nimage  {made.digest}")


def planned(product: Product, store: Store) -> dict[str, Group]:
    """The layers of wheels, named by what they hold, their wheels in the store."""
    fetcher = Fetcher(store, product.python)
    found: dict[str, Group] = {}
    for lock in product.layers:
        with fetching(fetcher, read(product.locks.path(lock))) as futures:
            wheels = [future.result() for future in futures.values()]
        found.update((name_of(lock, group), group) for group in groups(wheels))
    return found


def name_of(lock: str, group: Group) -> str:
    """What a layer is called in the record: its wheel, or its lock and shelf."""
    return group.name if group.name else f"{lock}, small packages {group.number}"


def twice(wanted: dict[str, Group], target: Target, below: base.Base, store: Store) -> dict[str, reproduce.Twice]:
    """Makes every layer twice, each time in a new process and another folder, and compares; keeps one if equal."""
    results: dict[str, reproduce.Twice] = {}
    scratch = store.folder / "reproduce"
    scratch.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=scratch) as folder, pool(fresh=True) as executor:
        pairs: dict[str, list[Future[tuple[Layer, Path]]]] = {
            what: [
                executor.submit(reproduce.once, group, target, below.reference, Path(folder, str(number)), name)
                for name in ("first", "second")
            ]
            for number, (what, group) in enumerate(wanted.items())
        }
        for what, pair in pairs.items():
            made = [future.result() for future in pair]
            results[what] = reproduce.compare(made[0], made[1])
            if not results[what].differences:
                key = cached.wheels_key(wanted[what], target, below.python)
                cached.adopt(store, key, *made[0])
            for _, path in made:
                path.unlink()
    return results


def compare_with_record(line: str, rows: dict[str, reproduce.Row], write: bool) -> None:
    """Raises UserError if the layers are not those of images/digests.toml, unless it is to be updated."""
    if write:
        reproduce.write(line, rows)
        print(f"written: {reproduce.DIGESTS}")
    elif line not in reproduce.recorded():
        warn(
            "layer-digest-unrecorded",
            f"images/digests.toml has no digests of line {line}: the layers were compared with each other only. "
            f"Record them: gpuyard reproduce {line} --write",
        )
    elif found := reproduce.changed(rows, reproduce.recorded()[line]):
        raise UserError(
            "layer-digest-changed",
            f"{len(found)} layers are not those of images/digests.toml; if this is intended: gpuyard reproduce {line} "
            "--write\n  " + "\n  ".join(found),
        )
