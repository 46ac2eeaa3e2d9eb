"""How people log in to Jupyter: a password, TLS, and settings of their own that never open the server."""

from __future__ import annotations

import http.cookiejar
import ssl
import subprocess
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tests.containers import Run

from ..conftest import host_port, log_of
from .web import PORTS, get, healthy

pytestmark = pytest.mark.image
PASSWORD = "correct horse"
HASH = f"from jupyter_server.auth import passwd; print(passwd({PASSWORD!r}))"


def test_a_password_logs_in_by_its_hash(run: Run, run_container: Any) -> None:
    """The hash is in no environment of a kernel, another password is refused, and no random token is made."""
    environment = {"JUPYTER_PASSWORD_HASH": run("python", "-c", HASH).stdout.strip()}
    with run_container(None, environment=environment, ports=PORTS) as container:
        healthy(container)
        base = f"http://127.0.0.1:{host_port(container, 8888)}"
        for password, status in (("wrong", 403), (PASSWORD, 200)):
            jar = http.cookiejar.CookieJar()
            client = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar))
            get(f"{base}/login", client)
            token = next(cookie.value for cookie in jar if cookie.name == "_xsrf")
            form = urllib.parse.urlencode({"password": password, "_xsrf": token}).encode()
            get(f"{base}/login?next=%2Fapi%2Fstatus", client, form)
            assert get(f"{base}/api/status", client)[0] == status
        assert "token=" not in log_of(container).split("(log in with the password")[0]
        server = container.exec_run("pgrep -f jupyter-lab").output.decode().split()[0]
        assert b"argon2" not in container.exec_run(f"cat /proc/{server}/environ").output


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A folder with a key and its certificate."""
    tmp_path.chmod(0o755)
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=x", "-days", "2"]
    ends = ["-keyout", f"{tmp_path}/a.key", "-out", f"{tmp_path}/a.pem"]
    subprocess.run([*command, *ends], check=True, capture_output=True)
    (tmp_path / "a.key").chmod(0o644)
    return tmp_path


def test_tls_is_spoken_and_the_health_check_knows(run_container: Any, certificate: Path) -> None:
    """Below a path at the same time; plain HTTP is refused."""
    environment = {"JUPYTER_CERTFILE": "/tls/a.pem", "JUPYTER_KEYFILE": "/tls/a.key", "JUPYTER_BASE_URL": "/x"}
    volumes = {str(certificate): {"bind": "/tls", "mode": "ro"}}
    with run_container(None, environment=environment, volumes=volumes, ports=PORTS) as container:
        healthy(container)
        port = host_port(container, 8888)
        context = ssl.create_default_context(cafile=str(certificate / "a.pem"))
        context.check_hostname = False
        client = urllib.request.build_opener(urllib.request.HTTPSHandler(context=context))
        assert get(f"https://127.0.0.1:{port}/x/api", client)[0] == 200
        assert "https://127.0.0.1:8888/x/lab?token=" in log_of(container)


OWN = """\
c.ServerApp.jpserver_extensions = {"jupyter_lsp": False}
c.ServerApp.root_dir = "/mnt"
c.ServerApp.port = 1
c.ServerApp.ip = "127.0.0.1"
c.IdentityProvider.token = ""
c.PasswordIdentityProvider.token = ""
c.ServerApp.tornado_settings = {"headers": {"X-Own": "yes"}}
"""


def test_the_users_settings_count_but_never_open_the_server(run_container: Any, tmp_path: Path) -> None:
    """A forgotten file in a mounted home can't take the login away; a broken one is named and left out."""
    tmp_path.chmod(0o777)
    (tmp_path / "jupyter_server_config.py").write_text(OWN)
    (tmp_path / "jupyter_lab_config.py").write_text(OWN)
    (tmp_path / "jupyter_server_config.json").write_text("{")
    volumes = {str(tmp_path): {"bind": "/home/trainer/.jupyter", "mode": "rw"}}
    with run_container(None, volumes=volumes, ports=PORTS) as container:
        healthy(container)
        base = f"http://127.0.0.1:{host_port(container, 8888)}"
        assert get(f"{base}/api/status")[0] == 403
        with urllib.request.urlopen(f"{base}/api", timeout=10) as answer:
            assert answer.headers["X-Own"] == "yes"
        assert "WARNING jupyter[jupyter-config-ignored]: " in log_of(container)


@pytest.mark.parametrize("command", [None, ["jupyter", "lab", "--ip=::"]])
def test_jupyter_listens_on_ipv4_and_ipv6(run_container: Any, command: list[str] | None) -> None:
    """Whatever address of all was named; the kernel's tables list port 8888 (22B8) as listening (0A) in both."""
    with run_container(command) as container:
        healthy(container)
        for table in ("tcp", "tcp6"):
            lines = container.exec_run(["cat", f"/proc/net/{table}"]).output.decode().splitlines()
            open_ports = [line.split()[1] for line in lines[1:] if line.split()[3] == "0A"]
            every = "0" * (8 if table == "tcp" else 32)
            assert f"{every}:22B8" in open_ports


def test_a_second_server_does_not_take_an_unpublished_port(run_container: Any) -> None:
    """`jupyter lab` typed where one runs ends with the port that is taken."""
    with run_container(None) as container:
        healthy(container)
        ended = container.exec_run(["timeout", "60", "jupyter", "lab", "--no-browser"])
        assert ended.exit_code not in (0, 124)
        assert b"8888" in ended.output
        assert b"8889" not in ended.output
