"""Proving an image: start it as a user would, check it from outside, run the suite inside, merge the results."""

from __future__ import annotations

import json
import re
import secrets
import shutil
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

import docker
import requests
from docker.models.containers import Container
from docker.models.images import Image

from gpuyard.acceptance import jupyter, ssh, suite
from gpuyard.acceptance.local import HTTP
from gpuyard.acceptance.merge import merge
from gpuyard.acceptance.suite import Selection
from gpuyard.acceptance.world import World, authorized_line, expectations, new_key
from gpuyard.catalogue.claims import image_json
from gpuyard.catalogue.product import Product
from gpuyard.engine.session import Session, address, execute, log_tail, session
from gpuyard.engine.start import Gpus, Port, Start
from gpuyard.errors import UserError
from gpuyard.image.build import find
from gpuyard.waiting import until
from verify.engine.verdict import FAILED, NOT_RUN
from verify.model import Claims, Level
from verify.report.report import Report
from verify.report.results import build

READY_SECONDS = 120.0
MOUNTS = ("/workspace", "/mnt/data", "/mnt/models")
OURS = ("shm",)
"""Groups that are advisory where the user starts the container, and required here, where gpuyard starts it."""
REPORT = "/tmp/gpuyard-verify.json"
PROGRESS = re.compile(r"\r(\[\d+/\d+\][^\r\n]*)")
"""The line in which the suite says which check runs now."""
Tell = Callable[[str], None]


@dataclass(frozen=True)
class ProofRequest:
    """What is to be proven and how the container is started for it."""

    product: Product
    choice: Selection
    gpus: Gpus
    shm: str

    @property
    def services(self) -> tuple[str, ...]:
        """The services that the image has."""
        return self.product.catalogue.image[self.product.image].services


def prove(client: docker.DockerClient, request: ProofRequest, tell: Tell) -> Report:
    """The merged report about the image under the product's tag. Leaves nothing behind.

    Raises UserError if there is no image, the container does not come up, or the suite inside ends
    without a report.
    """
    started = time.monotonic()
    image, claims = find(request.product), expectations(request.product)
    with session(client) as opened:
        world = bring_up(opened, image, request, tell)
        before = suite.run(request.choice.outside, Level.IMAGE, world, claims, tell)
        report = run_inside(world, request, tell)
        after = suite.run(request.choice.outside, Level.CONTAINER, world, claims, tell)
    return merge(report, before, after, str(image.id), time.monotonic() - started)


def bring_up(opened: Session, image: Image, request: ProofRequest, tell: Tell) -> World:
    """A running container whose services answer, with a key and a token made for this run."""
    key, token = new_key(), secrets.token_hex(24)
    ports = (jupyter.PORT, ssh.PORT, ssh.ALSO) if request.services else ()
    start = Start(
        image=request.product.tag,
        gpus=request.gpus,
        shm=request.shm,
        ports=tuple(Port(port, None) for port in ports),
        volumes=tuple(f"{opened.volume(place.rpartition('/')[2]).name}:{place}" for place in MOUNTS),
        env=(f"JUPYTER_TOKEN={token}", f"SSH_PUBLIC_KEY={authorized_line(key)}") if request.services else (),
        command=() if request.services else ("sleep", "infinity"),
    )
    tell(f"starting {start.image}")
    began = time.monotonic()
    container = opened.start(start)
    world = World(
        client=opened.client,
        image=start.image,
        config=image.attrs["Config"],
        session=opened,
        container=container,
        start=start,
        token=token,
        key=key,
        services=request.services,
        tell=tell,
    )
    wait_ready(world)
    world.waited = time.monotonic() - began
    return world


def wait_ready(world: World, seconds: float = READY_SECONDS) -> None:
    """Returns when the container runs and every service answers. Raises UserError with its log's end."""
    silent: list[str] = list(world.services)

    def done() -> bool:
        world.container.reload()
        silent[:] = [name for name in world.services if not ANSWERS[name](world.container)]
        return world.container.status != "running" or not silent

    until(done, seconds)
    if world.container.status == "running" and not silent:
        return
    state = world.container.attrs["State"]
    ended = f"ended with exit code {state['ExitCode']}"
    late = f"gave no {' and no '.join(silent)} within {seconds:g} s"
    why = late if world.container.status == "running" else ended
    tail = log_tail(world.container, hide=(world.token,))
    raise UserError(
        "container-not-ready", f"the container of {world.image} {why}; the end of its log:\n{tail}", exit_code=FAILED
    )


def jupyter_answers(container: Container) -> bool:
    """Whether anything speaks HTTP on Jupyter's port."""
    where = address(container, jupyter.PORT)
    try:
        return bool(where and HTTP.get(f"http://{where[0]}:{where[1]}/api", timeout=2).ok)
    except requests.RequestException:
        return False


def ssh_answers(container: Container) -> bool:
    """Whether an SSH server greets on its port."""
    where = address(container, ssh.PORT)
    try:
        with socket.create_connection(where, timeout=2) as line:  # type: ignore[arg-type]
            return line.recv(8).startswith(b"SSH-")
    except (OSError, TypeError):
        return False


ANSWERS: dict[str, Callable[[Container], bool]] = {"jupyter": jupyter_answers, "ssh": ssh_answers}


def run_inside(world: World, request: ProofRequest, tell: Tell) -> Report:
    """The report of the suite inside the container; an empty one if nothing inside was asked for."""
    choice = request.choice
    if choice.inside == ():
        return empty_report(request.product)
    require = choice.require if choice.inside else (*choice.require, *OURS)
    words = ["verify", "--json", "-"]
    words += ["--only", ",".join(choice.inside)] if choice.inside else []
    words += ["--require", ",".join(require)] if require else []
    tell("inside the container: " + " ".join(words))
    code, said = stream(world, words)
    try:
        return Report.from_dict(json.loads(execute(world.container, ["cat", REPORT]).out))
    except ValueError:
        tail = "\n".join(f"  {line}" for line in said.strip().splitlines()[-15:])
        raise UserError(
            "suite-without-report",
            f"the suite inside ended without a report (exit code {code}):\n{tail}",
            exit_code=NOT_RUN,
        ) from None


def stream(world: World, words: list[str]) -> tuple[int, str]:
    """Runs the suite as the image's user, its progress shown as it comes on a terminal.

    The report goes to a file in the container, so that the terminal is stderr's alone.
    """
    api, terminal = world.client.api, sys.stderr.isatty()
    command = ["/bin/sh", "-c", f'exec "$@" >{REPORT}', "sh", *words]
    columns = str(shutil.get_terminal_size().columns)
    made = api.exec_create(world.container.id, command, tty=terminal, environment={"COLUMNS": columns})
    said, shown = "", ""
    for chunk in api.exec_start(made["Id"], tty=terminal, stream=True):
        said += chunk.decode(errors="replace")
        # The verdict inside is about a part of the checks, so only the progress is shown.
        now = (PROGRESS.findall(said) or [""])[-1].rstrip()
        if terminal and now != shown:
            print(f"\r\033[K{now}", end="", file=sys.stderr, flush=True)
            shown = now
    if shown:
        print("\r\033[K", end="", file=sys.stderr, flush=True)
    return int(api.exec_inspect(made["Id"])["ExitCode"]), said


def empty_report(product: Product) -> Report:
    """A report without findings, for a run that looks from outside only."""
    now = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    return build([], now, 0.0, ["gpuyard", "verify"], Claims(image_json(product), {}), "only", (), 0, "")
