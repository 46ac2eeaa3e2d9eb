"""The layer builder: wheels are fetched and turned into layers at the same time, then put together."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from itertools import chain, takewhile
from pathlib import Path
from threading import Lock

from gpuyard import paths
from gpuyard.catalogue import claims
from gpuyard.catalogue.product import Product
from gpuyard.catalogue.table import Layer as LockLayer
from gpuyard.errors import UserError
from gpuyard.image import base, buildkit, configuration, load, oci, origin
from gpuyard.image.workers import pool
from gpuyard.layers import cached
from gpuyard.layers.model import Layer, Target, refuse_conflicts
from gpuyard.layers.plan import Group, groups, is_big
from gpuyard.packages.fetcher import Fetcher, Wheel, fetch_all, fetching, requirements
from gpuyard.packages.locked import Locked, read
from gpuyard.progress import meter
from gpuyard.store.store import Store


@dataclass(frozen=True)
class Options:
    """Ways to build; none of them changes the image."""

    choice: origin.BaseChoice = "auto"
    offline: bool = False
    no_cache: bool = False
    workers: int | None = None


def target(product: Product) -> Target:
    """The target of a product's layers."""
    return Target(product.python, int(product.catalogue.os[product.os].epoch.timestamp()))


Offer = Callable[[oci.Image], None]
"""Called with the image as far as it is made, from the bottom up, whenever more layers are done."""


def assemble(product: Product, revision: str, store: Store, options: Options, offer: Offer | None = None) -> oci.Image:
    """The image as blobs in the store, the base and every layer made or found there. Raises UserError."""
    stage, making = begin(product, store, options, offer)
    layers, _ = make_layers(product, stage, making)
    return compose(product, revision, store, making.below, layers)


def begin(product: Product, store: Store, options: Options, offer: Offer | None = None) -> tuple[Path, Making]:
    """The base, made or found, and our own files laid out: what the layers on it are made from. Raises UserError."""
    below = base_beside_fetching(product, store, options)
    stage = paths.BUILD / f"{product.line}-{product.image}"
    buildkit.stage(product, stage)
    return stage, Making(product, store, below, options, offer)


def recall(product: Product, revision: str, store: Store) -> oci.Image:
    """The image that ``assemble`` made, from the store's records alone. Builds, fetches and reads nothing large.

    Raises UserError if anything of the image, exactly as this checkout has it, is not in the store.
    """
    try:
        below = base.ensure(product, store, "auto", offline=True)
    except UserError:
        raise _not_assembled(product, "its base is not in the store") from None
    making = Making(product, store, below, Options(offline=True))
    wheels = [layer for lock in product.layers for layer in _recalled(making, product, lock)]
    # In a folder of its own: a build may be using that of the builds.
    with tempfile.TemporaryDirectory() as stage:
        buildkit.stage(product, Path(stage))
        own = cached.known(store, cached.files_key(Path(stage), making.target, below.reference))
    if own is None:
        raise _not_assembled(product, "entrypoints/, verify/ or its claims changed since")
    return compose(product, revision, store, below, [*wheels, own])


def _recalled(making: Making, product: Product, lock: LockLayer) -> list[Layer]:
    promised = [making.fetcher.promised(locked) for locked in read(product.locks.path(lock))]
    layers = [making.known(group) for group in groups(wheel for wheel in promised if wheel)]
    if None in promised or None in layers:
        raise _not_assembled(product, f"layers of its {lock} wheels are not in the store")
    return [layer for layer in layers if layer]


def _not_assembled(product: Product, why: str) -> UserError:
    again = f"gpuyard build {product.line} --image {product.image} --builder layers"
    return UserError("image-not-assembled", f"{product.tag} was not built from this checkout: {why}. Run: {again}")


def compose(product: Product, revision: str, store: Store, below: base.Base, layers: Sequence[Layer]) -> oci.Image:
    """The image of a base and layers, configured as the product's Dockerfiles say. Raises UserError for conflicts."""
    refuse_conflicts(layers)
    settings = configuration.settings(product, below.settings, store)
    settings["Labels"] = claims.labels(product, revision, below.origin)
    created = product.catalogue.os[product.os].epoch.strftime("%Y-%m-%dT%H:%M:%SZ")
    return oci.compose(below.inherited, layers, settings, created)


def base_beside_fetching(product: Product, store: Store, options: Options) -> base.Base:
    """The base. Where it has to be built, which takes a minute or two, wheels are fetched meanwhile."""
    ask = (product, store, options.choice, options.offline, options.no_cache)
    if options.offline or (not options.no_cache and base.is_stored(product, store)):
        return base.ensure(*ask)
    with ThreadPoolExecutor(1, thread_name_prefix="base") as beside:
        building = beside.submit(base.ensure, *ask)
        fetch_all(Fetcher(store, product.python), requirements(product))
        return building.result()


