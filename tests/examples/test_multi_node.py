"""Two nodes of a Docker network train one model; one is killed, and all go on from the last checkpoint."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import docker
import pytest
from docker.models.containers import Container

from gpuyard import paths
from tests.containers import Run

pytestmark = [pytest.mark.image, pytest.mark.full]
FILE = paths.ROOT / "compose.multi-node.yaml"
TRAIN = "examples.classify --dropout 0 --epochs 30 --patience 30 --save-seconds 1"
SHOW = "print(open('/mnt/models/classify-rnn/trace.json').read())"


@dataclass(frozen=True)
class Nodes:
    """The two nodes of one project of docker compose."""

    client: docker.DockerClient
    project: str
    image: str

    def compose(self, *words: str, **variables: str) -> str:
        """What docker compose says."""
        command = ["docker", "compose", "--project-name", self.project, "--file", str(FILE), *words]
        env = {**os.environ, "GPUYARD_IMAGE": self.image, "TRAIN": TRAIN, **variables}
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def node(self, name: str) -> Container:
        """The container of a node."""
        found: Container = self.client.containers.get(f"{self.project}-{name}-1")
        return found

    def logs(self, name: str) -> str:
        """All that a node has said, in all its lives."""
        return str(self.node(name).logs().decode())

    def crash(self, name: str) -> None:
        """The node is gone as if its power had failed; docker starts it again, as its restart policy says."""
        os.kill(self.node(name).attrs["State"]["Pid"], signal.SIGKILL)

    def until(self, holds: Callable[[], object], seconds: float = 180) -> None:
        """Waits until something is so."""
        deadline = time.monotonic() + seconds
        while not holds():
            assert time.monotonic() < deadline, self.logs("node0")[-3000:] + "\n----\n" + self.logs("node1")[-3000:]
            time.sleep(0.3)

    def finished(self) -> bool:
        """Whether both nodes have ended well."""
        states = [self.node(name).attrs["State"] for name in ("node0", "node1")]
        return all(state["Status"] == "exited" and state["ExitCode"] == 0 for state in states)

    def losses(self) -> list[float]:
        """The losses of the finished training."""
        mounts = {f"{self.project}_models": {"bind": "/mnt/models", "mode": "ro"}}
        said = self.client.containers.run(self.image, ["python", "-c", SHOW], remove=True, volumes=mounts)
        found: list[float] = json.loads(said)["losses"]
        return found


@pytest.fixture
def nodes(docker_client: docker.DockerClient, image: str) -> Iterator[Nodes]:
    """A project of this test alone; containers, network and volumes are gone at the end."""
    made = Nodes(docker_client, f"gpuyard-nodes-{os.getpid()}", image)
    yield made
    made.compose("down", "--volumes", "--timeout", "1")


@pytest.fixture(scope="module")
def alone(docker_client: docker.DockerClient, image: str) -> list[float]:
    """The losses of one process that nothing disturbed."""
    command = f'python -m {TRAIN} >/dev/null && python -c "{SHOW}"'
    said = docker_client.containers.run(image, ["sh", "-c", command], remove=True)
    found: list[float] = json.loads(said)["losses"]
    return found


@pytest.mark.parametrize("killed", ["node1", "node0"])
def test_a_killed_node_comes_back_and_the_course_is_the_same(nodes: Nodes, alone: list[float], killed: str) -> None:
    """Whichever it is, also the one where the nodes meet; each loss is one process's within rounding."""
    nodes.compose("up", "--detach")
    nodes.until(lambda: "epoch 4/30" in nodes.logs("node0") + nodes.logs("node1"))
    nodes.crash(killed)
    nodes.until(lambda: "continues after step" in nodes.logs("node0") + nodes.logs("node1"))
    nodes.until(nodes.finished)
    assert nodes.node(killed).attrs["RestartCount"] >= 1
    assert nodes.losses() == pytest.approx(alone, abs=1e-4)


def test_the_node_that_is_left_goes_on_and_takes_the_other_back(nodes: Nodes, alone: list[float]) -> None:
    """With one to two nodes, a lost one costs a restart and no wait; its return costs another."""
    nodes.compose("up", "--detach", NODES="1:2")
    nodes.until(lambda: "epoch 2/30" in nodes.logs("node0") + nodes.logs("node1"))
    nodes.node("node1").kill()
    nodes.until(lambda: "continues after step" in nodes.logs("node0"))
    nodes.node("node1").start()
    nodes.until(nodes.finished)
    assert nodes.losses() == pytest.approx(alone, abs=1e-4)


def test_nodes_that_are_stopped_save_the_same_step_and_go_on(nodes: Nodes, alone: list[float]) -> None:
    """Both end with 0, without torchrun's traceback; started again they end as one process does."""
    nodes.compose("up", "--detach")
    nodes.until(lambda: "epoch 4/30" in nodes.logs("node0") + nodes.logs("node1"))
    nodes.compose("stop", "--timeout", "30")
    said = [nodes.logs(name) for name in ("node0", "node1")]
    assert nodes.finished(), said
    (steps,) = {re.findall(r"saved after step \d+", text)[0] for text in said}
    assert "Traceback" not in said[0] + said[1]
    nodes.compose("up", "--detach")
    nodes.until(lambda: steps.replace("saved", "continues") in nodes.logs("node0") + nodes.logs("node1"))
    nodes.until(nodes.finished)
    assert nodes.losses() == pytest.approx(alone, abs=1e-4)


def test_a_node_whose_name_is_the_loopback_says_so(run: Run) -> None:
    """Instead of waiting for a node that connects to itself."""
    words: list[Any] = [
        "python",
        "-m",
        "examples.node",
        "--nodes",
        "2",
        "--meet",
        "here:29400",
        "--",
        "examples.classify",
    ]
    ended = run(*words, hostname="here", network_mode="none", extra_hosts={"here": "127.0.1.1"})
    assert ended.code == 1
    assert "node: this node's name here stands for 127.0.1.1, which other nodes can't reach" in ended.stderr
