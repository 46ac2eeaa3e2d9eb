"""`gpuyard clean`."""

from __future__ import annotations

import shutil
import time
from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import docker
import typer
from docker.errors import APIError
from docker.models.containers import Container
from docker.models.volumes import Volume

from gpuyard import paths
from gpuyard.catalogue import table as catalogue
from gpuyard.catalogue.claims import LABEL
from gpuyard.commands.options import refuse_without_effect
from gpuyard.engine import daemon
from gpuyard.engine.session import RUN, SESSION, Owner, containers, label_of, remove_one
from gpuyard.errors import warn
from gpuyard.image.load import LOADING
from gpuyard.store.store import Store
from gpuyard.store.usage import NOBODY, SHARED, Retention, Thing, stored

FOLDERS = (paths.BUILD,)
RECORDS = (paths.REPORTS,)
BASE = "gpuyard-base"
"""The repository of the base images in which the layer builder compiles byte code."""
OPTIONS = {"images": "--images", "store": "--store", "build cache": "--build-cache"}


def clean(
    images: Annotated[bool, typer.Option("--images", help="The images too, those without a tag included.")] = False,
    store: Annotated[bool, typer.Option("--store", help="The store of wheels and layers in the cache folder.")] = False,
    build_cache: Annotated[
        bool, typer.Option("--build-cache", help="BuildKit's cache: all of this engine's, whoever built.")
    ] = False,
    line: Annotated[str | None, typer.Option(help="Of images and the store only what this line alone needs.")] = None,
    older_than: Annotated[
        float | None, typer.Option(metavar="DAYS", help="Of images and the store only what is older.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Images, reports, and what is still running too.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show it and remove nothing.")] = False,
) -> None:
    """Remove what gpuyard made: ended containers and their volumes, generated files; more if asked.

    What remains is listed with its size and the option that removes it.
    """
    table = catalogue.load()
    retention = Retention(table.find_line(line) if line else None, older_than)
    refuse_limits(line, older_than, images or store or everything)
    engine = daemon.answers()
    if not engine:
        if images or build_cache:
            daemon.client()
        warn("clean-without-engine", "no Docker engine answers: its containers, volumes, images and cache are left out")
    asked = {"images": images or everything, "store": store, "build cache": build_cache}
    found, left = [*_folders(FOLDERS), *(_folders(RECORDS) if everything else ())], list[Thing]()
    heavy = {"images": list[Thing](), "store": list(stored(Store(), table, retention)), "build cache": list[Thing]()}
    if engine:
        client = daemon.client()
        found = [*started(client, everything), *found]
        heavy["images"], heavy["build cache"] = list(made(client, retention)), list(built(client))
    for kind, things in heavy.items():
        (found if asked[kind] else left).extend(things)
    _remove(found, dry_run)
    _tell(left, {kind: things for kind, things in heavy.items() if things and not asked[kind]})


def refuse_limits(line: str | None, older_than: float | None, limited: bool) -> None:
    """Refuses a limit of images and the store where neither is to go."""
    limits = [option for option, value in (("--line", line), ("--older-than", older_than)) if value is not None]
    refuse_without_effect([] if limited else limits, "without --images, --store or --all, which it limits")


def _remove(things: list[Thing], dry_run: bool) -> None:
    for thing in things:
        word = "would remove" if dry_run else "removing"
        age = "" if thing.age is None else f", {days(thing.age)}"
        print(f"{word}  {human(thing.size):>9}  {thing.name}{age}", flush=True)
        if not dry_run:
            try:
                thing.remove()
            except (APIError, OSError) as error:
                print(f"  kept: {getattr(error, 'explanation', None) or error}")
    if not things:
        print("nothing to remove")
        return
    print(f"{len(things)} things, {human(sum(thing.size or 0 for thing in things))}")
    _by_line(things)


def _by_line(things: list[Thing]) -> None:
    sums: dict[str, int] = defaultdict(int)
    for thing in things:
        sums[thing.line] += thing.size or 0
    if set(sums) - {NOBODY}:
        print("by line: " + ", ".join(f"{line} {human(size)}" for line, size in sorted(sums.items())))


