"""Fixtures that every room's tests share: the catalogue, the engine, and the one built image."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from typing import Any

import docker
import pytest
from docker.models.containers import Container

from gpuyard.catalogue import table as catalogue
from gpuyard.catalogue.product import find_product
from gpuyard.catalogue.table import Catalogue
from gpuyard.engine import daemon
from gpuyard.image import build
from tests.containers import Outcome, Run, Runner, ended, started


def pytest_configure() -> None:
    """Ctrl-C works in what the tests start, also where the shell that started them in the background ignores it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def table() -> Catalogue:
    """The catalogue of this checkout."""
    return catalogue.load()


@pytest.fixture(scope="session")
def docker_client() -> Iterator[docker.DockerClient]:
    """A client of a running engine; installs and starts one where none answers."""
    daemon.ensure()
    client = daemon.client()
    yield client
    client.close()


@pytest.fixture(scope="session")
def image(table: Catalogue) -> str:
    """The default workbench image, built from this checkout (a warm build takes seconds)."""
    wanted = find_product(table, None)
    build.ensure(wanted)
    return wanted.tag


@pytest.fixture(scope="session")
def run_container(docker_client: docker.DockerClient, image: str) -> Runner:
    """Starts a detached container of the image and removes it at the end, whatever happens."""

    def start(
        command: Any = None, reference: str = image, **options: Any
    ) -> contextlib.AbstractContextManager[Container]:
        return started(docker_client, reference, command, **options)

    return start


@pytest.fixture
def run(run_container: Runner) -> Run:
    """Runs a container to its end: exit code, standard output and standard error apart."""

    def start(*command: str, timeout: float = 120, **options: Any) -> Outcome:
        with run_container(list(command) or None, **options) as container:
            return ended(container, timeout)

    return start
