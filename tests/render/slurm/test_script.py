"""`gpuyard render slurm`: scripts that bash and shellcheck accept, and one line for each mistake."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from gpuyard.cli import main
from gpuyard.render.slurm import ENGINES, Slurm, script, seconds
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
    ([], "render-command-missing", "--"),
    (["--nodes", "0", "--", "x"], "render-value-invalid", "--nodes 0"),
    (["--gpus", "-1", "--", "x"], "render-value-invalid", "--gpus -1"),
    (["--cpus", "0", "--", "x"], "render-value-invalid", "--cpus 0"),
    (["--engine", "dcoker", "--", "x"], "render-choice-unknown", "'docker'"),
    (["--engine", "pyxis", "--", "x"], "render-image-local", "registry#owner/name:tag"),
    (["--engine", "apptainer", "--", "x"], "render-image-local", "docker://REFERENCE"),
    (["--image", "a b", "--", "x"], "render-value-invalid", "--image 'a b'"),
    (["--image", "pytorch-cuda:v9", "--", "x"], "image-tag-unknown", "pytorch-cuda:v9"),
    (["--name", "My Job", "--", "x"], "render-value-invalid", "--name 'My Job'"),
    (["--time", "soon", "--", "x"], "render-value-invalid", "--time 'soon'"),
    (["--time", "99:99", "--", "x"], "render-value-invalid", "--time '99:99'"),
    (["--time", "1:60:00", "--", "x"], "render-value-invalid", "--time '1:60:00'"),
    (["--time", "1-24:00:00", "--", "x"], "render-value-invalid", "--time '1-24:00:00'"),
    (["--time", "1", "--", "x"], "render-value-invalid", "--save-before 120"),
    (["--save-before", "1", "--", "x"], "render-value-invalid", "--save-before 1"),
    (["--partition", "a\nb", "--", "x"], "render-value-invalid", "--partition 'a\\nb'"),
    (["-v", "data:/mnt/data", "--", "x"], "render-value-invalid", "-v 'data:/mnt/data'"),
    (["-e", "1A=b", "--", "x"], "render-value-invalid", "-e '1A=b'"),
    (["--memory", "8", "--shm", "8", "--", "x"], "render-memory-too-small", "--memory 8"),
]


@pytest.mark.parametrize(("words", "id_", "value"), MISTAKES)
def test_a_mistake_is_one_line(refused: Callable[..., str], words: list[str], id_: str, value: str) -> None:
    """Its id and the value are named, and nothing is written."""
    shown = refused("slurm", *words)
    assert f"error[{id_}]" in shown
    assert value in shown


@pytest.mark.parametrize(
    ("time", "expected"),
    [("90", 5400), ("1:30", 90), ("1:00:00", 3600), ("2-00:30:00", 174600), ("1-6", 108000), ("100:00:00", 360000)],
)
def test_a_time_is_read_as_slurm_reads_it(time: str, expected: int) -> None:
    """In all the forms that sbatch takes."""
    assert seconds(time) == expected


def rendered(
    capsys: pytest.CaptureFixture[str], *words: str, caplog: pytest.LogCaptureFixture | None = None
) -> tuple[str, str]:
    """The script and the warnings for these options."""
    with pytest.raises(SystemExit) as ended:
        main(["render", "slurm", *words])
    assert not ended.value.code
    return capsys.readouterr().out, caplog.text if caplog else ""


def test_what_a_node_gets_grows_with_its_gpus(capsys: pytest.CaptureFixture[str]) -> None:
    """Processors, memory and shared memory; what is given stays."""
    without, _ = rendered(capsys, "--", "x")
    assert "--cpus-per-task=4\n#SBATCH --mem=16G" in without
    eight, _ = rendered(capsys, "--gpus", "8", "--", "x")
    assert "--cpus-per-task=64\n#SBATCH --mem=256G" in eight
    assert "--shm-size 64g" in eight
    given, _ = rendered(capsys, "--gpus", "8", "--cpus", "2", "--memory", "9", "--shm", "1", "--", "x")
    assert "--cpus-per-task=2\n#SBATCH --mem=9G" in given


def test_a_script_that_no_volume_holds_is_named(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """The folder of the job is /workspace; anything else needs a volume."""
    words = ("--", "python", "/mnt/data/train.py")
    text, warned = rendered(capsys, *words, caplog=caplog)
    assert "warning[render-script-missing]" in warned
    assert "# /mnt/data/train.py is in no volume" in text
    caplog.clear()
    for fine in (["-v", "/shared:/mnt/data", *words], ["--", "python", "train.py"], ["--", "python", "/opt/x.py"]):
        assert rendered(capsys, *fine, caplog=caplog)[1] == ""


def test_a_local_tag_is_named_as_local(capsys: pytest.CaptureFixture[str]) -> None:
    """Each node's Docker would need it."""
    assert "is a local name" in rendered(capsys, "--", "x")[0]
    assert "is a local name" not in rendered(capsys, "--image", "registry.test/a:1", "--", "x")[0]


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
    assert "error[output-exists]" in capsys.readouterr().err
