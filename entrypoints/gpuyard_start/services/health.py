"""The health check: asks each running service over a plain local socket, without a proxy, and the GPUs."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
import time
from pathlib import Path
from typing import NamedTuple

from ..errors import Refusal
from ..folder import drop_to_owner, find_folder, make_folder

STATE = "state.json"
TIME_LIMIT = 3.0


class Service(NamedTuple):
    """Where a service answers. ``path`` is Jupyter's base URL."""

    port: int
    path: str = "/"
    tls: bool = False


class State(NamedTuple):
    """The services that run, and whether there is a GPU to ask."""

    services: dict[str, Service]
    gpu: bool = False


def read_until(connection: socket.socket, enough: bytes, limit: int = 65536) -> bytes:
    """Reads until the other side ends, ``enough`` was received, or the limit is reached."""
    text = b""
    while part := connection.recv(4096):
        text += part
        if (enough and enough in text) or len(text) > limit:
            break
    return text


def jupyter_fault(reply: bytes) -> str | None:
    """What is wrong with an answer to ``GET /api``; None if a Jupyter server gave it."""
    head, _, body = reply.partition(b"\r\n\r\n")
    status = head.split(b"\r\n")[0].decode("latin-1")
    if " 200 " not in f"{status} ":
        return f"answered '{status}' instead of 200"
    try:
        found = json.loads(body)
    except ValueError:
        found = None
    return None if isinstance(found, dict) and "version" in found else "answered, but not as Jupyter"


def _wrapped(connection: socket.socket) -> socket.socket:
    """The connection with TLS. The certificate is not checked: its name is not 127.0.0.1."""
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context.wrap_socket(connection)


def check_jupyter(service: Service, timeout: float = TIME_LIMIT) -> str | None:
    """Asks Jupyter for its version, which needs no login."""
    with socket.create_connection(("127.0.0.1", service.port), timeout) as plain:
        plain.settimeout(timeout)
        with _wrapped(plain) if service.tls else plain as connection:
            connection.sendall(f"GET {service.path}api HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n".encode())
            return jupyter_fault(read_until(connection, b""))


def check_ssh(service: Service, timeout: float = TIME_LIMIT) -> str | None:
    """Reads sshd's greeting."""
    with socket.create_connection(("127.0.0.1", service.port), timeout) as connection:
        connection.settimeout(timeout)
        greeting = read_until(connection, b"\n")
        connection.sendall(b"SSH-2.0-health\r\n")
    return None if greeting.startswith(b"SSH-2.0-") else "answered, but not as an SSH server"


CHECKS = {"jupyter": check_jupyter, "ssh": check_ssh}


def fault(name: str, service: Service) -> str | None:
    """Why a service is not well, or None."""
    try:
        wrong = CHECKS[name](service)
    except TimeoutError:
        wrong = f"gave no answer within {TIME_LIMIT:g} s"
    except OSError as error:
        wrong = f"can't be reached ({error.strerror or error})"
    return None if wrong is None else f"{name} on port {service.port} {wrong}"


def write_state(folder: Path, state: State) -> None:
    """Writes what runs, for later health checks."""
    fresh = folder / f".{STATE}"
    services = {name: service._asdict() for name, service in state.services.items()}
    fresh.write_text(json.dumps({"started": time.time(), "services": services, "gpu": state.gpu}), "utf-8")
    fresh.replace(folder / STATE)


def keep_gpu() -> None:
    """Writes that there is a GPU in a container that only runs a command, so that its health check asks it."""
    from ..gpu import line, nvml

    if line.device_nodes() and nvml.available():
        with contextlib.suppress(OSError, Refusal):
            write_state(make_folder(), State({}, gpu=True))


def read_state(folder: Path | None) -> State:
    """What runs; nothing if the start wrote nothing. Raises Refusal for a damaged file."""
    if folder is None or not (folder / STATE).exists():
        return State({})
    try:
        found = json.loads((folder / STATE).read_text("utf-8"))
        return State({name: Service(**facts) for name, facts in found["services"].items()}, bool(found["gpu"]))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise Refusal("state-damaged", f"{folder / STATE} can't be used ({error})", code=1) from None


def faults(state: State) -> list[str]:
    """Every fault, services first."""
    found = [wrong for name, service in state.services.items() if (wrong := fault(name, service))]
    if state.gpu:
        from ..gpu import nvml

        found += [wrong] if (wrong := nvml.fault()) else []
    return found


def main() -> int:
    """Prints one line, which Docker keeps. Exit code 0 if all is well, else 1."""
    if os.getuid() == 0:
        drop_to_owner()
    try:
        state = read_state(find_folder())
    except Refusal as refusal:
        sys.stdout.write(f"{refusal}\n")
        return 1
    wrong = faults(state)
    on = ", ".join([*state.services, *(["GPU"] if state.gpu else [])])
    sys.stdout.write(("; ".join(wrong) or (f"{on} answer" if on else "no service was asked for")) + "\n")
    return 1 if wrong else 0
