"""Jupyter as the environment asks for it: a password, a path behind a proxy, TLS, the user's own settings."""

from __future__ import annotations

import http.cookiejar
import json
import shutil
import socket
import ssl
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from docker.models.containers import Container

from .conftest import host_port, log_of, wait_for

pytestmark = pytest.mark.image
PORTS = {"8888/tcp": ("127.0.0.1", None)}
HEALTH = "/opt/gpuyard/entrypoints/health"
PASSWORD = "correct horse"
NGINX = """\
daemon off; pid {folder}/pid; error_log {folder}/error.log;
events {{}}
http {{
  access_log off;
  client_body_temp_path {folder}; proxy_temp_path {folder}; fastcgi_temp_path {folder};
  uwsgi_temp_path {folder}; scgi_temp_path {folder};
  map $http_upgrade $connection_upgrade {{ default upgrade; '' close; }}
  server {{
    listen 127.0.0.1:{port};
    location /lab/alice/ {{
      proxy_pass http://127.0.0.1:{inside};
      proxy_set_header Host $http_host;
      {upgrade}
    }}
  }}
}}
"""
UPGRADE = (
    "proxy_http_version 1.1; proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection $connection_upgrade;"
)


def get(url: str, opener: urllib.request.OpenerDirector | None = None, data: bytes | None = None) -> tuple[int, bytes]:
    """Status and body of a page."""
    client = opener or urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with client.open(url, data, timeout=10) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def healthy(container: Container) -> None:
    """Waits until Jupyter answers its health check."""
    wait_for(lambda: container.exec_run(HEALTH).output == b"jupyter answer\n", 90)


@pytest.fixture(scope="module")
def alice(run_container: Any) -> Iterator[Container]:
    """A server below a path, with a token and one foreign origin."""
    environment = {
        "JUPYTER_BASE_URL": "lab/alice",
        "JUPYTER_TOKEN": "t0ken",
        "JUPYTER_ALLOW_ORIGIN": "https://lab.example.org,https://b.example.org:8443",
    }
    with run_container(None, environment=environment, ports=PORTS) as container:
        healthy(container)
        yield container


def cookies(base: str) -> str:
    """The cookies of a browser that has logged in: a token in the address would let any origin pass."""
    jar = http.cookiejar.CookieJar()
    get(f"{base}lab?token=t0ken", urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar)))
    return "; ".join(f"{cookie.name}={cookie.value}" for cookie in jar)


def handshake(port: int, path: str, origin: str) -> bytes:
    """The answer's first line to a WebSocket's opening, as a browser sends it."""
    cookie = f"Cookie: {cookies(f'http://127.0.0.1:{port}/lab/alice/')}"
    lines = [
        *(f"GET {path} HTTP/1.1", f"Host: 127.0.0.1:{port}", f"Origin: {origin}", "Upgrade: websocket"),
        *(
            cookie,
            "Connection: Upgrade",
            "Sec-WebSocket-Version: 13",
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
            "",
            "",
        ),
    ]
    with socket.create_connection(("127.0.0.1", port), 10) as connection:
        connection.sendall("\r\n".join(lines).encode())
        return connection.recv(200).split(b"\r\n")[0]


def new_kernel(base: str) -> str:
    """The path of a new kernel's channel."""
    status, body = get(f"{base}api/kernels?token=t0ken", data=b"{}")
    assert status == 201, body
    return f"/lab/alice/api/kernels/{json.loads(body)['id']}/channels"


