"""Jupyter below a path, behind nginx, and what pages of other origins may do."""

from __future__ import annotations

import http.cookiejar
import json
import shutil
import socket
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from docker.models.containers import Container

from ..conftest import host_port, log_of, wait_for
from .web import PORTS, get, healthy

pytestmark = pytest.mark.image
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


def test_the_token_is_on_no_command_line_and_in_no_environment(alice: Container) -> None:
    """Only in a file that nobody else reads."""
    server = alice.exec_run("pgrep -f jupyter-lab").output.decode().split()[0]
    for file in ("environ", "cmdline"):
        said = alice.exec_run(f"cat /proc/{server}/{file}").output
        assert b"PATH" in said or b"jupyter-lab" in said
        assert b"t0ken" not in said


def test_the_log_names_the_path(alice: Container) -> None:
    """And not the token that the user chose."""
    assert "http://127.0.0.1:8888/lab/alice/lab (log in with the token you gave)" in log_of(alice)
    assert "t0ken" not in log_of(alice)
