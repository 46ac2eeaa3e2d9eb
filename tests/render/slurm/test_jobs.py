"""Rendered jobs on a real Slurm, with engines that run the command without a container."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from gpuyard.render.slurm import Slurm
from tests.render.slurm.cluster import Cluster, eventually
from tests.render.slurm.conftest import Submit
from tests.render.slurm.engines import stand_ins

pytestmark = pytest.mark.full
PYTHON = "/usr/bin/python3"
ENDED = ("COMPLETED", "FAILED", "CANCELLED", "NODE_FAIL", "TIMEOUT")


def log(folder: Path, number: str) -> str:
    """What a job wrote."""
    return (folder / f"train-{number}.log").read_text()


@pytest.mark.parametrize("engine", ["docker", "apptainer", "pyxis"])
def test_a_commands_exit_code_is_the_jobs(slurm: Cluster, folder: Path, submit: Submit, engine: str) -> None:
    """A command that ends with 7 fails the job with 7, and its words stand in the log."""
    path = stand_ins(folder)
    number = submit("bash", "-c", "echo it\\'s; exit 7", path=path, where=Slurm(engine))
    job = slurm.wait(number, *ENDED)
    assert (job["JobState"], job["ExitCode"]) == ("FAILED", "7:0")
    assert "it's" in log(folder, number)
    assert "the command ended with exit 7" in log(folder, number)


def test_a_job_that_is_told_to_save_goes_on_where_it_was(slurm: Cluster, folder: Path, submit: Submit) -> None:
    """Slurm's warning reaches the command as SIGTERM; the job is queued again and completes from its checkpoint."""
    number = submit(PYTHON, "counter.py", path=stand_ins(folder))
    eventually((folder / "running").exists, 60, "the counter", slurm.logs)
    slurm.run("scancel", "--batch", "--signal=USR1", number)
    job = slurm.wait(number, "COMPLETED", seconds=240)
    saved = (folder / "count.txt").read_text()
    assert int(saved) > 0
    assert job["Restarts"] == "1"
    said = log(folder, number)
    assert said.index("starts at 0") < said.index(f"saved {saved}") < said.index(f"starts at {saved}")


def test_slurm_warns_before_the_time_is_up(slurm: Cluster, folder: Path, submit: Submit) -> None:
    """Nobody signals by hand: a job of one minute is told to save, and completes on its second start."""
    number = submit(PYTHON, "counter.py", path=stand_ins(folder), where=Slurm(time="1", warning=50))
    job = slurm.wait(number, "COMPLETED", seconds=150)
    assert job["Restarts"] == "1"
    assert "time is nearly up" in log(folder, number)
    assert f"starts at {(folder / 'count.txt').read_text()}" in log(folder, number)


def test_a_users_job_runs_as_that_user(slurm: Cluster, folder: Path, submit: Submit) -> None:
    """Files that the container makes in a shared folder belong to whoever submitted the job."""
    number = submit("true", path=stand_ins(folder), sbatch=("--uid=65534", "--gid=65534"))
    slurm.wait(number, "COMPLETED")
    assert "--user 65534:65534" in (folder / "docker.txt").read_text()


def test_a_command_that_fails_while_saving_is_not_queued_again(slurm: Cluster, folder: Path, submit: Submit) -> None:
    """A full disk at the checkpoint would otherwise repeat for ever."""
    words = "trap 'exit 5' TERM; touch running; while :; do sleep 0.1; done"
    number = submit("bash", "-c", words, path=stand_ins(folder))
    eventually((folder / "running").exists, 60, "the command", slurm.logs)
    slurm.run("scancel", "--batch", "--signal=USR1", number)
    job = slurm.wait(number, *ENDED)
    assert (job["JobState"], job["ExitCode"], job["Restarts"]) == ("FAILED", "5:0", "0")


def test_a_node_that_is_not_fit_runs_nothing(slurm: Cluster, folder: Path, submit: Submit) -> None:
    """verify's exit code ends the job before the command, and the log names the node and the way around it."""
    number = submit("touch", "ran", path=stand_ins(folder, verdict=3), verify=True)
    job = slurm.wait(number, *ENDED)
    assert (job["JobState"], job["ExitCode"]) == ("FAILED", "3:0")
    assert "node alpha is NOT fit (verify: exit 3)" in log(folder, number)
    assert "sbatch --exclude=alpha" in log(folder, number)
    assert not (folder / "ran").exists()


def test_a_fit_node_is_said_to_be_fit(slurm: Cluster, folder: Path, submit: Submit) -> None:
    """The verdict comes before the command's words."""
    number = submit("echo", "command", path=stand_ins(folder), verify=True)
    slurm.wait(number, "COMPLETED")
    said = log(folder, number)
    assert said.index("verify --quick") < said.index("node alpha is fit") < said.index("command\n")


def test_a_job_gets_the_gpus_that_slurm_gave_it(slurm: Cluster, folder: Path, submit: Submit) -> None:
    """Two jobs at once on one machine with two GPUs get one each, by their real numbers."""
    path = stand_ins(folder)
    # Each waits for the other, so that both hold a GPU at the same time however slow the machine is.
    words = "touch here-$$; until [ $(ls here-* | wc -l) -gt 1 ]; do sleep 0.2; done"
    jobs = [submit("bash", "-c", words, path=path, gpus=1, sbatch=("--nodelist=alpha",)) for _ in range(2)]
    for number in jobs:
        slurm.wait(number, "COMPLETED")
    calls = sorted(line for line in (folder / "docker.txt").read_text().splitlines() if line.startswith("run"))
    assert ['--gpus "device=0"' in calls[0], '--gpus "device=1"' in calls[1]] == [True, True]
    assert all("--memory 2048m" in call and "--cpus 1" in call and "--shm-size 1g" in call for call in calls)


def test_two_nodes_know_of_each_other(slurm: Cluster, folder: Path, submit: Submit) -> None:
    """Each node runs the command once, with its own rank and the first node's address and port."""
    words = "echo NODE $PET_NODE_RANK of $PET_NNODES at $PET_MASTER_ADDR:$PET_MASTER_PORT with $PET_NPROC_PER_NODE"
    number = submit("bash", "-c", words, path=stand_ins(folder), nodes=2)
    slurm.wait(number, "COMPLETED")
    said = sorted(line for line in log(folder, number).splitlines() if line.startswith("NODE"))
    port = 20000 + int(number) % 12000
    assert said == [f"NODE {rank} of 2 at 127.0.0.1:{port} with 1" for rank in (0, 1)]


def test_one_node_that_fails_ends_the_others(slurm: Cluster, folder: Path, submit: Submit) -> None:
    """A rank that died leaves nobody waiting for it."""
    started = time.monotonic()
    number = submit("bash", "-c", "[ $PET_NODE_RANK = 1 ] && exit 4; sleep 300", path=stand_ins(folder), nodes=2)
    job = slurm.wait(number, *ENDED, seconds=60)
    assert job["JobState"] == "FAILED"
    assert time.monotonic() - started < 60


def test_pyxis_gets_image_mounts_and_folder(slurm: Cluster, folder: Path, submit: Submit) -> None:
    """srun starts the container, with the folder the job came from as /workspace and no home of the host's."""
    number = submit("true", path=stand_ins(folder), where=Slurm("pyxis"))
    slurm.wait(number, "COMPLETED")
    words = (folder / "srun.txt").read_text().splitlines()
    wanted = ["image=local/image:test", f"mounts={folder}:/workspace", "workdir=/workspace"]
    assert {f"--container-{word}" for word in wanted} | {"--no-container-mount-home"} <= set(words)
