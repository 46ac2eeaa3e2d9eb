"""Fixtures that every room's tests share: the catalogue, the engine, and the one built image."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import docker
import pytest
from docker.models.containers import Container

from gpuyard import build, catalogue, engine
from gpuyard.catalogue import Catalogue

Runner = Callable[..., "contextlib.AbstractContextManager[Container]"]


@pytest.fixture(scope="session")
def table() -> Catalogue:
    """The catalogue of this checkout."""
    return catalogue.load()


@pytest.fixture(scope="session")
def docker_client() -> Iterator[docker.DockerClient]:
    """A client of a running engine; installs and starts one where none answers."""
    engine.ensure()
    client = engine.client()
    yield client
    client.close()


@pytest.fixture(scope="session")
def image(table: Catalogue) -> str:
    """The default workbench image, built from this checkout (a warm build takes seconds)."""
    wanted = build.product(table, None)
    build.ensure(wanted)
    return wanted.tag


@pytest.fixture(scope="session")
def run_container(docker_client: docker.DockerClient, image: str) -> Runner:
    """Starts a detached container of the image and removes it at the end, whatever happens."""

    @contextlib.contextmanager
    def start(command: Any = None, reference: str = image, **options: Any) -> Iterator[Container]:
        container = docker_client.containers.run(
            reference, command, detach=True, labels={"io.gpuyard.session": "tests"}, **options
        )
        try:
            yield container
        finally:
            container.remove(force=True, v=True)

    return start
