"""A build without a network, and what a second build costs."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest

from gpuyard import paths
from gpuyard.catalogue.table import Catalogue
from gpuyard.image import base, build
from gpuyard.image.assemble import Options
from gpuyard.packages.fetcher import Fetcher, carry, fetch_all, requirements
from gpuyard.store.store import Store
from tests.image import small

PROGRAM = """
import sys
from pathlib import Path
from gpuyard.image import build
from gpuyard.catalogue import table
from gpuyard.image.assemble import Options
from gpuyard.store.store import Store
from tests.image import small
product = small.product(table.load(), Path(sys.argv[1]), "gpuyard-small:offline")
print(build.from_layers(product, Options(offline=True), Store(Path(sys.argv[2]))).digest)
"""


@pytest.fixture(scope="module")
def product(
    table: Catalogue, docker_client: docker.DockerClient, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[small.Small]:
    """A small image, its wheels and base fetched into the user's store."""
    made = small.product(table, tmp_path_factory.mktemp("locks"), "gpuyard-small:offline")
    store = Store()
    base.ensure(made, store, "auto", offline=False)
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
        base.carry(product, source, target)
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
