"""A build without a network, and what a second build costs."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest

from gpuyard import build, paths
from gpuyard.assemble import foundation
from gpuyard.assemble.builder import Options
from gpuyard.catalogue import Catalogue
from gpuyard.store import Store
from gpuyard.wheels.everything import fetch_all, requirements
from gpuyard.wheels.fetcher import Fetcher, carry
from tests.assemble import small

PROGRAM = """
import sys
from pathlib import Path
from gpuyard import build, catalogue
from gpuyard.assemble.builder import Options
from gpuyard.store import Store
from tests.assemble import small
product = small.product(catalogue.load(), Path(sys.argv[1]), "gpuyard-small:offline")
print(build.from_layers(product, Options(offline=True), Store(Path(sys.argv[2]))).digest)
"""


@pytest.fixture(scope="module")
def product(
    table: Catalogue, docker_client: docker.DockerClient, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[small.Small]:
    """A small image, its wheels and base fetched into the user's store."""
    made = small.product(table, tmp_path_factory.mktemp("locks"), "gpuyard-small:offline")
    store = Store()
    foundation.ensure(made, store, "auto", offline=False)
    fetch_all(Fetcher(store, made.python), requirements(made))
    yield made
    for tag in (made.tag, made.full_tag):
        docker_client.images.remove(tag, force=True)


@pytest.mark.engine
def test_an_image_is_built_without_a_network_from_what_was_carried_over(product: small.Small, tmp_path: Path) -> None:
    """Exported and imported, in a network namespace with nothing in it; and again, with the same digest."""
    stick, there = Store(tmp_path / "stick"), Store(tmp_path / "there")
    for source, target in ((Store(), stick), (stick, there)):
        carry(requirements(product), product.python, source, target)
        foundation.carry(product, source, target)
    command = ["unshare", "--net", sys.executable, "-c", PROGRAM, str(tmp_path / "locks"), str(there.folder)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=paths.ROOT)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[-1] == build.from_layers(product, Options(), Store()).digest


@pytest.mark.engine
def test_a_second_build_takes_seconds_and_changes_nothing(product: small.Small) -> None:
    """Every layer is in the store and the image in the engine."""
    first = build.from_layers(product, Options())
    started = time.monotonic()
    assert build.from_layers(product, Options()).digest == first.digest
    assert time.monotonic() - started < 10
