"""The lower layers of an image go into the engine before the upper ones are made."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from threading import Event

import docker
import pytest

from gpuyard.catalogue.table import Catalogue
from gpuyard.engine import daemon
from gpuyard.errors import UserError
from gpuyard.image import base as base_image
from gpuyard.image import build, load, oci
from gpuyard.image.assemble import Options, assemble
from gpuyard.image.preload import Preloader
from gpuyard.packages.fetcher import Fetcher, carry, fetch_all, requirements
from gpuyard.store.store import Store
from tests.image import small
from tests.image.test_oci import blob


class Engine:
    """Stands for the engine: takes what is streamed once it may, and remembers it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, content_store: bool = True) -> None:
        self.taken: list[int] = []
        self.forgotten: list[int] = []
        self.may = Event()
        self.may.set()
        self.error: Exception | None = None
        monkeypatch.setattr(daemon, "client", lambda: None)
        monkeypatch.setattr(daemon, "content_store", lambda _: content_store)
        monkeypatch.setattr(load, "blobs_present", lambda *_: set())
        monkeypatch.setattr(load, "stream", lambda image, *_: self.take(image))
        monkeypatch.setattr(load, "forget", lambda image, _: self.forgotten.append(len(image.layers)))

    def take(self, image: oci.Image) -> None:
        """As `docker load` does, in its own time."""
        self.may.wait(10)
        if self.error:
            raise self.error
        self.taken.append(len(image.layers))


def beginnings(store: Store, count: int) -> list[oci.Image]:
    """An image of one layer, of two, and so on."""
    layers = [blob(store, str(number).encode() * 2000) for number in range(count)]
    return [oci.compose(oci.Descriptors((), (), ()), layers[: end + 1], {}, "") for end in range(count)]


def test_a_beginning_is_sent_when_there_is_enough_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And the next when there is as much again; at the end their names go."""
    store, there = Store(tmp_path), Engine(monkeypatch)
    sender = Preloader(store, step=4000)
    for beginning in beginnings(store, 5):
        sender.offer(beginning)
        sender.wait()
    assert there.taken == [2, 4]
    sender.forget()
    assert there.forgotten == [2, 4]


def test_one_is_sent_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is offered meanwhile waits for a later offer, and the caller for nothing."""
    store, there = Store(tmp_path), Engine(monkeypatch)
    sender, (one, two, three) = Preloader(store, step=1), beginnings(store, 3)
    there.may.clear()
    sender.offer(one)
    sender.offer(two)
    there.may.set()
    sender.wait()
    sender.offer(three)
    sender.wait()
    assert there.taken == [1, 3]


def test_an_engine_that_refuses_costs_nothing_but_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole image is sent at the end, and a fault is reported then."""
    store, there = Store(tmp_path), Engine(monkeypatch)
    there.error = UserError("engine-load-failed", "no space left on device")
    sender, (one, two) = Preloader(store, step=1), beginnings(store, 2)
    sender.offer(one)
    sender.wait()
    assert there.taken == []
    there.error = None
    sender.offer(two)
    sender.wait()
    assert there.taken == [2]


def test_a_beginning_that_arrives_after_the_end_is_forgotten_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A build that failed does not wait for what it began to send."""
    store, there = Store(tmp_path), Engine(monkeypatch)
    there.may.clear()
    sender = Preloader(store, step=1)
    sender.offer(beginnings(store, 1)[0])
    sender.forget()
    there.forgotten.clear()
    there.may.set()
    sender.wait()
    assert there.forgotten == [1]


def test_the_classic_store_gets_the_whole_image_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It wants every layer each time, so a beginning would be sent twice."""
    store, there = Store(tmp_path), Engine(monkeypatch, content_store=False)
    sender = Preloader(store, step=1)
    sender.offer(beginnings(store, 1)[0])
    sender.wait()
    assert there.taken == []


@pytest.mark.engine
def test_beginnings_leave_nothing_but_the_image(
    table: Catalogue, docker_client: docker.DockerClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A build that sends each layer as it is made: the same digest, which runs, and no name or record more."""
    monkeypatch.setattr(build, "Preloader", partial(Preloader, step=1))
    sent: list[int] = []
    stream = load.stream

    def watched(image: oci.Image, store: Store, leave_out: set[str], *level: int) -> None:
        stream(image, store, leave_out, *level)
        if not level:
            return  # the whole image, at the end
        sent.append(len(image.layers))

    monkeypatch.setattr(load, "stream", watched)
    product, store = small.product(table, tmp_path / "locks", "gpuyard-small:ahead"), Store(tmp_path / "store")
    base_image.ensure(product, Store(), "auto", offline=False)
    fetch_all(Fetcher(Store(), product.python), requirements(product))
    carry(requirements(product), product.python, Store(), store)
    base_image.carry(product, Store(), store)
    try:
        image = build.from_layers(product, Options(offline=True), store)
        said = docker_client.containers.run(product.tag, ["python", "-c", "import six; print(six.PY3)"], remove=True)
        assert said.strip().endswith(b"True")
        assert sent
        assert max(sent) < len(image.layers)
        assert image.digest == assemble(product, build.revision(), store, Options(offline=True)).digest
        assert not docker_client.images.list(load.LOADING)
        base = {layer["digest"] for layer in base_image.ensure(product, store, "auto", offline=True).layers}
        kept = [store.record("manifests", path.stem) or {} for path in (store.folder / "manifests").iterdir()]
        assert [record["layers"] for record in kept if set(record["layers"]) != base] == [image.blobs]
    finally:
        for tag in (product.tag, product.full_tag):
            docker_client.images.remove(tag, force=True)
