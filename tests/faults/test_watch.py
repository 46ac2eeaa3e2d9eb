"""A GPU that is taken from a running container, as a systemd reload on the host does it, and the watch that sees it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import docker
import pytest
from docker.models.containers import Container

from gpuyard import paths
from gpuyard.waiting import until
from tests.containers import Runner
from tests.faults.cdi import LIBRARIES
from tests.faults.faults import HOME, NODES, WORKING
from tests.faults.stubs import compile_stub

pytestmark = [pytest.mark.image, pytest.mark.full]
ZERO = "c 1:5 rwm"
"""The nodes are /dev/zero's, which nothing else in the container needs."""


@pytest.fixture
def watched(docker_client: docker.DockerClient, run_container: Runner) -> Iterator[Container]:
    """A container with a GPU by every sign, looked at every half second."""
    if docker_client.info()["CgroupVersion"] != "1":
        pytest.skip("under cgroup v2 the rules are a program of the kernel, which cannot be changed from here")
    stubs = paths.ROOT / "build" / "faults"
    mounts = [f"{compile_stub(stubs, name)}:{HOME}/{name}:ro" for name in LIBRARIES.values()]
    nodes = [f"/dev/zero:/dev/{name}:rwm" for name in NODES]
    with run_container(["verify", "--watch", "0.5"], volumes=mounts, devices=nodes, environment=WORKING) as container:
        yield container


def said(container: Container) -> list[str]:
    """What the watch has printed."""
    return list(container.logs(stderr=False).decode().splitlines())


def test_a_gpu_whose_rules_are_taken_away_is_told_with_the_way_back(watched: Container) -> None:
    """Well at first; after the host has changed the rules one line says what, why and whose; Ctrl-C ends it."""
    assert until(lambda: said(watched), 30)
    assert "ok: driver" in said(watched)[0]
    rules = Path("/sys/fs/cgroup/devices/docker", str(watched.id))
    (rules / "devices.deny").write_text(ZERO)
    assert until(lambda: len(said(watched)) > 1, 30)
    lost = said(watched)[1]
    assert "The first broken link is device-nodes" in lost
    assert "EPERM" in lost
    assert "Whose it is: host. What to do: recreate the container; for good: CDI" in lost
    (rules / "devices.allow").write_text(ZERO)
    assert until(lambda: len(said(watched)) > 2, 30)
    assert "ok: driver" in said(watched)[2]
    watched.kill("SIGINT")
    assert watched.wait(timeout=30)["StatusCode"] == 0
