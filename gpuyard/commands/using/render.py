"""`gpuyard render`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from gpuyard.catalogue import table
from gpuyard.errors import UserError, warn
from gpuyard.render import devcontainer as devcontainer_
from gpuyard.render import kubernetes, pods
from gpuyard.render import slurm as slurm_
from gpuyard.render.work import PER_GPU, Work, amount, image_reference

app = typer.Typer(
    no_args_is_help=True,
    help="Write the file that starts a training elsewhere. It is printed; nothing is sent anywhere.",
)
Output = Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write it there, not to stdout.")]
Image = Annotated[str, typer.Option(help="workbench, runtime, or an image's reference.")]
Name = Annotated[str, typer.Option(help="The job's name.")]
Nodes = Annotated[int, typer.Option(help="Machines.")]
Gpus = Annotated[int, typer.Option(help="GPUs on each of them; 0 for none.")]
Cpus = Annotated[int | None, typer.Option(help=f"Processors on each of them; {PER_GPU['cpus']} a GPU if left out.")]
Memory = Annotated[int | None, typer.Option(help=f"Memory on each of them, in GiB; {PER_GPU['memory']} a GPU.")]
Shm = Annotated[int | None, typer.Option(help=f"Part of it for DataLoader workers, in GiB; {PER_GPU['shm']} a GPU.")]
Verify = Annotated[bool, typer.Option("--verify/--no-verify", help="Verify each node before the command starts.")]
Env = Annotated[list[str] | None, typer.Option("-e", "--env", help="NAME=value for the command.")]
Secret = Annotated[list[str] | None, typer.Option(metavar="NAME=SECRET:KEY", help="A variable from a secret's key.")]
Selector = Annotated[list[str] | None, typer.Option(metavar="LABEL=VALUE", help="Only nodes with this label.")]


@app.command("slurm")
def slurm(
    context: typer.Context,
    engine: Annotated[str, typer.Option(help="docker, pyxis or apptainer.")] = "docker",
    image: Image = "workbench",
    name: Name = "train",
    nodes: Nodes = 1,
    gpus: Gpus = 0,
    cpus: Cpus = None,
    memory: Memory = None,
    shm: Shm = None,
    time: Annotated[str, typer.Option(help="Minutes, HOURS:MM:SS or DAYS-HH:MM:SS.")] = "1:00:00",
    save_before: Annotated[
        int, typer.Option(help="Seconds before the end at which the command is told to save.")
    ] = 120,
    partition: Annotated[str, typer.Option(help="The cluster's partition.")] = "",
    account: Annotated[str, typer.Option(help="The account that is charged.")] = "",
    volume: Annotated[list[str] | None, typer.Option("-v", "--volume", help="/FOLDER:/PLACE[:ro]")] = None,
    env: Annotated[list[str] | None, typer.Option("-e", "--env", help="NAME=value, or NAME to pass it on.")] = None,
    verify: Verify = True,
    output: Output = None,
) -> None:
    """A batch script for sbatch. After --, the command; it runs once on each node, so start it with torchrun."""
    work = _work(context, Work(_image(image), (), name, nodes, gpus, verify=verify), cpus, memory, shm)
    job = slurm_.Slurm(engine, time, save_before, partition, account, tuple(volume or ()), tuple(env or ()))
    text = slurm_.script(work, job)
    if script := slurm_.missing_script(work, job):
        warn("render-script-missing", f"{script} is in no volume of the job: give its folder with -v /FOLDER:/PLACE")
    write(text, output)


@app.command("k8s")
def k8s(
    context: typer.Context,
    kind: Annotated[str, typer.Option(help="job, indexed-job, jobset or trainjob.")] = "job",
    image: Image = "workbench",
    name: Name = "train",
    nodes: Nodes = 1,
    gpus: Gpus = 0,
    cpus: Cpus = None,
    memory: Memory = None,
    shm: Shm = None,
    namespace: Annotated[str, typer.Option(help="Where in the cluster; kubectl's own if left out.")] = "",
    workspace: Annotated[str, typer.Option(metavar="CLAIM", help="A volume claim for /workspace.")] = "",
    data: Annotated[str, typer.Option(metavar="CLAIM", help="A volume claim for /mnt/data.")] = "",
    models: Annotated[str, typer.Option(metavar="CLAIM", help="A volume claim for /mnt/models.")] = "",
    runtime: Annotated[str, typer.Option(help="trainjob: the cluster's training runtime.")] = "torch-distributed",
    env: Env = None,
    secret: Secret = None,
    pull_secret: Annotated[str, typer.Option(metavar="SECRET", help="The secret that pulls the image.")] = "",
    node_selector: Selector = None,
    queue: Annotated[str, typer.Option(help="Kueue's LocalQueue.")] = "",
    verify: Verify = True,
    output: Output = None,
) -> None:
    """Objects for kubectl. After --, the command; it runs once in each pod, so start it with torchrun."""
    work = _work(context, Work(_image(image), (), name, nodes, gpus, verify=verify), cpus, memory, shm)
    claims = {"workspace": workspace, "data": data, "models": models}
    given = tuple((place, claim) for place, claim in claims.items() if claim)
    own = (tuple(env or ()), tuple(secret or ()), pull_secret, tuple(node_selector or ()), queue)
    cluster = pods.Cluster(kind, namespace, given, runtime, *own)
    text = kubernetes.manifest(work, cluster)
    if script := kubernetes.missing_script(work, cluster):
        advice = "give a claim that holds it (--workspace CLAIM), or an image with it (--image REGISTRY/NAME:TAG)"
        warn("render-script-missing", f"{script} is in no volume of the pods and not in {work.image}: {advice}")
    write(text, output)


@app.command("devcontainer")
def devcontainer(
    image: Image = "workbench",
    name: Annotated[str, typer.Option(help="The project's name, also its volumes'; the folder's if left out.")] = "",
    gpu: Annotated[str, typer.Option(help="optional, required or none.")] = "optional",
    shm: Annotated[int, typer.Option(help="Shared memory for DataLoader workers, in GiB.")] = 8,
    output: Output = None,
) -> None:
    """A devcontainer.json, for editors that open a folder in a container: -o .devcontainer/devcontainer.json"""
    named = name or devcontainer_.folder_name(_project(output))
    write(devcontainer_.configuration(devcontainer_.Editor(_image(image), named, gpu, shm)), output)


def _project(output: Path | None) -> Path:
    """The folder that an editor opens: the one above .devcontainer, or this one."""
    folders = (output or Path("devcontainer.json")).absolute().parents
    return next((folder.parent for folder in folders if folder.name == ".devcontainer"), folders[0])


def write(text: str, output: Path | None) -> None:
    """Prints the text, or writes a file that did not exist before. Raises UserError; nothing is half-written."""
    if output is None:
        print(text, end="")
        return
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        file = output.open("x")
    except FileExistsError:
        raise UserError("output-exists", f"{output} exists: remove it, or choose another --output") from None
    except OSError as error:
        raise UserError("output-unwritable", f"{output}: cannot be written: {error.strerror}") from None
    try:
        with file:
            file.write(text)
    except OSError as error:
        output.unlink(missing_ok=True)
        raise UserError("output-unwritable", f"{output}: cannot be written: {error.strerror}") from None


def _image(word: str) -> str:
    return image_reference(table.load(), word)


def _work(context: typer.Context, work: Work, cpus: int | None, memory: int | None, shm: int | None) -> Work:
    return replace(
        work,
        command=tuple(context.obj or ()),
        cpus=amount("cpus", work.gpus, cpus),
        memory=amount("memory", work.gpus, memory),
        shm=amount("shm", work.gpus, shm),
    )