def _tell(left: list[Thing], kinds: dict[str, list[Thing]]) -> None:
    """Prints what else can be removed, and how."""
    if not left:
        return
    print(f"kept: {human(sum(thing.size or 0 for thing in left))} more could go:")
    for kind, things in kinds.items():
        size = sum(thing.size or 0 for thing in things)
        print(f"  {human(size):>9}  {kind} (gpuyard clean {OPTIONS[kind]} --dry-run shows them)")


def started(client: docker.DockerClient, running: bool) -> Iterator[Thing]:
    """Containers and volumes, found by label: those of dead sessions and ended runs, or all."""
    for container in [*containers(client, SESSION), *containers(client, RUN)]:
        if running or not in_use(container):
            name = f"container {container.name} ({container.status})"
            yield Thing(name, None, partial(remove_one, container), "containers")
    for volume in client.volumes.list(filters={"label": SESSION}):
        if running or not in_use(volume):
            yield Thing(f"volume {volume.name}", None, partial(remove_one, volume), "volumes")


def in_use(thing: Container | Volume) -> bool:
    """Whether a living session owns it, or it is a user's container that still runs."""
    label = label_of(thing, SESSION)
    if label:
        owner = Owner.parse(label)
        return owner is not None and not owner.dead()
    return isinstance(thing, Container) and thing.status in ("running", "paused", "restarting")


def made(client: docker.DockerClient, retention: Retention | None = None) -> Iterator[Thing]:
    """Images under the catalogue's repository, the bases they were built in, and ours that lost their tag.

    An image that a user built on top inherits our labels; under another name it is theirs and stays.
    """
    retention, prefix = retention or Retention(), catalogue.load().repository + ":"
    sizes = daemon.disk_sizes(client)
    for image in client.images.list(filters={"label": f"{LABEL}.line"}):
        ours = [tag for tag in image.tags if tag.startswith(prefix)]
        line, age = image.labels[f"{LABEL}.line"], tagged_ago(image.attrs)
        if (ours or not image.tags) and retention.takes(line, age):
            names = ours or [str(image.id)]
            shown = ", ".join(ours) or f"{image.short_id} (no tag)"
            yield Thing(f"image {shown}", sizes.get(str(image.id)), partial(_untag, client, names), "images", line, age)
    for image in [*client.images.list(BASE), *client.images.list(LOADING)]:
        names = [tag for tag in image.tags if tag.startswith((f"{BASE}:", f"{LOADING}:"))]
        age = tagged_ago(image.attrs)
        if names and retention.takes(SHARED, age):
            remove = partial(_untag, client, names)
            yield Thing(f"image {', '.join(names)}", sizes.get(str(image.id)), remove, "images", SHARED, age)


def tagged_ago(attributes: dict[str, Any]) -> float | None:
    """Seconds since an image got its tag, which is when it was built here; its own date is the catalogue's."""
    text = str((attributes.get("Metadata") or {}).get("LastTagTime") or "")
    if not text or text.startswith("0001"):
        return None
    return time.time() - datetime.fromisoformat(text).timestamp()


def built(client: docker.DockerClient) -> Iterator[Thing]:
    """BuildKit's cache, which all builds of this engine share."""
    # Asked for alone: with images and containers this takes the engine seconds.
    url = client.api._url("/system/df")
    found = client.api._result(client.api._get(url, params={"type": "build-cache"}), json=True)
    size = sum(int(entry["Size"]) for entry in found.get("BuildCache") or () if not entry.get("Shared"))
    if size:
        yield Thing("BuildKit's cache", size, partial(client.api.prune_builds, all=True), "build cache", SHARED)


def _untag(client: docker.DockerClient, names: list[str]) -> None:
    for name in names:
        client.images.remove(name)


def _folders(folders: tuple[Path, ...]) -> Iterator[Thing]:
    for folder in folders:
        if folder.exists():
            size = sum(file.lstat().st_size for file in folder.rglob("*") if file.is_file())
            yield Thing(f"{folder}/", size, partial(shutil.rmtree, folder))


def days(seconds: float) -> str:
    """An age for people."""
    return f"{seconds / 86400:.0f} days old" if seconds >= 2 * 86400 else f"{seconds / 3600:.0f} hours old"


def human(size: int | None) -> str:
    """A size for people; a dash where it is not known."""
    if size is None:
        return "-"
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= factor:
            # Three digits, as docker images shows them.
            value = size / factor
            return f"{value:.3g} {unit}" if value < 999.5 else f"{value:.0f} {unit}"
    return f"{size} B"
