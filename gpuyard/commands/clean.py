"""`gpuyard clean`."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import docker
import typer
from docker.errors import APIError
from docker.models.containers import Container
from docker.models.volumes import Volume

from gpuyard import catalogue, engine, paths
from gpuyard.claims import LABEL
from gpuyard.containers import RUN, SESSION, Owner, containers, label_of, remove_one

FOLDERS = (paths.BUILD,)
RECORDS = (paths.REPORTS,)


@dataclass(frozen=True)
class Thing:
    """Something that gpuyard made: what it is, its size in bytes if known, and what removes it."""

    name: str
    size: int | None
    remove: Callable[[], object]


def clean(
    images: Annotated[bool, typer.Option("--images", help="The images too, those without a tag included.")] = False,
    everything: Annotated[bool, typer.Option("--all", help="Images, reports, and what is still running too.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show it and remove nothing.")] = False,
) -> None:
    """Remove what gpuyard made: ended containers and their volumes, generated files; more if asked."""
    found = [*_folders(FOLDERS), *(_folders(RECORDS) if everything else ())]
    if engine.answers():
        client = engine.client()
        found = [*started(client, everything), *found, *(made(client) if images or everything else ())]
    for thing in found:
        print(f"{'would remove' if dry_run else 'removing'}  {human(thing.size):>9}  {thing.name}", flush=True)
        if not dry_run:
            _remove(thing)
    total = sum(thing.size or 0 for thing in found)
    print(f"{len(found)} things, {human(total)}" if found else "nothing to remove")


def _remove(thing: Thing) -> None:
    try:
        thing.remove()
    except (APIError, OSError) as error:
        print(f"  kept: {getattr(error, 'explanation', None) or error}")


def started(client: docker.DockerClient, running: bool) -> Iterator[Thing]:
    """Containers and volumes by their labels: those of dead sessions and ended runs, or all."""
    for container in [*containers(client, SESSION), *containers(client, RUN)]:
        if running or not in_use(container):
            yield Thing(f"container {container.name} ({container.status})", None, partial(remove_one, container))
    for volume in client.volumes.list(filters={"label": SESSION}):
        if running or not in_use(volume):
            yield Thing(f"volume {volume.name}", None, partial(remove_one, volume))


def in_use(thing: Container | Volume) -> bool:
    """Whether a living session owns it, or it is a user's container that still runs."""
    label = label_of(thing, SESSION)
    if label:
        owner = Owner.parse(label)
        return owner is not None and not owner.dead()
    return isinstance(thing, Container) and thing.status in ("running", "paused", "restarting")


def made(client: docker.DockerClient) -> Iterator[Thing]:
    """Images under the catalogue's repository, and ours that lost their tag.

    What somebody built on top inherits our labels; under another name it is theirs and stays.
    """
    prefix = catalogue.load().repository + ":"
    for image in client.images.list(filters={"label": f"{LABEL}.line"}):
        ours = [tag for tag in image.tags if tag.startswith(prefix)]
        if ours or not image.tags:
            names = ours or [str(image.id)]
            shown = ", ".join(ours) or f"{image.short_id} (no tag)"
            yield Thing(f"image {shown}", int(image.attrs["Size"]), partial(_untag, client, names))


def _untag(client: docker.DockerClient, names: list[str]) -> None:
    for name in names:
        client.images.remove(name)


def _folders(folders: tuple[Path, ...]) -> Iterator[Thing]:
    for folder in folders:
        if folder.exists():
            size = sum(file.lstat().st_size for file in folder.rglob("*") if file.is_file())
            yield Thing(f"{folder}/", size, partial(shutil.rmtree, folder))


def human(size: int | None) -> str:
    """A size for people; a dash where it is not known."""
    if size is None:
        return "-"
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= factor:
            return f"{size / factor:.1f} {unit}"
    return f"{size} B"
