"""Containers of the real image with a fault in them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from docker.types import DeviceRequest

from gpuyard import paths
from tests.containers import Outcome, Run
from tests.faults.cdi import KIND, folder_of_engine, write

VerifyWith = Callable[..., Outcome]


@pytest.fixture(scope="session")
def specification(docker_client: object) -> Iterator[None]:
    """The faults are known to the engine while the tests run."""
    del docker_client
    file = write(folder_of_engine(), paths.ROOT / "build" / "faults")
    yield
    file.unlink(missing_ok=True)


@pytest.fixture
def with_fault(run: Run, specification: None) -> VerifyWith:
    """Runs a command in a container of the image that was started with the fault."""
    del specification

    def start(name: str, *command: str, **options: Any) -> Outcome:
        device = DeviceRequest(driver="cdi", device_ids=[f"{KIND}={name}"])
        return run(*command, device_requests=[device], **options)

    return start


def finding(outcome: Outcome, check: str) -> dict[str, Any]:
    """One finding of a run with ``--json -``."""
    found: dict[str, Any] = next(f for f in json.loads(outcome.stdout)["findings"] if f["check"] == check)
    return found
