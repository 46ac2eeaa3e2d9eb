"""`gpuyard run`."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path
from typing import Annotated, Any

import docker
import typer

from gpuyard.catalogue import table
from gpuyard.catalogue.product import Product, find_product
from gpuyard.engine import daemon, mounts
from gpuyard.engine.ports import check_ports, holders
from gpuyard.engine.preflight import choose_gpus, is_local, probe_gpus, public_key
from gpuyard.engine.session import RUN
from gpuyard.engine.start import GIB, Port, Start, default_shm, parse_gpus, size, split_secrets
from gpuyard.errors import UsageError, UserError
from gpuyard.image import build as building

JUPYTER, SSH, TRAINER = 8888, 2222, 1000
OPTIONS = {JUPYTER: "--jupyter-port", SSH: "--ssh-port"}


def run(
    context: typer.Context,
    line: Annotated[
        str | None, typer.Argument(help="A line of the catalogue (gpuyard list); the default one if left out.")
    ] = None,
    image: Annotated[str, typer.Option(help="workbench, runtime or devel.")] = "workbench",
    gpus: Annotated[str, typer.Option(help="all, none, auto, or devices such as 0,1.")] = "auto",
    shm_size: Annotated[str | None, typer.Option(help="Shared memory; 8g, less on a small host.")] = None,
    user: Annotated[str | None, typer.Option(help="As in docker run.")] = None,
    name: Annotated[str | None, typer.Option(help="The container's name.")] = None,
    detach: Annotated[bool, typer.Option("--detach", "-d", help="Leave it running in the background.")] = False,
    volume: Annotated[list[str] | None, typer.Option("-v", "--volume", help="As in docker run.")] = None,
    here: Annotated[bool, typer.Option("--here", help="Mount this folder at /workspace.")] = False,
    env: Annotated[list[str] | None, typer.Option("-e", "--env", help="As in docker run.")] = None,
    publish: Annotated[list[str] | None, typer.Option("-p", "--publish", help="As in docker run.")] = None,
    ssh_key: Annotated[Path | None, typer.Option(metavar="FILE.pub", help="Who may log in by SSH.")] = None,
    ca: Annotated[Path | None, typer.Option(metavar="FILE", help="Your company's certificates, as PEM.")] = None,
    jupyter_port: Annotated[int, typer.Option(help="Port of JupyterLab on this host.")] = JUPYTER,
    ssh_port: Annotated[int, typer.Option(help="Port of SSH on this host.")] = SSH,
    bind: Annotated[str, typer.Option(help="Address that the ports are bound to.")] = "127.0.0.1",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the docker line and start nothing.")] = False,
) -> None:
    """Start a container with the right flags, and print the docker line. After --, a command for it.

    Without a command it starts JupyterLab, and SSH if a key is given. A secret given with -e reaches
    the container by docker's environment, not by its command line.
    """
    command = tuple(context.obj or ())
    wanted = find_product(table.load(), line, image)
    parse_gpus(gpus)
    user, remap = remapped(Path.cwd()) if here and user is None else (user, [])
    mounted, trust = volumes(volume or [], Path.cwd(), here, ca)
    link = jupyter_link(bind, jupyter_port)
    words, secrets = split_secrets([*link, *(env or ()), *key_variable(ssh_key), *trust, *remap])
    client = connect(dry_run)
    info: dict[str, Any] = client.info() if client else {}
    chosen, note = choose_gpus(gpus, probe_gpus(info, local=client is None or is_local(client)))
    start = Start(
        image=wanted.tag,
        gpus=chosen,
        shm=shm(shm_size, int(info.get("MemTotal") or 0)),
        name=name,
        detach=detach,
        keep=detach,
        terminal=not detach and sys.stdin.isatty() and sys.stdout.isatty(),
        ports=ports(wanted, command, words, jupyter_port, ssh_port, bind),
        publish=tuple(publish or ()),
        volumes=mounted,
        env=words,
        labels={RUN: wanted.line},
        command=command,
        user=user,
    )
    notes = [note, shm_notice(start.shm, int(info.get("MemTotal") or 0))]
    notes += [mounts.notice(mount, Path.cwd()) for mount in volume or []]
    for said in filter(None, notes):
        print(f"gpuyard: {said}", file=sys.stderr)
    if dry_run:
        print(shlex.join(start.line()))
        return
    assert client is not None
    refuse(client, wanted, start)
    launch(start, secrets)


def connect(dry_run: bool) -> docker.DockerClient | None:
    """The engine's client; for a dry run, none where no engine answers."""
    if not dry_run:
        daemon.ensure()
        return daemon.client()
    return daemon.client() if daemon.answers() else None


