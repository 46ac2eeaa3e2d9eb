"""A package index on this machine that answers as badly as one can."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from gpuyard.packages.fetcher import Wheel


@dataclass
class Index:
    """One wheel on an index. ``faults`` are used up one by one by the requests for the wheel itself."""

    wheel: Wheel
    faults: list[str] = field(default_factory=list)
    page: str = ""
    ranges: list[str] = field(default_factory=list)
    url: str = ""

    def listing(self) -> bytes:
        """The simple page of the wheel's project."""
        name = self.wheel.path.name
        return f'<a href="/files/{name}#sha256={self.wheel.sha}">{name}</a>'.encode()


@contextlib.contextmanager
def serve(index: Index) -> Iterator[Index]:
    """Serves it on a free port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            _answer(self, index)

        def log_message(self, format: str, *args: object) -> None:
            del format, args

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    index.url = f"http://127.0.0.1:{server.server_port}/simple/"
    try:
        yield index
    finally:
        server.shutdown()
        server.server_close()


def _answer(handler: BaseHTTPRequestHandler, index: Index) -> None:
    if handler.path.startswith("/simple/"):
        _send(handler, int(index.page or 200), index.listing(), "text/html")
        return
    index.ranges.append(handler.headers.get("Range", ""))
    data = Path(index.wheel.path).read_bytes()
    fault = index.faults.pop(0) if index.faults else ""
    if fault.isdigit():
        _send(handler, int(fault), b"no", "text/plain")
    elif fault == "html":
        _send(handler, 200, b"<html>log in</html>", "text/html")
    elif fault == "other":
        _send(handler, 200, b"x" * len(data), "application/zip")
    elif fault == "half":
        _send(handler, 200, data, "application/zip", data[: len(data) // 2])
    else:
        _serve_range(handler, data)


def _serve_range(handler: BaseHTTPRequestHandler, data: bytes) -> None:
    asked = handler.headers.get("Range", "")
    start = int(asked.removeprefix("bytes=").rstrip("-")) if asked else 0
    if start >= len(data) > 0:
        _send(handler, 416, b"", "text/plain")
    else:
        _send(handler, 206 if asked else 200, data[start:], "application/zip")


def _send(handler: BaseHTTPRequestHandler, code: int, data: bytes, kind: str, sent: bytes | None = None) -> None:
    handler.send_response(code)
    handler.send_header("Content-Type", kind)
    handler.send_header("Content-Length", str(len(data)))
    handler.end_headers()
    handler.wfile.write(data if sent is None else sent)
    handler.close_connection = True
