"""The health check against real sockets on this machine."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from entrypoints.gpuyard_start.errors import Refusal
from entrypoints.gpuyard_start.services import health
from entrypoints.gpuyard_start.services.health import Service, State

JUPYTER = b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{"version": "9.9.9"}'


@contextmanager
def server(reply: bytes) -> Iterator[int]:
    """A server on a free port that sends one reply to each connection."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                connection.sendall(reply)
                connection.shutdown(socket.SHUT_WR)
                connection.recv(1024)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(5)


@pytest.mark.parametrize(("service", "reply"), [("jupyter", JUPYTER), ("ssh", b"SSH-2.0-OpenSSH_9.9\r\n")])
def test_a_service_that_answers_is_well(service: str, reply: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even where a proxy is set that leads nowhere."""
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    with server(reply) as port:
        assert health.fault(service, Service(port)) is None


@pytest.mark.parametrize(
    ("service", "reply", "said"),
    [
        ("jupyter", JUPYTER.replace(b"200 OK", b"503 No"), "answered 'HTTP/1.1 503 No' instead of 200"),
        ("jupyter", b"HTTP/1.1 200 OK\r\n\r\n<html>", "but not as Jupyter"),
        ("jupyter", b"HTTP/1.1 200 OK\r\n\r\n[]", "but not as Jupyter"),
        ("jupyter", b"", "instead of 200"),
        ("ssh", b"220 mail\r\n", "but not as an SSH server"),
        ("ssh", b"", "but not as an SSH server"),
    ],
)
def test_another_answer_is_a_fault(service: str, reply: bytes, said: str) -> None:
    """A port that something else holds is not a healthy service."""
    with server(reply) as port:
        fault = health.fault(service, Service(port))
        assert fault is not None
        assert fault.startswith(f"{service} on port {port} ")
        assert said in fault


def test_a_closed_port_is_a_fault() -> None:
    """Nobody listens there."""
    with server(b"") as port:
        pass
    assert health.fault("ssh", Service(port)) == f"ssh on port {port} can't be reached (Connection refused)"


def test_silence_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    """A service that accepts and says nothing is given up in time."""
    monkeypatch.setattr(health, "CHECKS", {"ssh": lambda service: health.check_ssh(service, 0.1)})
    with socket.create_server(("127.0.0.1", 0)) as listener:
        assert "gave no answer" in str(health.fault("ssh", Service(listener.getsockname()[1])))


def test_the_state_is_read_as_it_was_written(tmp_path: Path) -> None:
    """No folder and no note mean that no service was asked for."""
    assert health.read_state(None) == State({})
    assert health.read_state(tmp_path) == State({})
    state = State({"jupyter": Service(8888, "/a/", True)}, gpu=True)
    health.write_state(tmp_path, state)
    assert health.read_state(tmp_path) == state


def test_a_damaged_note_is_unhealthy_in_one_line(tmp_path: Path) -> None:
    """It is never taken for 'no service'."""
    (tmp_path / health.STATE).write_text("{}")
    with pytest.raises(Refusal) as refusal:
        health.read_state(tmp_path)
    assert refusal.value.id == "state-damaged"