def make_layers(
    product: Product, stage: Path, making: Making, more: Sequence[list[Locked]] = ()
) -> tuple[list[Layer], list[Layer]]:
    """The product's layers above the base, from the bottom up, and those of the wheels of ``more`` locks on top.

    The product's last layer, of our own files, is made beside those of the wheels.
    """
    with ThreadPoolExecutor(1, thread_name_prefix="files") as beside:
        last = beside.submit(making.files, stage)
        locks = [read(product.locks.path(layer)) for layer in product.layers]
        wheels = make_wheels([*locks, *more], making)
        below, above = wheels[: len(locks)], wheels[len(locks) :]
        return [*chain.from_iterable(below), last.result()], [*chain.from_iterable(above)]


def make_wheels(locks: Sequence[list[Locked]], making: Making) -> list[list[Layer]]:
    """The layers of the wheels of each lock, from the bottom up."""
    wanted = [locked for lock in locks for locked in making.missing(lock)]
    with pool(making.options.workers) as making.executor:
        with meter("wheels", len(wanted)) as shown, fetching(making.fetcher, wanted, shown.moved) as futures:
            # Big wheels as they come; small ones when all of their lock are there.
            for done in as_completed(futures.values()):
                shown.finished()
                making.arrived(done.result())
        planned = [[making.start(group) for group in groups(map(making.fetcher.sure, lock))] for lock in locks]
        results = [future for lock in planned for future in lock]
        with meter("layers", len(results)) as shown:
            for done_layer in as_completed(results):
                shown.moved(done_layer.result().size)
                shown.finished()
                making.offer(results)
        return [[future.result() for future in lock] for lock in planned]


class Making:
    """Starts each layer once; byte code needs the base image in the engine, loaded when first needed."""

    def __init__(
        self, product: Product, store: Store, below: base.Base, options: Options, offer: Offer | None = None
    ) -> None:
        self.target, self.store, self.below, self.options = target(product), store, below, options
        self._offer = offer
        self.fetcher = Fetcher(store, product.python, options.offline)
        self.executor: ProcessPoolExecutor | None = None
        self._made = False
        self._started: dict[Group, Future[Layer]] = {}
        self._loading = Lock()
        self._loaded = False

    def missing(self, lock: list[Locked]) -> list[Locked]:
        """What of a lock has to be fetched or checked: the wheels of layers that are not in the store."""
        promised = {locked: self.fetcher.promised(locked) for locked in lock}
        wheels = [wheel for wheel in promised.values() if wheel]
        if len(wheels) < len(lock):
            return lock
        there = {wheel for group in groups(wheels) if self.known(group) for wheel in group.wheels}
        return [locked for locked, wheel in promised.items() if wheel not in there]

    def arrived(self, wheel: Wheel) -> None:
        """A wheel is in the store: one that has a layer of its own is begun."""
        if is_big(wheel):
            self.start(Group((wheel,)))

    def known(self, group: Group) -> Layer | None:
        """The layer of a group if it need not be made."""
        if self.options.no_cache:
            return None
        return cached.known(self.store, cached.wheels_key(group, self.target, self.below.python))

    def start(self, group: Group) -> Future[Layer]:
        """The layer of a group, begun if it was not."""
        if group not in self._started:
            self._started[group] = self._begin(group)
        return self._started[group]

    def _begin(self, group: Group) -> Future[Layer]:
        if found := self.known(group):
            ready: Future[Layer] = Future()
            ready.set_result(found)
            return ready
        assert self.executor is not None
        self._made = True
        work = cached.remake_wheels if self.options.no_cache else cached.ensure_wheels
        return self.executor.submit(work, self.store, group, self.target, self.compiler(), self.below.python)

    def offer(self, results: list[Future[Layer]]) -> None:
        """Offers the image up to the first layer that is not done, if any had to be made."""
        if self._offer and self._made:
            self._offer(self.below.with_layers(future.result() for future in takewhile(Future.done, results)))

    def files(self, stage: Path) -> Layer:
        """The layer of this project's own files."""
        key = cached.files_key(stage, self.target, self.below.reference)
        if self.options.no_cache:
            cached.forget(self.store, key)
        elif found := cached.known(self.store, key):
            return found
        return cached.ensure_files(self.store, key, stage, self.target, self.compiler())

    def compiler(self) -> str:
        """The base image in the engine."""
        with self._loading:
            if not self._loaded:
                load.ensure_base(self.below.image, self.below.reference, self.store)
                self._loaded = True
        return self.below.reference
