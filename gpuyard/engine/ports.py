"""Host ports: whether they are free, and what holds those that are not."""

from __future__ import annotations

import contextlib
import errno
import re
import socket
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import docker

from gpuyard.engine.start import Port
from gpuyard.errors import UsageError, UserError

Holder = Callable[[int], str]


def check_ports(ports: Iterable[Port], holder: Holder, options: Mapping[int, str]) -> None:
    """Raises UserError for the first port that is not free, naming its number, its holder and the option.

    ``holder`` returns who holds a host port, if known; ``options`` maps a container port to its option.
    """
    for port in ports:
        if port.host is not None:
            _check(port.bind, port.host, holder, options[port.container])


def check_number(number: int, option: str) -> None:
    """Refuses a number that is not a port's."""
    if not 1 <= number <= 65535:
        raise UsageError("port-invalid", f"{option} {number}: expected a port from 1 to 65535")


def _check(bind: str, number: int, holder: Holder, option: str) -> None:
    check_number(number, option)
    trouble = cannot_bind(bind, number)
    if trouble == errno.EADDRNOTAVAIL:
        raise UserError(
            "bind-address-unknown", f"--bind {bind}: not an address of this host. Expected one such as 127.0.0.1"
        )
    if trouble == errno.EADDRINUSE:
        held = holder(number)
        raise UserError(
            "port-taken", f"port {number} is taken{f' by {held}' if held else ''}: choose another with {option} PORT"
        )


def cannot_bind(address: str, port: int) -> int | None:
    """The error number of an attempt to listen there, or None."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
            probe.listen(1)
        except socket.gaierror:
            return errno.EADDRNOTAVAIL
        except OSError as error:
            # Below 1024 only root may listen, but it is the engine that will, and it is root.
            return None if error.errno == errno.EACCES else error.errno
    return None


def holders(client: docker.DockerClient) -> Holder:
    """Who holds a port: a container of this engine, else a process of this host if it can be seen."""

    def holder(port: int) -> str:
        for container in client.containers.list(filters={"publish": str(port)}):
            return f"container {container.name}"
        return process_on(port)

    return holder


def process_on(port: int, proc: Path = Path("/proc")) -> str:
    """The process that listens on a port, as ``name (pid N)``; empty where it can't be seen."""
    sockets = {f"socket:[{inode}]" for inode in _listening(port, proc)}
    for folder in proc.glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if sockets and any(str(link.readlink()) in sockets for link in (folder / "fd").iterdir()):
                return f"{(folder / 'comm').read_text().strip()} (pid {folder.name})"
    return ""


def _listening(port: int, proc: Path) -> list[str]:
    """Inodes of the sockets that listen on a port; 0A is the kernel's word for listening."""
    wanted = re.compile(rf"^\s*\d+: [0-9A-F]+:{port:04X} \S+ 0A ")
    lines: list[str] = []
    for table in ("tcp", "tcp6"):
        with contextlib.suppress(OSError):
            lines += (proc / "net" / table).read_text().splitlines()[1:]
    return [line.split()[9] for line in lines if wanted.match(line)]
