"""What the tests of running containers share: a key pair, a finished run's answer, a patient look."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import pytest
from docker.models.containers import Container

T = TypeVar("T")


@dataclass(frozen=True)
class KeyPair:
    """An SSH key made for this test run."""

    private: Path
    public: str

    def ssh(self, port: int, *arguments: str, user: str = "trainer") -> list[str]:
        """An ssh command that asks nothing, remembers nothing and reads no settings of this machine."""
        options = ["-F", "none", "-i", str(self.private), "-p", str(port)]
        for option in ("BatchMode=yes", "StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null"):
            options += ["-o", option]
        return ["ssh", *options, "-o", "LogLevel=ERROR", "-o", "IdentitiesOnly=yes", f"{user}@127.0.0.1", *arguments]


def make_key(file: Path) -> KeyPair:
    """A new key pair."""
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "test", "-f", str(file)], check=True)
    return KeyPair(file, Path(f"{file}.pub").read_text().strip())


@pytest.fixture(scope="session")
def key(tmp_path_factory: pytest.TempPathFactory) -> KeyPair:
    """A fresh key pair."""
    return make_key(tmp_path_factory.mktemp("key") / "id")


def wait_for(look: Callable[[], T], seconds: float = 30.0) -> T:
    """The first answer of ``look`` that is not empty; fails when there was none in time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if found := look():
                return found
        except OSError:
            pass
        time.sleep(0.05)
    raise AssertionError(f"nothing within {seconds:g} s")


def host_port(container: Container, inside: int) -> int:
    """The port of this machine that leads to a port of the container."""

    def look() -> int | None:
        container.reload()
        bound = (container.ports or {}).get(f"{inside}/tcp")
        return int(bound[0]["HostPort"]) if bound else None

    found = wait_for(look, 10)
    assert found is not None
    return found


def greeting(port: int) -> bytes:
    """The first bytes that a server on this machine sends."""
    with socket.create_connection(("127.0.0.1", port), 2) as connection:
        connection.settimeout(2)
        return connection.recv(64)


def log_of(container: Container) -> str:
    """Everything the container wrote to standard error so far."""
    text: bytes = container.logs(stdout=False, stderr=True)
    return text.decode()
