"""`gpuyard render`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from gpuyard.catalogue import table
from gpuyard.errors import UserError
from gpuyard.render import devcontainer as devcontainer_
from gpuyard.render import kubernetes, pods
from gpuyard.render import slurm as slurm_
from gpuyard.render.work import Work, image_reference

app = typer.Typer(
    no_args_is_help=True,
    help="Write the file that starts a training elsewhere. It is printed; nothing is sent anywhere.",
)
Output = Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write it there, not to stdout.")]
Image = Annotated[str, typer.Option(help="workbench, runtime, or an image's reference.")]
Name = Annotated[str, typer.Option(help="The job's name.")]
Nodes = Annotated[int, typer.Option(help="Machines.")]
Gpus = Annotated[int, typer.Option(help="GPUs on each of them; 0 for none.")]
Cpus = Annotated[int, typer.Option(help="Processors on each of them.")]
Memory = Annotated[int, typer.Option(help="Memory on each of them, in GiB.")]
Shm = Annotated[int, typer.Option(help="Shared memory for DataLoader workers, in GiB.")]
Verify = Annotated[bool, typer.Option("--verify/--no-verify", help="Judge each node before the command starts.")]


@app.command("slurm")
def slurm(
    context: typer.Context,
    engine: Annotated[str, typer.Option(help="docker, pyxis or apptainer.")] = "docker",
    image: Image = "workbench",
    name: Name = "train",
    nodes: Nodes = 1,
    gpus: Gpus = 0,
    cpus: Cpus = 4,
    memory: Memory = 16,
    shm: Shm = 8,
    time: Annotated[str, typer.Option(help="Minutes, HOURS:MM:SS or DAYS-HH:MM:SS.")] = "1:00:00",
    save_before: Annotated[int, typer.Option(help="Seconds before the end at which the command is to save.")] = 120,
    partition: Annotated[str, typer.Option(help="The cluster's partition.")] = "",
    account: Annotated[str, typer.Option(help="Whom the cluster charges.")] = "",
    volume: Annotated[list[str] | None, typer.Option("-v", "--volume", help="/FOLDER:/PLACE[:ro]")] = None,
    env: Annotated[list[str] | None, typer.Option("-e", "--env", help="NAME=value, or NAME to pass it on.")] = None,
    verify: Verify = True,
    output: Output = None,
) -> None:
    """A batch script for sbatch. After --, the command; it runs once on each node, so start it with torchrun."""
    work = _work(context, Work(_image(image), (), name, nodes, gpus, cpus, memory, shm, verify))
    job = slurm_.Slurm(engine, time, save_before, partition, account, tuple(volume or ()), tuple(env or ()))
    write(slurm_.script(work, job), output)


@app.command("k8s")
def k8s(
    context: typer.Context,
    kind: Annotated[str, typer.Option(help="job, indexed-job, jobset or trainjob.")] = "job",
    image: Image = "workbench",
    name: Name = "train",
    nodes: Nodes = 1,
    gpus: Gpus = 0,
    cpus: Cpus = 4,
    memory: Memory = 16,
    shm: Shm = 8,
    namespace: Annotated[str, typer.Option(help="Where in the cluster; kubectl's own if left out.")] = "",
    workspace: Annotated[str, typer.Option(metavar="CLAIM", help="A volume claim for /workspace.")] = "",
    data: Annotated[str, typer.Option(metavar="CLAIM", help="A volume claim for /mnt/data.")] = "",
    models: Annotated[str, typer.Option(metavar="CLAIM", help="A volume claim for /mnt/models.")] = "",
    runtime: Annotated[str, typer.Option(help="trainjob: the cluster's training runtime.")] = "torch-distributed",
    verify: Verify = True,
    output: Output = None,
) -> None:
    """Objects for kubectl. After --, the command; it runs once in each pod, so start it with torchrun."""
    work = _work(context, Work(_image(image), (), name, nodes, gpus, cpus, memory, shm, verify))
    claims = {"workspace": workspace, "data": data, "models": models}
    given = tuple((place, claim) for place, claim in claims.items() if claim)
    write(kubernetes.manifest(work, pods.Cluster(kind, namespace, given, runtime)), output)


@app.command("devcontainer")
def devcontainer(
    image: Image = "workbench",
    name: Name = "train",
    gpu: Annotated[str, typer.Option(help="optional, required or none.")] = "optional",
    shm: Shm = 8,
    output: Output = None,
) -> None:
    """A devcontainer.json, for editors that open a folder in a container: -o .devcontainer/devcontainer.json"""
    write(devcontainer_.configuration(devcontainer_.Editor(_image(image), name, gpu, shm)), output)


def write(text: str, output: Path | None) -> None:
    """Prints the text, or writes a file that did not exist before. Raises UserError; nothing is half-written."""
    if output is None:
        print(text, end="")
        return
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        file = output.open("x")
    except FileExistsError:
        raise UserError(f"{output} exists: remove it, or choose another --output") from None
    except OSError as error:
        raise UserError(f"{output}: cannot be written: {error.strerror}") from None
    try:
        with file:
            file.write(text)
    except OSError as error:
        output.unlink(missing_ok=True)
        raise UserError(f"{output}: cannot be written: {error.strerror}") from None


def _image(word: str) -> str:
    return image_reference(table.load(), word)


def _work(context: typer.Context, work: Work) -> Work:
    return replace(work, command=tuple(context.obj or ()))
