"""Helpers of tests that start containers."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import docker
from docker.models.containers import Container

Runner = Callable[..., "contextlib.AbstractContextManager[Container]"]


@dataclass(frozen=True)
class Outcome:
    """Exit code and output of a container that has ended."""

    code: int
    stdout: str
    stderr: str


Run = Callable[..., Outcome]


@contextlib.contextmanager
def started(client: docker.DockerClient, image: str, command: Any, **options: Any) -> Iterator[Container]:
    """A detached container that is removed at the end, whatever happens."""
    container = client.containers.run(image, command, detach=True, **options)
    try:
        yield container
    finally:
        container.remove(force=True, v=True)


def ended(container: Container, timeout: float) -> Outcome:
    """Waits for the container to end."""
    code = container.wait(timeout=timeout)["StatusCode"]
    out, err = (container.logs(stdout=which, stderr=not which).decode() for which in (True, False))
    return Outcome(code, out, err)
