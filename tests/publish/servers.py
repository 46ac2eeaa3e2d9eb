"""Registries on this machine: Debian's docker-registry in every state, and a proxy before it with faults."""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import json
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

PROGRAM = "/usr/bin/docker-registry"
INDEX = "application/vnd.oci.image.index.v1+json"
SKIPPED = {"transfer-encoding", "connection", "content-length"}


def free_port() -> int:
    """A port that nothing listens on."""
    with socket.socket() as line:
        line.bind(("127.0.0.1", 0))
        return int(line.getsockname()[1])


@contextlib.contextmanager
def registry(folder: Path, **settings: Any) -> Iterator[str]:
    """Debian's registry with its data in a folder; gives HOST:PORT. ``settings`` are parts of its configuration."""
    port = free_port()
    config = {
        "version": "0.1",
        "log": {"level": "error", "accesslog": {"disabled": True}},
        "storage": {"filesystem": {"rootdirectory": str(folder / "data")}, **settings.pop("storage", {})},
        "http": {"addr": f"127.0.0.1:{port}", **settings.pop("http", {})},
        **settings,
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{port}.yml").write_text(json.dumps(config))
    with (folder / "log").open("w") as log:
        process = subprocess.Popen([PROGRAM, "serve", str(folder / f"{port}.yml")], stdout=log, stderr=log)
    try:
        wait_for(port)
        yield f"127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


def wait_for(port: int, seconds: float = 10) -> None:
    """Returns when something listens on a port."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.02)
    raise AssertionError(f"nothing listens on {port}")


Judge = Callable[[str, str], str]
"""From method and path to a fault: a status, ``cut``, ``cut-answer``, ``hang``, ``slow``, ``forget``, or nothing."""


@dataclass
class Proxy:
    """Before a registry: knows each request, and spoils those that ``judge`` names."""

    upstream: str
    judge: Judge = lambda _method, _path: ""
    host: str = ""
    seen: list[tuple[str, str]] = field(default_factory=list)
    referrers: dict[str, list[dict[str, Any]]] | None = None
    """With a table, the proxy speaks the referrers API of newer registries, which the one behind it lacks."""

    @property
    def sent(self) -> list[tuple[str, str]]:
        """The requests that write."""
        return [(method, path) for method, path in self.seen if method in ("PUT", "POST", "PATCH", "DELETE")]


@contextlib.contextmanager
def proxy(upstream: str, judge: Judge = lambda _method, _path: "") -> Iterator[Proxy]:
    """A proxy on a free port."""
    made = Proxy(upstream, judge)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_any(self) -> None:
            _answer(self, made)

        do_GET = do_HEAD = do_PUT = do_POST = do_PATCH = do_DELETE = handle_any

        def log_message(self, format: str, *args: object) -> None:
            del format, args

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    made.host = f"127.0.0.1:{server.server_port}"
    try:
        yield made
    finally:
        server.shutdown()
        server.server_close()


def _answer(handler: BaseHTTPRequestHandler, made: Proxy) -> None:
    made.seen.append((handler.command, handler.path))
    fault = made.judge(handler.command, handler.path)
    length = int(handler.headers.get("Content-Length") or 0)
    if fault == "cut":
        handler.rfile.read(length // 2)
        _hang_up(handler)
    elif fault == "hang":
        time.sleep(30)
        _hang_up(handler)
    elif fault.isdigit():
        handler.rfile.read(length)
        _send(handler, int(fault), [], b"no")
    elif made.referrers is not None and "/referrers/" in handler.path:
        listed = made.referrers.get(handler.path.rpartition("/")[2].partition("?")[0], [])
        index = {"schemaVersion": 2, "mediaType": INDEX, "manifests": listed}
        _send(handler, 200, [("Content-Type", INDEX)], json.dumps(index).encode())
    else:
        if fault == "slow":
            time.sleep(0.3)
        _forward(handler, made, handler.rfile.read(length), fault)


def _forward(handler: BaseHTTPRequestHandler, made: Proxy, body: bytes, fault: str) -> None:
    upstream = http.client.HTTPConnection(made.upstream, timeout=30)
    headers = {name: value for name, value in handler.headers.items() if name.lower() not in SKIPPED}
    upstream.request(handler.command, handler.path, body, {**headers, "Content-Length": str(len(body))})
    answer = upstream.getresponse()
    data = answer.read()
    if fault == "cut-answer":
        _hang_up(handler)
    elif fault == "forget":
        _send(handler, answer.status, answer.getheaders(), data.replace(b"sha256:", b"sha256:0")[: len(data)])
    else:
        _send(handler, answer.status, [*answer.getheaders(), *_subject(handler, made, body)], data)
    upstream.close()


def _subject(handler: BaseHTTPRequestHandler, made: Proxy, body: bytes) -> list[tuple[str, str]]:
    """A registry with the referrers API answers so to a manifest that refers to another, and lists it."""
    if made.referrers is None or handler.command != "PUT" or "/manifests/" not in handler.path:
        return []
    manifest = json.loads(body)
    if "subject" not in manifest:
        return []
    digest = "sha256:" + hashlib.sha256(body).hexdigest()
    entry = {name: manifest[name] for name in ("mediaType", "artifactType", "annotations") if name in manifest}
    made.referrers.setdefault(manifest["subject"]["digest"], []).append({**entry, "digest": digest, "size": len(body)})
    return [("OCI-Subject", manifest["subject"]["digest"])]


def _hang_up(handler: BaseHTTPRequestHandler) -> None:
    handler.close_connection = True
    with contextlib.suppress(OSError):
        handler.connection.shutdown(socket.SHUT_RDWR)


def _send(handler: BaseHTTPRequestHandler, code: int, headers: list[tuple[str, str]], data: bytes) -> None:
    handler.send_response_only(code)
    given = {name.lower(): value for name, value in headers}
    for name, value in headers:
        if name.lower() not in SKIPPED:
            handler.send_header(name, value)
    size = given.get("content-length", "0") if handler.command == "HEAD" else str(len(data))
    handler.send_header("Content-Length", size)
    handler.end_headers()
    if handler.command != "HEAD":
        handler.wfile.write(data)
