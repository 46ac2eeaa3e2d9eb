"""What people do over SSH besides logging in, with the programs they use; and what an auditor says."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from docker.models.containers import Container

from ..conftest import KeyPair, greeting, host_port, wait_for

pytestmark = pytest.mark.image
PORTS = {"2222/tcp": ("127.0.0.1", None)}


@pytest.fixture(scope="module")
def server(run_container: Any, key: KeyPair) -> Iterator[Container]:
    """A container that serves SSH only."""
    environment = {"SSH_PUBLIC_KEY": key.public, "GPUYARD_SERVICES": "ssh", "MARK": "two\nlines"}
    with run_container(None, environment=environment, ports=PORTS) as container:
        wait_for(lambda: greeting(host_port(container, 2222)))
        yield container


def options(server: Container, key: KeyPair) -> list[str]:
    """What ssh's relatives take as options of ssh, without program, port and address."""
    return [word for word in key.ssh(0)[1:-1] if word not in ("-p", "0")] + ["-o", f"Port={host_port(server, 2222)}"]


def test_sftp_puts_and_gets(server: Container, key: KeyPair, tmp_path: Path) -> None:
    """A file comes back as it went."""
    source = tmp_path / "a"
    source.write_bytes(os.urandom(50_000))
    orders = f"put {source} /tmp/sftp\nget /tmp/sftp {tmp_path}/b\n"
    command = ["sftp", "-b", "-", *options(server, key), "trainer@127.0.0.1"]
    subprocess.run(command, input=orders.encode(), check=True, capture_output=True, timeout=60)
    assert (tmp_path / "b").read_bytes() == source.read_bytes()


@pytest.mark.skipif(shutil.which("rsync") is None, reason="rsync is not installed on this machine")
def test_rsync_sends_a_tree(server: Container, key: KeyPair, tmp_path: Path) -> None:
    """And sends nothing the second time."""
    (tmp_path / "tree" / "deep").mkdir(parents=True)
    (tmp_path / "tree" / "deep" / "é").write_text("x")
    shell = " ".join(["ssh", *options(server, key)])
    command = ["rsync", "-a", "--itemize-changes", "-e", shell, f"{tmp_path}/tree", "trainer@127.0.0.1:/tmp/"]
    first, second = (subprocess.run(command, check=True, capture_output=True, timeout=60).stdout for _ in range(2))
    assert b"deep/" in first
    assert second == b""


def test_a_port_of_the_container_is_forwarded(server: Container, key: KeyPair) -> None:
    """TensorBoard and the like are reached so."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        local = free.getsockname()[1]
    forward = [*key.ssh(host_port(server, 2222)), "-N", "-L", f"{local}:127.0.0.1:2222"]
    with subprocess.Popen(forward) as client:
        try:
            assert wait_for(lambda: greeting(local)).startswith(b"SSH-2.0-")
        finally:
            client.terminate()


def test_tmux_outlives_the_connection_and_has_the_environment(server: Container, key: KeyPair) -> None:
    """A training started so goes on when the laptop is closed."""
    login = key.ssh(host_port(server, 2222))
    begin = "tmux new-session -d -s work 'env -0 > /tmp/tmux-env; sleep 60'"
    subprocess.run([*login[:1], "-tt", *login[1:], begin], check=True, timeout=30, stdin=subprocess.DEVNULL)
    listed = subprocess.run([*login, "tmux", "ls"], check=True, timeout=30, capture_output=True).stdout
    assert listed.startswith(b"work: 1 windows")
    wait_for(lambda: b"MARK=two\nlines\0" in server.exec_run("cat /tmp/tmux-env").output)


def socks_get(proxy: int, port: int) -> bytes:
    """A page of the container's own loopback, through a dynamic forwarding."""
    with socket.create_connection(("127.0.0.1", proxy), 10) as connection:
        connection.sendall(b"\x05\x01\x00")
        assert connection.recv(2) == b"\x05\x00"
        connection.sendall(b"\x05\x01\x00\x01\x7f\x00\x00\x01" + port.to_bytes(2, "big"))
        if connection.recv(10)[1:2] != b"\x00":
            raise ConnectionError("nothing listens there yet")
        connection.sendall(b"GET / HTTP/1.0\r\n\r\n")
        return connection.recv(100)


def test_an_editors_server_starts_and_is_reached(server: Container, key: KeyPair) -> None:
    """As VS Code does it: a script on the standard input of bash, a server left behind, a dynamic forwarding."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        local = free.getsockname()[1]
    script = (
        "uname -sm; echo HOME=$HOME; mkdir -p ~/.vscode-server\n"
        "nohup python -m http.server --bind 127.0.0.1 39123 >~/.vscode-server/log 2>&1 &\n"
        "echo listeningOn==39123==\nsleep 30\n"
    )
    login = key.ssh(host_port(server, 2222))
    command = [*login[:1], "-T", "-D", str(local), *login[1:], "bash"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as client:
        assert client.stdin is not None
        assert client.stdout is not None
        client.stdin.write(script.encode())
        client.stdin.flush()
        assert [client.stdout.readline() for _ in range(3)] == [
            b"Linux x86_64\n",
            b"HOME=/home/trainer\n",
            b"listeningOn==39123==\n",
        ]
        try:
            assert wait_for(lambda: socks_get(local, 39123)).startswith(b"HTTP/1.0 200")
        finally:
            client.kill()


def audit(port: int) -> dict[str, list[str]]:
    """The algorithms that ssh-audit finds fault with, by the weight of the fault."""
    program = Path(sys.executable).parent / "ssh-audit"
    command = [str(program), "--json", "--skip-rate-test", "-p", str(port), "127.0.0.1"]
    told = json.loads(subprocess.run(command, capture_output=True, timeout=60, check=False).stdout)
    assert told["cves"] == []
    found = [item for kind in ("kex", "key", "enc", "mac") for item in told[kind]]
    assert len(found) > 8
    return {
        level: sorted({item["algorithm"] for item in found if item["notes"].get(level)}) for level in ("fail", "warn")
    }


def test_an_auditor_names_nothing_but_the_classic_key_exchange(server: Container) -> None:
    """curve25519 stays for clients that are older than post-quantum key exchange."""
    found = audit(host_port(server, 2222))
    assert found == {"fail": [], "warn": ["curve25519-sha256", "curve25519-sha256@libssh.org"]}


def test_strict_leaves_an_auditor_nothing_to_name(run_container: Any, key: KeyPair) -> None:
    """And a client of today still logs in; one that knows no post-quantum key exchange does not."""
    environment = {"SSH_PUBLIC_KEY": key.public, "GPUYARD_SERVICES": "ssh", "GPUYARD_SSH_STRICT": "yes"}
    with run_container(None, environment=environment, ports=PORTS) as container:
        port = host_port(container, 2222)
        wait_for(lambda: greeting(port))
        assert audit(port) == {"fail": [], "warn": []}
        assert subprocess.run(key.ssh(port, "true"), check=False, timeout=30).returncode == 0
        old = [*key.ssh(port)[:-1], "-o", "KexAlgorithms=curve25519-sha256", "trainer@127.0.0.1", "true"]
        assert subprocess.run(old, check=False, timeout=30, capture_output=True).returncode == 255
