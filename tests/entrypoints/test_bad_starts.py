"""Starts that are refused: each with one line and its code, and after all of them nothing in the container differs.

They are made in one container, because a container for each takes a second: the program is the same.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from docker.models.containers import Container

from .conftest import wait_for

pytestmark = pytest.mark.image
START = "/opt/gpuyard/entrypoints/start"
TAKEN = "9000"
HOLD = f"import socket, time; held = socket.create_server(('', {TAKEN})); time.sleep(3600)"
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
TLS = {"JUPYTER_CERTFILE": "/tls/a.pem"}


class Bad(NamedTuple):
    """One start, the id of its refusal, and what the line names."""

    env: dict[str, str]
    id: str
    named: str
    argv: tuple[str, ...] = ()
    user: str = "1000:1000"
    code: int = 2


STARTS = (
    # Whom to be.
    Bad({}, "root-not-allowed", "GPUYARD_UID", user="0"),
    Bad({}, "root-not-allowed", "GPUYARD_UID", ("id",), user="0"),
    Bad({"GPUYARD_ALLOW_ROOT": "maybe"}, "setting-invalid", "GPUYARD_ALLOW_ROOT", user="0"),
    Bad({"GPUYARD_UID": "0"}, "root-not-allowed", "GPUYARD_UID", user="0"),
    Bad({"GPUYARD_UID": "-5"}, "setting-invalid", "GPUYARD_UID", user="0"),
    Bad({"GPUYARD_UID": "alice"}, "setting-invalid", "GPUYARD_UID", user="0"),
    Bad({"GPUYARD_UID": "4294967295"}, "setting-invalid", "GPUYARD_UID", user="0"),
    Bad({"GPUYARD_UID": "33"}, "user-taken", "GPUYARD_UID", user="0"),
    Bad({"GPUYARD_UID": "1005", "NB_UID": "1006"}, "settings-conflict", "GPUYARD_UID", user="0"),
    Bad({"NB_GID": "users"}, "setting-invalid", "NB_GID", user="0"),
    Bad({"NB_USER": "www-data"}, "user-taken", "NB_USER", user="0"),
    Bad({"NB_USER": "Alice"}, "setting-invalid", "NB_USER", user="0"),
    Bad({"GPUYARD_CHOWN": "/usr"}, "chown-place", "GPUYARD_CHOWN", user="0"),
    Bad({"GPUYARD_CHOWN": "/workspace/none"}, "chown-place", "GPUYARD_CHOWN", user="0"),
    Bad({"GPUYARD_UID": "1005"}, "root-needed", "GPUYARD_UID", ("true",)),
    Bad({"NB_USER": "alice"}, "root-needed", "NB_USER"),
    # What to run.
    Bad({}, "command-not-found", "no-such-program", ("no-such-program",), code=127),
    Bad({}, "command-not-found", "/no/such/program", ("/no/such/program",), code=127),
    Bad({}, "command-not-executable", "/etc/passwd", ("/etc/passwd",), code=126),
    Bad({}, "option-after-image", "--gpus", ("--gpus", "all")),
    Bad({"GPUYARD_SERVICES": "vnc"}, "setting-invalid", "GPUYARD_SERVICES"),
    Bad({"GPUYARD_SERVICES": "ssh"}, "login-key-missing", "SSH_PUBLIC_KEY"),
    Bad({}, "login-key-missing", "SSH_PUBLIC_KEY", ("ssh",)),
    Bad({}, "option-is-setting", "JUPYTER_TOKEN", ("jupyter", "lab", "--ServerApp.token=")),
    Bad({"GPUYARD_LOG": "loud"}, "setting-invalid", "GPUYARD_LOG"),
    # Jupyter.
    Bad({"JUPYTER_TOKEN": ""}, "token-empty", "JUPYTER_TOKEN"),
    Bad({"JUPYTER_TOKEN": "a b"}, "token-invalid", "token"),
    Bad({"JUPYTER_TOKEN_FILE": "/run/secrets/none"}, "token-file-unusable", "JUPYTER_TOKEN_FILE"),
    Bad({"JUPYTER_TOKEN_FILE": "/dev/null"}, "token-file-unusable", "JUPYTER_TOKEN_FILE"),
    Bad({"JUPYTER_PASSWORD_HASH": "letmein"}, "password-hash-invalid", "JUPYTER_PASSWORD_HASH"),
    Bad({"JUPYTER_PORT": "http"}, "setting-invalid", "JUPYTER_PORT"),
    Bad({"JUPYTER_PORT": "65536"}, "setting-invalid", "JUPYTER_PORT"),
    Bad({"JUPYTER_PORT": TAKEN}, "service-port-taken", TAKEN, code=1),
    Bad({"JUPYTER_PORT": "2222", "SSH_PUBLIC_KEY": KEY}, "settings-conflict", "JUPYTER_PORT"),
    Bad({"JUPYTER_BASE_URL": "http://host/lab"}, "setting-invalid", "JUPYTER_BASE_URL"),
    Bad({"JUPYTER_ALLOW_ORIGIN": "*"}, "setting-invalid", "JUPYTER_ALLOW_ORIGIN"),
    Bad({"JUPYTER_LINK": "lab"}, "setting-invalid", "JUPYTER_LINK"),
    Bad({"JUPYTER_KEYFILE": "/tls/a.key"}, "settings-conflict", "JUPYTER_KEYFILE"),
    Bad({**TLS, "JUPYTER_KEYFILE": "/tls/closed.key"}, "tls-file-unreadable", "/tls/closed.key"),
    Bad({**TLS, "JUPYTER_KEYFILE": "/tls/none.key"}, "tls-file-unreadable", "/tls/none.key"),
    Bad({**TLS, "JUPYTER_KEYFILE": "/tls/b.key"}, "tls-unusable", "/tls/b.key"),
    Bad({**TLS, "JUPYTER_KEYFILE": "/tls/a.pem"}, "tls-unusable", "/tls/a.pem"),
    # SSH.
    Bad({"SSH_PUBLIC_KEY": "ssh-ed25519 AAAA"}, "login-key-invalid", "SSH_PUBLIC_KEY"),
    Bad({"PUBLIC_KEY": "\n\nnonsense"}, "login-key-invalid", "PUBLIC_KEY"),
    Bad({"GPUYARD_SSH_PORT": "0", "SSH_PUBLIC_KEY": KEY}, "setting-invalid", "GPUYARD_SSH_PORT"),
    Bad({"GPUYARD_SSH_PORT": TAKEN, "SSH_PUBLIC_KEY": KEY}, "service-port-taken", TAKEN, code=1),
    Bad({"GPUYARD_HOST_KEYS": "keys", "SSH_PUBLIC_KEY": KEY}, "setting-invalid", "GPUYARD_HOST_KEYS"),
    Bad({"GPUYARD_HOST_KEYS": "/tls", "SSH_PUBLIC_KEY": KEY}, "host-keys-unwritable", "/tls"),
    Bad({"GPUYARD_SSH_STRICT": "a bit", "SSH_PUBLIC_KEY": KEY}, "setting-invalid", "GPUYARD_SSH_STRICT"),
    Bad({"SSH_PUBLIC_KEY": KEY}, "ssh-user", "GPUYARD_SERVICES", user="300:300"),
    # What else a start is told.
    Bad({"GPUYARD_PASS": "HF_TOKEN"}, "pass-unset", "GPUYARD_PASS"),
    Bad({"GPUYARD_CA": "/etc/hostname"}, "certificates-invalid", "GPUYARD_CA"),
    Bad({"GPUYARD_CACHE": "cache"}, "setting-invalid", "GPUYARD_CACHE"),
    Bad({"GPUYARD_CACHE": "/etc/cache"}, "setting-folder-unwritable", "GPUYARD_CACHE"),
    Bad({"GPUYARD_VENV": "venv"}, "setting-invalid", "GPUYARD_VENV"),
    Bad({"GPUYARD_VENV": "/workspace/../etc"}, "setting-invalid", "GPUYARD_VENV"),
    Bad({"GPUYARD_VENV": "/opt/venv"}, "venv-unusable", "GPUYARD_VENV"),
    Bad({"GPUYARD_VENV": "/usr/venv"}, "setting-folder-unwritable", "GPUYARD_VENV"),
    Bad({"GPUYARD_VENV": "/etc/passwd"}, "setting-folder-unwritable", "GPUYARD_VENV"),
    Bad({"GPUYARD_VENV": "/home/trainer"}, "venv-unusable", "GPUYARD_VENV"),
)


def certificates(folder: Path) -> None:
    """A key and its certificate, another key, and one that only root reads."""
    folder.chmod(0o755)
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=x", "-days", "2"]
    for name in ("a", "b"):
        ends = ["-keyout", f"{folder}/{name}.key", "-out", f"{folder}/{name}.pem"]
        subprocess.run([*command, *ends], check=True, capture_output=True)
        (folder / f"{name}.key").chmod(0o644)
    (folder / "closed.key").write_bytes((folder / "a.key").read_bytes())
    (folder / "closed.key").chmod(0o600)


@pytest.fixture(scope="module")
def place(run_container: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Container]:
    """A container in which a port is taken, with a read-only folder of certificates."""
    folder = tmp_path_factory.mktemp("tls")
    certificates(folder)
    volumes = {str(folder): {"bind": "/tls", "mode": "ro"}}
    with run_container(["/usr/bin/python3", "-c", HOLD], volumes=volumes) as container:
        look = f"ss -ltn 2>/dev/null | grep -q :{TAKEN} || grep -q :{int(TAKEN):04X} /proc/net/tcp"
        wait_for(lambda: container.exec_run(["sh", "-c", look]).exit_code == 0)
        assert container.exec_run("touch /dev/shm/before").exit_code == 0
        yield container


def changed(container: Container) -> list[str]:
    """Every file and folder that is newer than the mark, by content or by owner and mode."""
    look = ["find", "/", "/dev/shm", "-xdev", "(", "-newer", "/dev/shm/before", "-o", "-cnewer", "/dev/shm/before", ")"]
    return str(container.exec_run(look, user="root").output.decode()).splitlines()


class Answer(NamedTuple):
    """How a start ended."""

    code: int
    out: bytes | None
    err: bytes | None


@pytest.fixture(scope="module")
def answers(place: Container) -> dict[str, Answer]:
    """Every start, one after the other."""
    found = {}
    for bad in STARTS:
        code, (out, err) = place.exec_run([START, *bad.argv], user=bad.user, environment=bad.env, demux=True)
        found[str(bad)] = Answer(code, out, err)
    return found


@pytest.mark.parametrize("bad", STARTS, ids=lambda bad: f"{bad.id}-{bad.named}")
def test_a_bad_start_is_one_line_and_a_code(answers: dict[str, Answer], bad: Bad) -> None:
    """Nothing on standard output; what is wrong, what was expected or what to do."""
    found = answers[str(bad)]
    assert (found.code, found.out) == (bad.code, None)
    (line,) = (found.err or b"").decode().splitlines()
    assert f" ERROR start[{bad.id}]: " in line
    assert bad.named in line


def test_none_of_them_changed_anything(answers: dict[str, Answer], place: Container) -> None:
    """No file of the container; the same look finds one that is touched afterwards."""
    assert len(answers) == len(STARTS) >= 40
    assert changed(place) == []
    place.exec_run("touch /var/lib/gpuyard/x")
    assert "/var/lib/gpuyard/x" in changed(place)
