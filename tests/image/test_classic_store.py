"""An engine with Docker's classic image store (overlay2) takes the same stream."""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest

from gpuyard.catalogue.table import Catalogue
from gpuyard.engine import daemon as engine
from gpuyard.image import assemble, build, buildkit, load
from gpuyard.image.assemble import Options
from gpuyard.image.oci import Image
from gpuyard.store.store import Store
from tests.image import small
from tests.refusals import refused

BRIDGE = "gpuyard-test0"
"""A bridge of its own: with none at all, a second dockerd removes the first one's."""


@contextlib.contextmanager
def classic(folder: Path, *options: str) -> Iterator[str]:
    """The address of a second engine, which keeps images as engines before containerd's store did."""
    settings, socket = folder / "daemon.json", f"unix://{folder}/docker.sock"
    settings.write_text(json.dumps({"features": {"containerd-snapshotter": False}, "storage-driver": "overlay2"}))
    subprocess.run(["ip", "link", "add", BRIDGE, "type", "bridge"], check=True)
    command = ["dockerd", "--config-file", str(settings), "--host", socket, "--pidfile", str(folder / "pid")]
    command += ["--data-root", str(folder / "data"), "--exec-root", str(folder / "exec"), "--bridge", BRIDGE]
    with (folder / "log").open("w") as log:
        command += ["--iptables=false", "--ip6tables=false", *options]
        daemon = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        wait(socket, daemon, folder / "log")
        yield socket
    finally:
        daemon.terminate()
        daemon.wait(30)
        subprocess.run(["ip", "link", "delete", BRIDGE], check=True)


def wait(socket: str, daemon: subprocess.Popen[bytes], log: Path) -> None:
    """Until it answers."""
    for _ in range(150):
        assert daemon.poll() is None, log.read_text()[-1000:]
        with contextlib.suppress(docker.errors.DockerException):
            docker.DockerClient(socket).ping()
            return
        time.sleep(0.2)
    raise AssertionError(log.read_text()[-1000:])


@pytest.fixture
def short_path() -> Iterator[Path]:
    """A folder whose name leaves room for a socket's; overlay2 needs the disk itself under it."""
    folder = Path(tempfile.mkdtemp(prefix="gpuyard-", dir="/var/tmp"))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def made(table: Catalogue, tmp_path: Path, docker_client: docker.DockerClient) -> tuple[small.Small, Image]:
    """A small image in the user's store, put together with the engine of this machine."""
    del docker_client
    product = small.product(table, tmp_path, "gpuyard-small:classic")
    return product, assemble.assemble(product, build.revision(), Store(), Options())


@pytest.mark.engine
def test_the_classic_store_takes_the_image(
    made: tuple[small.Small, Image], short_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Loaded under its tags from zstd layers; a package of each kind is imported; a second load sends nothing."""
    product, image = made
    with classic(short_path) as address:
        monkeypatch.setenv("DOCKER_HOST", address)
        assert not engine.content_store(engine.client())
        load.load(image, [product.tag, product.full_tag], Store())
        assert engine.client().images.get(product.full_tag).id == engine.client().images.get(product.tag).id
        command = ["docker", "run", "--rm", "--network", "none", "--entrypoint", "python", product.tag]
        subprocess.run([*command, "-c", "import six, yaml, zmq, tqdm"], check=True)
        monkeypatch.setattr(load, "_send", refuse)
        load.load(image, [product.tag], Store())


@pytest.mark.engine
def test_a_classic_store_that_cannot_pull_a_builder_says_what_to_do(
    short_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its BuildKit writes no OCI layouts, and a proxy that answers nothing keeps the builder's image away."""
    monkeypatch.setenv("BUILDX_CONFIG", str(tmp_path))
    definition = {"target": {"empty": {"dockerfile-inline": "FROM scratch\nENV A=B\n", "context": str(tmp_path)}}}
    nowhere = "http://127.0.0.1:9"
    with classic(short_path, f"--http-proxy={nowhere}", f"--https-proxy={nowhere}") as address:
        monkeypatch.setenv("DOCKER_HOST", address)
        with refused("builder-unavailable", "moby/buildkit") as caught:
            buildkit.bake_oci(definition, "empty", tmp_path / "out.tar")
        assert "\n" not in str(caught.value)
        assert not (tmp_path / "instances" / buildkit.BUILDER).exists()


@pytest.mark.engine
def test_an_engine_whose_disk_is_full_says_so_and_keeps_its_tags(
    made: tuple[small.Small, Image], short_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its disk is smaller than the image: one line with the engine's words, and no tag."""
    product, image = made
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=100m", "gpuyard-test", str(short_path)], check=True)
    try:
        with classic(short_path) as address:
            monkeypatch.setenv("DOCKER_HOST", address)
            with refused("engine-load-failed", "no space left on device"):
                load.load(image, [product.tag], Store())
            assert engine.client().images.list() == []
    finally:
        subprocess.run(["umount", str(short_path)], check=True)


def refuse(*_: object) -> None:
    """Fails the test that calls it."""
    raise AssertionError("the image was sent again")
