"""Containers that gpuyard starts for itself: labelled, owned by a session, gone when it ends."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import docker
from docker.errors import APIError, DockerException, NotFound
from docker.models.containers import Container
from docker.models.volumes import Volume

from gpuyard.engine.start import Start
from gpuyard.errors import UserError

SESSION = "io.gpuyard.session"
"""Label on everything a session makes. Its value names the process that owns it."""
RUN = "io.gpuyard.run"
"""Label on containers that ``gpuyard run`` started; they belong to the user."""
SIGNALS = (signal.SIGTERM, signal.SIGHUP)
STOP_SECONDS = 10


@dataclass(frozen=True)
class Owner:
    """The process that owns a session. It shows whether a container was left behind by a dead process."""

    host: str
    pid: int
    born: str
    token: str

    def __str__(self) -> str:
        return f"{self.host}/{self.pid}/{self.born}/{self.token}"

    @classmethod
    def me(cls) -> Owner:
        """This process, with a new token."""
        return cls(socket.gethostname(), os.getpid(), born(os.getpid()), secrets.token_hex(4))

    @classmethod
    def parse(cls, text: str) -> Owner | None:
        """The owner in a label's value; None for what gpuyard did not write."""
        parts = text.split("/")
        if len(parts) != 4 or not parts[1].isdigit():
            return None
        return cls(parts[0], int(parts[1]), parts[2], parts[3])

    def dead(self) -> bool:
        """Whether the process has certainly ended; for another host's process this is unknown."""
        return self.host == socket.gethostname() and born(self.pid) != self.born


def born(pid: int) -> str:
    """When a process started, in the kernel's ticks; empty when there is none."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    return stat.rpartition(")")[2].split()[19]


class Session:
    """Makes containers and volumes that are removed on the way out, however that happens."""

    def __init__(self, client: docker.DockerClient) -> None:
        self.client = client
        self.owner = Owner.me()

    @property
    def labels(self) -> dict[str, str]:
        """The labels of everything this session makes."""
        return {SESSION: str(self.owner)}

    def start(self, start: Start) -> Container:
        """A running container. Raises UserError with the engine's reason if it can't start."""
        options = start.options()
        options["labels"] = {**options["labels"], **self.labels}
        try:
            container = self.client.containers.create(**options)
            container.start()
        except APIError as error:
            reason = str(error.explanation or error).strip()
            raise UserError("container-start-failed", f"the engine could not start {start.image}: {reason}") from error
        container.reload()
        return container

    def volume(self, purpose: str) -> Volume:
        """A new, empty named volume."""
        return self.client.volumes.create(f"gpuyard-{purpose}-{self.owner.token}", labels=self.labels)

    def close(self) -> None:
        """Removes everything the session made."""
        remove(self.client, {"label": f"{SESSION}={self.owner}"})


@contextlib.contextmanager
def session(client: docker.DockerClient) -> Iterator[Session]:
    """A session that is cleaned up on success, on errors and on SIGINT, SIGTERM and SIGHUP alike.

    Leftovers of sessions whose process is gone are removed first.
    """
    sweep(client)
    opened = Session(client)
    with ending_signals():
        try:
            yield opened
        finally:
            with deaf():
                opened.close()


def sweep(client: docker.DockerClient) -> None:
    """Removes what dead sessions of this host left behind."""
    for thing in [*containers(client, SESSION), *client.volumes.list(filters={"label": SESSION})]:
        owner = Owner.parse(label_of(thing, SESSION))
        if owner and owner.dead():
            remove_one(thing)


def containers(client: docker.DockerClient, label: str) -> list[Container]:
    """All containers with the label, running or not; one that vanishes meanwhile is left out."""
    found: list[Container] = client.containers.list(all=True, filters={"label": label}, ignore_removed=True)
    return found


def label_of(thing: Container | Volume, name: str) -> str:
    """The value of a label, empty where it has none."""
    labels = thing.labels if isinstance(thing, Container) else thing.attrs.get("Labels")
    return str((labels or {}).get(name, ""))


def remove(client: docker.DockerClient, filters: dict[str, str]) -> None:
    """Removes the containers and then the volumes that match."""
    for container in client.containers.list(all=True, filters=filters, ignore_removed=True):
        remove_one(container)
    for volume in client.volumes.list(filters=filters):
        remove_one(volume)


def remove_one(thing: Container | Volume) -> None:
    """Removes a container with its anonymous volumes, or a volume; it may be gone already."""
    with contextlib.suppress(NotFound, APIError):
        if isinstance(thing, Container):
            thing.remove(force=True, v=True)
        else:
            thing.remove(force=True)


@contextlib.contextmanager
def ending_signals() -> Iterator[None]:
    """Within, a signal to end raises SystemExit in the main thread, so that ``finally`` runs."""
    with _handling(SIGNALS, _end):
        yield


@contextlib.contextmanager
def deaf() -> Iterator[None]:
    """Within, signals to end are ignored: for a clean-up that must not be cut short."""
    with _handling((*SIGNALS, signal.SIGINT), signal.SIG_IGN):
        yield


@contextlib.contextmanager
def _handling(signals: tuple[signal.Signals, ...], handler: Callable[..., Any] | signal.Handlers) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, handler) for number in signals}
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)


def _end(number: int, _frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


def log_tail(container: Container, lines: int = 20, hide: tuple[str, ...] = ()) -> str:
    """The end of a container's log, indented, with the strings of ``hide`` replaced."""
    try:
        text = container.logs(tail=lines).decode(errors="replace").rstrip()
    except DockerException:
        return "  (its log cannot be read)"
    for secret in hide:
        text = text.replace(secret, "***")
    return "\n".join(f"  {line}" for line in text.splitlines()) or "  (its log is empty)"


def address(container: Container, port: int) -> tuple[str, int] | None:
    """Where a port of the container is reached on the host; None while it is not published."""
    bindings = (container.attrs["NetworkSettings"].get("Ports") or {}).get(f"{port}/tcp")
    if not bindings:
        return None
    return str(bindings[0]["HostIp"]), int(bindings[0]["HostPort"])


@dataclass(frozen=True)
class Executed:
    """What a command in a container gave."""

    code: int
    out: str
    err: str


def execute(container: Container, command: list[str], **options: Any) -> Executed:
    """Runs a command in the container as its default user, and waits for it."""
    result = container.exec_run(command, demux=True, **options)
    out, err = (part.decode(errors="replace") if part else "" for part in result.output)
    return Executed(int(result.exit_code), out, err)
