"""Whether the services that this start turned on answer. Plain sockets to this machine: no proxy is asked."""

from __future__ import annotations

import json
import socket
import sys
import time
from pathlib import Path

from .errors import Refusal
from .folder import find_folder

STATE = "state.json"
TIME_LIMIT = 3.0


def read_until(connection: socket.socket, enough: bytes, limit: int = 65536) -> bytes:
    """What the other side sends, until it ends, holds ``enough`` or reaches the limit."""
    text = b""
    while part := connection.recv(4096):
        text += part
        if (enough and enough in text) or len(text) > limit:
            break
    return text


def jupyter_fault(reply: bytes) -> str | None:
    """What is wrong with an answer to ``GET /api``; None when a Jupyter server gave it."""
    head, _, body = reply.partition(b"\r\n\r\n")
    status = head.split(b"\r\n")[0].decode("latin-1")
    if " 200 " not in f"{status} ":
        return f"answered '{status}' instead of 200"
    try:
        found = json.loads(body)
    except ValueError:
        found = None
    return None if isinstance(found, dict) and "version" in found else "answered, but not as Jupyter"


def check_jupyter(port: int, timeout: float = TIME_LIMIT) -> str | None:
    """Asks Jupyter for its version, which needs no token."""
    with socket.create_connection(("127.0.0.1", port), timeout) as connection:
        connection.settimeout(timeout)
        connection.sendall(b"GET /api HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n")
        return jupyter_fault(read_until(connection, b""))


def check_ssh(port: int, timeout: float = TIME_LIMIT) -> str | None:
    """Reads sshd's greeting."""
    with socket.create_connection(("127.0.0.1", port), timeout) as connection:
        connection.settimeout(timeout)
        greeting = read_until(connection, b"\n")
        connection.sendall(b"SSH-2.0-health\r\n")
    return None if greeting.startswith(b"SSH-2.0-") else "answered, but not as an SSH server"


CHECKS = {"jupyter": check_jupyter, "ssh": check_ssh}


def fault(service: str, port: int) -> str | None:
    """Why a service is not well, or None."""
    try:
        wrong = CHECKS[service](port)
    except TimeoutError:
        wrong = f"gave no answer within {TIME_LIMIT:g} s"
    except OSError as error:
        wrong = f"can't be reached ({error.strerror or error})"
    return None if wrong is None else f"{service} on port {port} {wrong}"


def write_state(folder: Path, ports: dict[str, int]) -> None:
    """Remembers which services are on, for the health checks to come."""
    fresh = folder / f".{STATE}"
    fresh.write_text(json.dumps({"started": time.time(), "services": ports}), "utf-8")
    fresh.replace(folder / STATE)


def read_state(folder: Path | None) -> dict[str, int]:
    """The services that are on, with their ports; none where the start made no note."""
    if folder is None or not (folder / STATE).exists():
        return {}
    try:
        found = json.loads((folder / STATE).read_text("utf-8"))["services"]
    except (OSError, ValueError, KeyError) as error:
        raise Refusal(f"{folder / STATE} can't be used ({error})", 1) from None
    return {str(name): int(port) for name, port in found.items()}


def main() -> int:
    """Exit code 0 when all is well; else 1, with one line that Docker keeps."""
    try:
        services = read_state(find_folder())
    except Refusal as refusal:
        sys.stdout.write(f"{refusal}\n")
        return 1
    faults = [wrong for name, port in services.items() if (wrong := fault(name, port))]
    text = "; ".join(faults) or (f"{', '.join(services)} answer" if services else "no service was asked for")
    sys.stdout.write(text + "\n")
    return 1 if faults else 0
