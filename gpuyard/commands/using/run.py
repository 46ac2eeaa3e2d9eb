"""`gpuyard run`."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import docker
import typer
from typer.core import TyperCommand

from gpuyard.catalogue import table
from gpuyard.catalogue.product import Product, find_product
from gpuyard.commands.options import given, refuse_without_effect
from gpuyard.engine import daemon, mounts, notices, ready
from gpuyard.engine.ports import check_number, check_ports, holders
from gpuyard.engine.preflight import choose_gpus, is_local, probe_gpus, public_key
from gpuyard.engine.session import RUN
from gpuyard.engine.start import Port, Start, default_shm, parse_gpus, size, split_secrets
from gpuyard.errors import UsageError, UserError, warn
from gpuyard.image import build as building

JUPYTER, SSH, TRAINER = 8888, 2222, 1000
OPTIONS = {JUPYTER: "--jupyter-port", SSH: "--ssh-port"}


class Command(TyperCommand):
    """Takes words after the options that cannot be a line as the container's command, as docker run does."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Hands the command to the context; what is left is parsed as usual."""
        if command := self._command(ctx, args):
            behind = list(ctx.obj or ())
            ctx.obj = [*command, *(["--", *behind] if behind else [])]
        return super().parse_args(ctx, args[: len(args) - len(command)])

    def _command(self, ctx: Any, args: list[str]) -> list[str]:
        """The end of the words from the first one that is neither an option nor the line."""
        parser = self.make_parser(ctx)
        parser.allow_interspersed_args = False
        rest, line_seen = args, False
        while True:
            values, after, _ = parser.parse_args(list(rest))
            first = values.get("line")
            if not isinstance(first, str):
                return []
            if line_seen or not _may_be_line(first):
                return [first, *after]
            rest, line_seen = after, True


def _may_be_line(word: str) -> bool:
    """Whether a word is a line, or a wrong one: a number, or the name of an image."""
    known = table.load()
    return bool(re.match(r"v?\d", word)) or word in known.line or word in known.image