def key_variable(file: Path | None) -> list[str]:
    """The variable that hands a public key to the container."""
    return [f"SSH_PUBLIC_KEY={public_key(file)}"] if file else []


def shm(asked: str | None, memory: int) -> str:
    """The size asked for, once it is known to be one, or the default for a host with this memory."""
    if asked is None:
        return default_shm(memory)
    size(asked)
    return asked


def shm_notice(asked: str, memory: int) -> str | None:
    """What to say of shared memory that the machine does not have."""
    if not memory or size(asked) <= memory:
        return None
    return f"--shm-size {asked} is more than the machine's {memory / GIB:.1f} GiB: what fills it runs out of memory"


def volumes(asked: list[str], folder: Path, here: bool, ca: Path | None) -> tuple[tuple[str, ...], list[str]]:
    """The mounts and the variables that they need. Refuses a second mount at /workspace."""
    if here and any(":/workspace:" in f"{mount}:" for mount in asked):
        raise UsageError("workspace-mounted-twice", "--here and a -v option both mount /workspace: give one of them")
    found = [mounts.resolved(mount, folder) for mount in asked] + ([f"{folder}:/workspace"] if here else [])
    if ca is None:
        return tuple(found), []
    mount, variable = mounts.certificates(ca)
    return (*found, mount), [variable]


def jupyter_link(bind: str, port: int) -> list[str]:
    """The variable by which the container's log names the port of this host, where it is another."""
    if port == JUPYTER and bind in ("127.0.0.1", "0.0.0.0"):
        return []
    return [f"JUPYTER_LINK=http://{f'[{bind}]' if ':' in bind else bind}:{port}"]


def ports(
    wanted: Product, command: tuple[str, ...], env: tuple[str, ...], jupyter: int, ssh: int, bind: str
) -> tuple[Port, ...]:
    """The ports of the services that will run: none beside a command, SSH's only with a key."""
    services = () if command else wanted.catalogue.image[wanted.image].services
    keyed = any(item.split("=")[0] in ("SSH_PUBLIC_KEY", "PUBLIC_KEY") for item in env)
    for number, option in ((jupyter, OPTIONS[JUPYTER]), (ssh, OPTIONS[SSH])):
        if not 1 <= number <= 65535:
            raise UsageError("port-invalid", f"{option} {number}: expected a port from 1 to 65535")
    found = [Port(JUPYTER, jupyter, bind)] if "jupyter" in services else []
    return (*found, *([Port(SSH, ssh, bind)] if "ssh" in services and keyed else []))


def remapped(folder: Path) -> tuple[str | None, list[str]]:
    """The user and variables with which the container can write to a folder of this host.

    Its owner becomes the container's user. A folder of root's stays as it is: the log says what to do.
    """
    owner = folder.stat()
    if owner.st_uid in (0, TRAINER):
        return None, []
    return "root", [f"GPUYARD_UID={owner.st_uid}", f"GPUYARD_GID={owner.st_gid}"]


def refuse(client: docker.DockerClient, wanted: Product, start: Start) -> None:
    """Raises UserError for what is known to go wrong: no image, a name or a port that is taken."""
    building.find(wanted)
    if start.name and client.containers.list(all=True, filters={"name": f"^/{start.name}$"}):
        raise UserError(
            "container-name-taken",
            f"a container named {start.name!r} exists: choose another --name, or docker rm {start.name}",
        )
    if is_local(client):
        mounts.refuse_missing(start.volumes)
        check_ports(start.ports, holders(client), OPTIONS)


def ways_in(start: Start) -> list[str]:
    """Where the services will be, by the ports of this host, which the container does not know."""
    urls = {JUPYTER: "JupyterLab: http://{}:{}/lab (the log shows the token)", SSH: "SSH: ssh -p {1} trainer@{0}"}
    return [f"gpuyard: {urls[port.container].format(port.bind, port.host)}" for port in start.ports]


def launch(start: Start, secrets: dict[str, str]) -> None:
    """Prints the line and becomes docker."""
    line = start.line()
    print(shlex.join(line), *ways_in(start), sep="\n", file=sys.stderr, flush=True)
    if shutil.which("docker") is None:
        raise UserError(
            "docker-cli-missing", "the docker command is missing: install docker-cli (the engine itself answers)"
        )
    os.execvpe("docker", line, {**os.environ, **secrets})
