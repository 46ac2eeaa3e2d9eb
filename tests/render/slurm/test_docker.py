"""Rendered jobs on a real Slurm, in containers of the image."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest

from gpuyard import paths
from tests.render.slurm.cluster import Cluster, eventually
from tests.render.slurm.conftest import Submit
from tests.render.slurm.test_jobs import ENDED, log

pytestmark = [pytest.mark.full, pytest.mark.image]
PAGE = paths.ROOT / "docs" / "slurm.md"
RING = """
import os, torch, torch.distributed as dist
dist.init_process_group("gloo")
total = torch.tensor([float(dist.get_rank() + 1)])
dist.all_reduce(total)
print(f"SUM {total.item():g} node {os.environ['GROUP_RANK']}", flush=True)
dist.destroy_process_group()
"""


def hook(cluster: Cluster, name: str, image: str) -> None:
    """Puts the script of this name from the documentation into the cluster's configuration."""
    (text,) = re.findall(rf"```sh {name}\n(.*?)```", PAGE.read_text(), re.DOTALL)
    (cluster.folder / name).write_text(re.sub(r"pytorch-cuda:v[\w.-]+", image, text).replace("--gpus all ", ""))


@pytest.fixture
def hooks(slurm: Cluster) -> Iterator[Cluster]:
    """The cluster, whose prolog and epilog do nothing again afterwards."""
    yield slurm
    for name in ("prolog", "epilog"):
        (slurm.folder / name).write_text("#!/bin/sh\nexit 0\n")


def test_a_command_runs_in_the_image_on_a_node_that_is_fit(
    slurm: Cluster, folder: Path, submit: Submit, image: str
) -> None:
    """verify judges first, the command has the image's torch and the job's folder, its exit code is the job's."""
    code = "import torch, sys; print('torch', torch.ones(3).sum().item()); open('made', 'w'); sys.exit(7)"
    number = submit("python", "-c", code, image=image, verify=True)
    job = slurm.wait(number, *ENDED)
    said = log(folder, number)
    assert (job["JobState"], job["ExitCode"]) == ("FAILED", "7:0"), said
    assert said.index("is fit") < said.index("torch 3.0")
    assert (folder / "made").exists()


def test_a_container_is_told_to_save_and_goes_on(slurm: Cluster, folder: Path, submit: Submit, image: str) -> None:
    """SIGTERM reaches the command through the engine; the job is queued again and starts from the checkpoint."""
    number = submit("python", "counter.py", image=image)
    eventually((folder / "running").exists, 60, "the counter", slurm.logs)
    slurm.run("scancel", "--batch", "--signal=USR1", number)
    job = slurm.wait(number, "COMPLETED")
    assert job["Restarts"] == "1"
    assert f"starts at {(folder / 'count.txt').read_text()}" in log(folder, number)


def test_a_training_under_torchrun_is_queued_again_and_goes_on(
    slurm: Cluster, folder: Path, submit: Submit, image: str
) -> None:
    """torchrun calls being told to end a failure; its workers have saved, and the second start ends the training."""
    options = ("--models", "models", "--workers", "0", "--epochs", "80", "--patience", "80")
    number = submit("torchrun", "-m", "examples.classify", *options, image=image)
    eventually((folder / "models" / "classify-rnn" / "checkpoint.pt").exists, 60, "a checkpoint", slurm.logs)
    slurm.run("scancel", "--batch", "--signal=USR1", number)
    job = slurm.wait(number, *ENDED)
    said = log(folder, number)
    assert (job["JobState"], job["Restarts"]) == ("COMPLETED", "1"), said
    assert said.index("saved after step") < said.index("queued again (exit 1)") < said.index("continues after step")


def test_a_node_without_gpus_is_not_fit_for_a_job_with_them(
    slurm: Cluster, folder: Path, submit: Submit, image: str, docker_client: docker.DockerClient
) -> None:
    """Slurm says that there is a GPU, the engine can't give one: the log names the node."""
    assert not docker_client.info()["Runtimes"].get("nvidia"), "this test is for machines without a GPU"
    number = submit("touch", "ran", image=image, gpus=1, verify=True)
    assert slurm.wait(number, *ENDED)["JobState"] == "FAILED"
    assert "node alpha is NOT fit" in log(folder, number)
    assert not (folder / "ran").exists()


def test_torchrun_joins_the_containers_of_two_nodes(slurm: Cluster, folder: Path, submit: Submit, image: str) -> None:
    """Two containers, one rank each: both see the sum over both."""
    (folder / "ring.py").write_text(RING)
    number = submit("torchrun", "ring.py", image=image, nodes=2)
    job = slurm.wait(number, *ENDED)
    said = log(folder, number)
    assert job["JobState"] == "COMPLETED", said
    assert sorted(re.findall("SUM .*", said)) == ["SUM 3 node 0", "SUM 3 node 1"]


def test_the_documented_epilog_removes_what_a_killed_job_left(
    hooks: Cluster, folder: Path, submit: Submit, image: str, docker_client: docker.DockerClient
) -> None:
    """A command that ignores SIGTERM outlives its client; the epilog ends its container."""
    hook(hooks, "epilog", image)
    number = submit("sh", "-c", "trap '' TERM; touch running; while :; do sleep 1; done", image=image)
    eventually((folder / "running").exists, 60, "the command", hooks.logs)
    name = f"gpuyard-{number}-0"
    assert docker_client.containers.list(filters={"name": name})
    hooks.run("scancel", number)
    hooks.wait(number, "CANCELLED")
    eventually(lambda: not docker_client.containers.list(filters={"name": name}), 60, "the epilog", hooks.logs)


def test_the_documented_prolog_drains_a_node_that_is_not_fit(hooks: Cluster, submit: Submit, image: str) -> None:
    """verify's verdict reaches Slurm: the node takes no more jobs, and its reason says so."""
    if Path("/dev/nvidiactl").exists():
        pytest.skip("this machine has a GPU, so that the prolog passes")
    hook(hooks, "prolog", image)
    number = submit("true", image=image, sbatch=("--nodelist=beta",))
    try:
        eventually(lambda: "drain" in node(hooks, "beta"), 90, "a drained node", hooks.logs)
        assert "verify" in node(hooks, "beta") or "Prolog" in node(hooks, "beta")
    finally:
        hooks.run("scancel", number)
        eventually(lambda: "COMPLETING" not in hooks.job(number)["JobState"], 60, "the end", hooks.logs)
        hooks.run("scontrol", "update", "nodename=beta", "state=resume")


def node(cluster: Cluster, name: str) -> str:
    """A node's state and reason."""
    return cluster.run("sinfo", "--noheader", "--Node", f"--nodes={name}", "--format=%T %E")
