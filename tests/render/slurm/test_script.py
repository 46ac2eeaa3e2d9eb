"""`gpuyard render slurm`: scripts that bash and shellcheck accept, and one line for each mistake."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from gpuyard.cli import main
from gpuyard.render.slurm import ENGINES, Slurm, script
from gpuyard.render.work import Work

SHELLCHECK = Path(sys.executable).with_name("shellcheck")
WORK = Work("registry.test/owner/image:9.9", ("torchrun", "train.py", "--note", "it's $HOME; `ls`\n2"))
SLURM = Slurm(volumes=("/local/data:/mnt/data:ro",), env=("A=b c", "HF_TOKEN"), partition="gpu", account="lab")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("nodes", "gpus"), [(1, 0), (1, 1), (2, 4)])
def test_shellcheck_has_nothing_to_say(tmp_path: Path, engine: str, nodes: int, gpus: int) -> None:
    """Every kind of script is clean, the part that the nodes run included."""
    text = script(Work("a/b", ("torchrun", "it.py"), nodes=nodes, gpus=gpus), replace(SLURM, engine=engine))
    inner = text.split("<<'NODE'\n")[1].split("\nNODE\n")[0]
    for name, part in (("job.sh", text), ("node.sh", f"#!/bin/bash\n{inner}\n")):
        (tmp_path / name).write_text(part)
        done = subprocess.run([SHELLCHECK, tmp_path / name], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout


def test_a_commands_words_stay_words() -> None:
    """Quotes, dollars, backticks and line ends reach the command as they were typed."""
    line = script(WORK, Slurm()).split('"${on_each_node[@]}" ')[2]
    shown = subprocess.run(
        ["bash", "-c", "printf '%s\\0' " + line.split(" &\nstep=")[0]], capture_output=True, text=True, check=True
    )
    assert tuple(shown.stdout.split("\0")[:-1]) == WORK.command


def test_sbatch_is_told_what_was_asked_for() -> None:
    """Nodes, GPUs, processors, memory, time, partition and account stand in the header."""
    head = script(Work("a/b", ("x",), "fit", 2, 8, 16, 64), Slurm(time="2-00:30:00", partition="gpu", account="lab"))
    wanted = ["job-name=fit", "nodes=2", "gpus-per-node=8", "cpus-per-task=16", "mem=64G", "time=2-00:30:00"]
    lines = set(head.splitlines())
    assert {f"#SBATCH --{option}" for option in [*wanted, "partition=gpu", "account=lab", "requeue"]} <= lines


def test_only_torchrun_may_end_with_1_when_it_was_told_to_save() -> None:
    """It knows no other way to end then; any other command says by 1 that it could not save."""
    assert '" 0 1 143 "' in script(WORK, SLURM)
    assert '" 0 143 "' in script(replace(WORK, command=("python", "train.py")), SLURM)


def test_without_gpus_slurm_is_asked_for_none() -> None:
    """A cluster without GPUs would refuse the job, and docker the flag."""
    assert "gpu" not in script(Work("a/b", ("x",), verify=False), Slurm()).replace("gpuyard", "")


def test_a_secret_is_passed_by_name() -> None:
    """NAME without a value puts no value into the file."""
    assert "--env HF_TOKEN\n" in script(WORK, SLURM)


MISTAKES = [
    ([], "no command: write it after --"),
    (["--nodes", "0", "--", "x"], "--nodes 0: expected 1 or more"),
    (["--gpus", "-1", "--", "x"], "--gpus -1: expected 0 or more"),
    (["--cpus", "0", "--", "x"], "--cpus 0: expected 1 or more"),
    (["--engine", "dcoker", "--", "x"], "unknown engine 'dcoker'. Did you mean 'docker'?"),
    (["--engine", "pyxis", "--", "x"], "pyxis needs a registry's"),
    (["--engine", "apptainer", "--", "x"], "apptainer needs docker://REFERENCE"),
    (["--image", "a b", "--", "x"], "--image 'a b': expected"),
    (["--name", "My Job", "--", "x"], "--name 'My Job': expected"),
    (["--time", "soon", "--", "x"], "--time 'soon': expected minutes"),
    (["--save-before", "1", "--", "x"], "--save-before 1: expected 10 to 65535 seconds"),
    (["--partition", "a\nb", "--", "x"], "--partition 'a\\nb': expected"),
    (["-v", "data:/mnt/data", "--", "x"], "-v 'data:/mnt/data': expected /FOLDER:/PLACE"),
    (["-e", "1A=b", "--", "x"], "-e '1A=b': expected NAME=value"),
    (["--memory", "8", "--shm", "8", "--", "x"], "--memory 8 with --shm 8: shared memory counts as memory"),
]


@pytest.mark.parametrize(("words", "said"), MISTAKES)
def test_a_mistake_is_one_line(refused: Callable[..., str], words: list[str], said: str) -> None:
    """It says what was wrong and what was expected, and nothing is written."""
    assert said in refused("slurm", *words)


def test_a_file_is_written_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """--output writes a file that was not there, and leaves one that was as it is."""
    file = tmp_path / "job.sh"
    command = ["render", "slurm", "--output", str(file), "--", "true"]
    with pytest.raises(SystemExit) as first:
        main(command)
    assert (first.value.code, file.read_text()[:11]) == (0, "#!/bin/bash")
    file.write_text("mine")
    with pytest.raises(SystemExit) as second:
        main(command)
    assert (second.value.code, file.read_text()) == (1, "mine")
    assert "exists: remove it" in capsys.readouterr().err