def run(
    context: typer.Context,
    line: Annotated[
        str | None, typer.Argument(help="A line of the catalogue (gpuyard list); the default one if left out.")
    ] = None,
    image: Annotated[str, typer.Option(help="workbench, runtime or devel.")] = "workbench",
    gpus: Annotated[str, typer.Option(help="all, none, auto, or devices such as 0,1.")] = "auto",
    shm_size: Annotated[str | None, typer.Option(help="Shared memory; 8g, less on a small host.")] = None,
    memory: Annotated[str | None, typer.Option("-m", "--memory", help="Memory limit, as in docker run.")] = None,
    user: Annotated[str | None, typer.Option(help="As in docker run.")] = None,
    name: Annotated[str | None, typer.Option(help="The container's name.")] = None,
    detach: Annotated[
        bool, typer.Option("--detach", "-d", help="Leave it running in the background, once its services answer.")
    ] = False,
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
    """Start a container with the right flags, and print the docker line. A command for it comes last.

    Without a command it starts JupyterLab, and SSH if a key is given. A secret given with -e reaches
    the container by docker's environment, not by its command line. -- ends the options.
    """
    command = tuple(context.obj or ())
    wanted = find_product(table.load(), line, image)
    parse_gpus(gpus)
    user, remap = remapped(Path.cwd()) if here and user is None else (user, [])
    mounted, trust = volumes(volume or [], Path.cwd(), here, ca)
    link = jupyter_link(bind, jupyter_port)
    words, secrets = split_secrets([*link, *(env or ()), *key_variable(ssh_key), *trust, *remap])
    opened = ports(wanted, command, words, jupyter_port, ssh_port, bind)
    refuse_without_effect(idle(context, opened), "here: " + why_idle(wanted, command))
    client = connect(dry_run)
    info: dict[str, Any] = client.info() if client else {}
    local = client is None or is_local(client)
    chosen, note = choose_gpus(gpus, probe_gpus(info, local=local))
    start = Start(
        image=wanted.tag,
        gpus=chosen,
        shm=shm(shm_size, int(info.get("MemTotal") or 0)),
        memory=memory,
        name=name,
        detach=detach,
        keep=detach,
        terminal=not detach and sys.stdin.isatty() and sys.stdout.isatty(),
        ports=opened,
        publish=tuple(publish or ()),
        volumes=mounted,
        env=words,
        labels={RUN: wanted.line},
        command=command,
        user=user,
    )
    if local:
        mounts.refuse_missing(start.volumes)
    if client and not dry_run:
        refuse(client, wanted, start, str(Path.cwd()) if here else "")
    tell(start, info, local, note, volume or [])
    if dry_run:
        print(shlex.join(start.line()))
    else:
        assert client is not None
        launch(client, start, secrets)


def tell(start: Start, info: dict[str, Any], local: bool, note: str, asked: list[str]) -> None:
    """Warns of everything that the start will meet and that can be seen from here."""
    if note:
        warn("gpu-absent", note)
    for mount in asked:
        if said := mounts.notice(mount, Path.cwd()):
            warn("volume-not-folder", said)
    notices.say(start, info, local)


def idle(context: typer.Context, opened: tuple[Port, ...]) -> Iterator[str]:
    """The options about services that were given although no such service will run."""
    there = {port.container for port in opened}
    if given(context, "jupyter_port") and JUPYTER not in there:
        yield "--jupyter-port"
    if given(context, "ssh_port") and SSH not in there:
        yield "--ssh-port"
    if given(context, "ssh_key") and SSH not in there:
        yield "--ssh-key"
    if given(context, "bind") and not there:
        yield "--bind"


def why_idle(wanted: Product, command: tuple[str, ...]) -> str:
    """Why a service does not run, and what to do instead."""
    if command:
        return "a container with a command runs no services. Publish its own ports with -p"
    if not wanted.catalogue.image[wanted.image].services:
        return f"the {wanted.image} image has no services. Take --image workbench"
    return "SSH runs only with a key. Add --ssh-key ~/.ssh/id_ed25519.pub"


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
        check_number(number, option)
    found = [Port(JUPYTER, jupyter, bind)] if "jupyter" in services else []
    return (*found, *([Port(SSH, ssh, bind)] if "ssh" in services and keyed else []))


def remapped(folder: Path) -> tuple[str | None, list[str]]:
    """The user and variables with which the container can write to a folder of this host.

    The folder's owner becomes the container's user; root does not, so a folder of root's changes nothing.
    """
    owner = folder.stat()
    if owner.st_uid in (0, TRAINER):
        return None, []
    return "root", [f"GPUYARD_UID={owner.st_uid}", f"GPUYARD_GID={owner.st_gid}"]


def refuse(client: docker.DockerClient, wanted: Product, start: Start, here: str) -> None:
    """Raises UserError for what is known to go wrong: no image, a name or port that is taken, an unwritable folder."""
    building.find(wanted)
    if start.name and client.containers.list(all=True, filters={"name": f"^/{start.name}$"}):
        raise UserError(
            "container-name-taken",
            f"a container named {start.name!r} exists: choose another --name, or docker rm -f {start.name}",
        )
    if is_local(client):
        check_ports(start.ports, holders(client), OPTIONS)
        if here and here in notices.unwritable(start, client.info()):
            raise UserError(
                "here-not-writable",
                f"--here: the container's user cannot write to {here}, so notebooks and checkpoints could not be "
                f"saved. Run: {notices.remedy(here)}",
            )


def ways_in(start: Start) -> list[str]:
    """Where the services will be, by the ports of this host, which the container does not know."""
    urls = {JUPYTER: "JupyterLab: http://{}:{}/lab (the log below shows the link with its token)"}
    urls[SSH] = "SSH: ssh -p {1} trainer@{0}"
    shown = [port for port in start.ports if not (start.detach and port.container == JUPYTER)]
    return [f"gpuyard: {urls[port.container].format(port.bind, port.host)}" for port in shown]


def launch(client: docker.DockerClient, start: Start, secrets: dict[str, str]) -> None:
    """Prints the line and becomes docker; in the background, waits until the services answer."""
    line, env = start.line(), {**os.environ, **secrets}
    if shutil.which("docker") is None:
        raise UserError("docker-cli-missing", "the docker command is missing: install docker-cli")
    print(shlex.join(line), *ways_in(start), sep="\n", file=sys.stderr, flush=True)
    if not start.detach:
        os.execvpe("docker", line, env)
    done = subprocess.run(line, check=False, env=env, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise typer.Exit(done.returncode)
    container = client.containers.get(done.stdout.strip())
    print(container.id, flush=True)
    if start.ports:
        ready.wait_services(container)
        ready.show(container)
    print(f"gpuyard: its log: docker logs -f {container.name}", file=sys.stderr)
    print(f"gpuyard: end it: docker rm -f {container.name}", file=sys.stderr)