@pytest.fixture
def proxy(alice: Container, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[int]:
    """nginx in front of the server, with the lines that a WebSocket needs or without."""
    if (program := shutil.which("nginx")) is None:
        pytest.skip("nginx is not installed on this machine")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    text = NGINX.format(folder=tmp_path, port=port, inside=host_port(alice, 8888), upgrade=request.param)
    (tmp_path / "nginx.conf").write_text(text)
    with subprocess.Popen([program, "-p", str(tmp_path), "-c", "nginx.conf"]) as running:
        wait_for(lambda: get(f"http://127.0.0.1:{port}/lab/alice/api")[0] == 200)
        yield port
        running.terminate()


@pytest.mark.parametrize("proxy", [UPGRADE], indirect=True)
def test_a_kernel_is_reached_behind_a_proxy_under_a_path(proxy: int) -> None:
    """The page, the token and the kernel's WebSocket."""
    base = f"http://127.0.0.1:{proxy}/lab/alice/"
    assert get(f"{base}lab?token=t0ken")[0] == 200
    assert get(f"{base}api/status")[0] == 403
    assert handshake(proxy, new_kernel(base), f"http://127.0.0.1:{proxy}") == b"HTTP/1.1 101 Switching Protocols"


@pytest.mark.parametrize("proxy", [""], indirect=True)
def test_without_the_upgrade_lines_no_kernel_is_reached(proxy: int) -> None:
    """That is why they stand in the documentation."""
    kernel = new_kernel(f"http://127.0.0.1:{proxy}/lab/alice/")
    assert b" 101 " not in handshake(proxy, kernel, f"http://127.0.0.1:{proxy}")


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("https://lab.example.org", b" 101 "),
        ("https://b.example.org:8443", b" 101 "),
        ("https://evil.example", b" 403 "),
        ("https://lab.example.org.evil.example", b" 403 "),
        ("https://labxexample.org", b" 403 "),
    ],
)
def test_only_the_named_origins_reach_a_kernel(alice: Container, origin: str, status: bytes) -> None:
    """A page of another origin could run code with the user's cookie."""
    port = host_port(alice, 8888)
    assert status in handshake(port, new_kernel(f"http://127.0.0.1:{port}/lab/alice/"), origin)


def test_the_log_names_the_path(alice: Container) -> None:
    """And not the token that the user chose."""
    assert "http://127.0.0.1:8888/lab/alice/lab (log in with the token you gave)" in log_of(alice)
    assert "t0ken" not in log_of(alice)


def hashed(container: Container, password: str) -> str:
    """The hash that Jupyter itself makes of a password."""
    code = f"from jupyter_server.auth import passwd; print(passwd({password!r}))"
    return str(container.exec_run(["python", "-c", code]).output.decode().strip())


def test_a_password_logs_in_by_its_hash(alice: Container, run_container: Any) -> None:
    """The hash is in no environment of a kernel, another password is refused, and no random token is made."""
    environment = {"JUPYTER_PASSWORD_HASH": hashed(alice, PASSWORD)}
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


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a key and its certificate, and another key."""
    folder = tmp_path_factory.mktemp("tls")
    folder.chmod(0o755)
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=x", "-days", "2"]
    for name in ("a", "b"):
        ends = ["-keyout", f"{folder}/{name}.key", "-out", f"{folder}/{name}.pem"]
        subprocess.run([*command, *ends], check=True, capture_output=True)
        (folder / f"{name}.key").chmod(0o644)
    shutil.copy(folder / "a.key", folder / "closed.key")
    (folder / "closed.key").chmod(0o600)
    return folder


def encrypted(folder: Path, key: str) -> dict[str, Any]:
    """Options of a container with TLS."""
    return {
        "environment": {"JUPYTER_CERTFILE": "/tls/a.pem", "JUPYTER_KEYFILE": f"/tls/{key}", "JUPYTER_BASE_URL": "/x"},
        "volumes": {str(folder): {"bind": "/tls", "mode": "ro"}},
    }


def test_tls_is_spoken_and_the_health_check_knows(run_container: Any, certificate: Path) -> None:
    """Below a path at the same time; plain HTTP is refused."""
    with run_container(None, ports=PORTS, **encrypted(certificate, "a.key")) as container:
        healthy(container)
        port = host_port(container, 8888)
        context = ssl.create_default_context(cafile=str(certificate / "a.pem"))
        context.check_hostname = False
        client = urllib.request.build_opener(urllib.request.HTTPSHandler(context=context))
        assert get(f"https://127.0.0.1:{port}/x/api", client)[0] == 200
        assert "https://127.0.0.1:8888/x/lab?token=" in log_of(container)


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("closed.key", "JUPYTER_KEYFILE=/tls/closed.key can't be read (Permission denied)"),
        ("none.key", "JUPYTER_KEYFILE=/tls/none.key can't be read (No such file or directory)"),
        ("b.key", "can't be used (key values mismatch): expected a certificate and its own key"),
        ("a.pem", "can't be used ("),
    ],
)
def test_a_key_that_cannot_be_used_is_refused(run: Any, certificate: Path, key: str, said: str) -> None:
    """In one line, before anything is started."""
    ended = run(**encrypted(certificate, key))
    assert ended.code == 2
    assert said in ended.stderr
    assert len(ended.stderr.splitlines()) == 1


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
        assert "jupyter_server_config.json is left out: " in log_of(container)
