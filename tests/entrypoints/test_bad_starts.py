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
    """One start, and what is said of it."""

    env: dict[str, str]
    said: str
    argv: tuple[str, ...] = ()
    user: str = "1000:1000"
    code: int = 2


STARTS = (
    # Whom to be.
    Bad({}, "GPUYARD_ALLOW_ROOT=yes", user="0"),
    Bad({}, "GPUYARD_ALLOW_ROOT=yes", ("id",), user="0"),
    Bad({"GPUYARD_ALLOW_ROOT": "maybe"}, "GPUYARD_ALLOW_ROOT is 'maybe': expected yes or no", user="0"),
    Bad({"GPUYARD_UID": "0"}, "GPUYARD_UID is 0, which is root", user="0"),
    Bad({"GPUYARD_UID": "-5"}, "GPUYARD_UID is '-5': expected a number", user="0"),
    Bad({"GPUYARD_UID": "alice"}, "GPUYARD_UID is 'alice': expected a number", user="0"),
    Bad({"GPUYARD_UID": "4294967295"}, "from 0 to 4294967294", user="0"),
    Bad({"GPUYARD_UID": "33"}, "uid 33 is 'www-data' in this image", user="0"),
    Bad({"GPUYARD_UID": "1005", "NB_UID": "1006"}, "disagree: give one of them", user="0"),
    Bad({"NB_GID": "users"}, "NB_GID is 'users': expected a number", user="0"),
    Bad({"NB_USER": "www-data"}, "NB_USER is 'www-data', which is taken in this image", user="0"),
    Bad({"NB_USER": "Alice"}, "NB_USER is 'Alice': expected lower-case letters", user="0"),
    Bad({"GPUYARD_CHOWN": "/usr"}, "GPUYARD_CHOWN names '/usr'", user="0"),
    Bad({"GPUYARD_CHOWN": "/workspace/none"}, "which is no folder: mount it, or leave it out", user="0"),
    Bad({"GPUYARD_UID": "1005"}, "GPUYARD_UID=1005 needs a start as root", ("true",)),
    Bad({"NB_USER": "alice"}, "NB_USER needs a start as root"),
    # What to run.
    Bad({}, "command 'no-such-program' not found: it is not on PATH", ("no-such-program",), code=127),
    Bad({}, "command '/no/such/program' not found: no such file", ("/no/such/program",), code=127),
    Bad({}, "/etc/passwd is not an executable file", ("/etc/passwd",), code=126),
    Bad({}, "options of docker run stand before the image's name", ("--gpus", "all")),
    Bad({"GPUYARD_SERVICES": "vnc"}, "GPUYARD_SERVICES names 'vnc': expected jupyter, ssh or none"),
    Bad({"GPUYARD_SERVICES": "ssh"}, "asks for ssh but no key was given"),
    Bad({}, "asks for ssh but no key was given", ("ssh",)),
    Bad({}, "'--ServerApp.token' is said by JUPYTER_TOKEN here", ("jupyter", "lab", "--ServerApp.token=")),
    Bad({"GPUYARD_LOG": "loud"}, "GPUYARD_LOG is 'loud': expected one of text, json, quiet"),
    # Jupyter.
    Bad({"JUPYTER_TOKEN": ""}, "JUPYTER_TOKEN is empty"),
    Bad({"JUPYTER_TOKEN": "a b"}, "expected plain ASCII without blanks"),
    Bad({"JUPYTER_TOKEN_FILE": "/run/secrets/none"}, "JUPYTER_TOKEN_FILE=/run/secrets/none can't be read"),
    Bad({"JUPYTER_TOKEN_FILE": "/dev/null"}, "JUPYTER_TOKEN_FILE=/dev/null is empty"),
    Bad({"JUPYTER_PASSWORD_HASH": "letmein"}, "JUPYTER_PASSWORD_HASH is no hash of a password"),
    Bad({"JUPYTER_PORT": "http"}, "JUPYTER_PORT is 'http': expected a port number"),
    Bad({"JUPYTER_PORT": "65536"}, "JUPYTER_PORT is '65536'"),
    Bad({"JUPYTER_PORT": TAKEN}, f"port {TAKEN} for Jupyter is taken: free it, or choose another", code=1),
    Bad({"JUPYTER_PORT": "2222", "SSH_PUBLIC_KEY": KEY}, "Jupyter and SSH both want port 2222"),
    Bad({"JUPYTER_BASE_URL": "http://host/lab"}, "JUPYTER_BASE_URL is 'http://host/lab': expected a path"),
    Bad({"JUPYTER_ALLOW_ORIGIN": "*"}, "* would let any page run code here"),
    Bad({"JUPYTER_LINK": "lab"}, "JUPYTER_LINK is 'lab'"),
    Bad({"JUPYTER_KEYFILE": "/tls/a.key"}, "JUPYTER_CERTFILE is not: give both"),
    Bad({**TLS, "JUPYTER_KEYFILE": "/tls/closed.key"}, "JUPYTER_KEYFILE=/tls/closed.key can't be read (Permission"),
    Bad({**TLS, "JUPYTER_KEYFILE": "/tls/none.key"}, "JUPYTER_KEYFILE=/tls/none.key can't be read (No such file"),
    Bad({**TLS, "JUPYTER_KEYFILE": "/tls/b.key"}, "can't be used (key values mismatch)"),
    Bad({**TLS, "JUPYTER_KEYFILE": "/tls/a.pem"}, "can't be used ("),
    # SSH.
    Bad({"SSH_PUBLIC_KEY": "ssh-ed25519 AAAA"}, "SSH_PUBLIC_KEY, line 1: "),
    Bad({"PUBLIC_KEY": "\n\nnonsense"}, "PUBLIC_KEY, line 3: "),
    Bad({"GPUYARD_SSH_PORT": "0", "SSH_PUBLIC_KEY": KEY}, "GPUYARD_SSH_PORT is '0'"),
    Bad({"GPUYARD_SSH_PORT": TAKEN, "SSH_PUBLIC_KEY": KEY}, f"port {TAKEN} for SSH is taken", code=1),
    Bad({"GPUYARD_HOST_KEYS": "keys", "SSH_PUBLIC_KEY": KEY}, "expected the full path of a folder"),
    Bad({"GPUYARD_HOST_KEYS": "/tls", "SSH_PUBLIC_KEY": KEY}, "the folder of host keys /tls holds none and can't be"),
    Bad({"GPUYARD_SSH_STRICT": "a bit", "SSH_PUBLIC_KEY": KEY}, "GPUYARD_SSH_STRICT is 'a bit'"),
    Bad({"SSH_PUBLIC_KEY": KEY}, "SSH does not serve uid 300, which has no name in this image", user="300:300"),
    # What else a start is told.
    Bad({"GPUYARD_PASS": "HF_TOKEN"}, "GPUYARD_PASS names HF_TOKEN, which is not set"),
    Bad({"GPUYARD_CA": "/etc/hostname"}, "GPUYARD_CA=/etc/hostname holds no certificate in PEM form"),
    Bad({"GPUYARD_CACHE": "cache"}, "GPUYARD_CACHE is 'cache': expected the full path of a folder"),
    Bad({"GPUYARD_CACHE": "/etc/cache"}, "GPUYARD_CACHE is '/etc/cache', but /etc can't be written to by uid 1000"),
    Bad({"GPUYARD_VENV": "venv"}, "expected the full path of a folder"),
    Bad({"GPUYARD_VENV": "/workspace/../etc"}, "expected the full path of a folder"),
    Bad({"GPUYARD_VENV": "/opt/venv"}, "which is the image's own"),
    Bad({"GPUYARD_VENV": "/usr/venv"}, "/usr can't be written to by uid 1000"),
    Bad({"GPUYARD_VENV": "/etc/passwd"}, "/etc/passwd can't be written to by uid 1000"),
    Bad({"GPUYARD_VENV": "/home/trainer"}, "which holds something else"),
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


@pytest.mark.parametrize("bad", STARTS, ids=lambda bad: bad.said)
def test_a_bad_start_is_one_line_and_a_code(answers: dict[str, Answer], bad: Bad) -> None:
    """Nothing on standard output; what is wrong, what was expected or what to do."""
    found = answers[str(bad)]
    assert (found.code, found.out) == (bad.code, None)
    (line,) = (found.err or b"").decode().splitlines()
    assert " ERROR start: " in line
    assert bad.said in line


def test_none_of_them_changed_anything(answers: dict[str, Answer], place: Container) -> None:
    """No file of the container; the same look finds one that is touched afterwards."""
    assert len(answers) == len(STARTS) >= 40
    assert changed(place) == []
    place.exec_run("touch /var/lib/gpuyard/x")
    assert "/var/lib/gpuyard/x" in changed(place)
