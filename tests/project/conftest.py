"""A project's folder, and an index of small fake wheels that uv resolves from."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from gpuyard.catalogue.table import Catalogue
from gpuyard.project import definition
from gpuyard.project.definition import Project
from tests.images.index import wheel

Make = Callable[..., Project]


@pytest.fixture
def index(tmp_path: Path, table: Catalogue, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The only index that uv sees, and its folder: each line's torch, and packages that want this or that."""
    folder = tmp_path / "index"
    folder.mkdir()
    for line in table.line.values():
        wheel(folder, "torch", line.torch)
    wheel(folder, "leaf", "1.0")
    wheel(folder, "leaf", "1.1")
    wheel(folder, "branch", "2.0", "leaf", "torch>=2")
    wheel(folder, "twig", "1.0", "leaf")
    wheel(folder, "oldtorch", "1.0", "torch<2.8")
    wheel(folder, "reserved", "0.0.0")
    wheel(folder, "nightly", "1.0.dev0")
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler(folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("UV_DEFAULT_INDEX", f"http://127.0.0.1:{server.server_port}/simple/")
    monkeypatch.setenv("UV_INDEX", "")
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "")
    yield folder
    server.shutdown()
    server.server_close()


def handler(folder: Path) -> type[BaseHTTPRequestHandler]:
    """Answers as a simple index (PEP 503) of the files in a folder."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            kind, _, name = self.path.strip("/").partition("/")
            if kind == "files" and (folder / name).is_file():
                self.answer(200, (folder / name).read_bytes())
                return
            files = [file.name for file in sorted(folder.iterdir()) if file.name.partition("-")[0] == name]
            page = "".join(f'<a href="/files/{file}#sha256={sha256(folder / file)}">{file}</a>' for file in files)
            self.answer(200 if files else 404, page.encode())

        def answer(self, code: int, data: bytes) -> None:
            self.send_response(code)
            self.send_header("Content-Type", "text/html" if self.path.startswith("/simple") else "application/zip")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(data)

        do_HEAD = do_GET

        def log_message(self, format: str, *args: object) -> None:
            del format, args

    return Handler


@pytest.fixture
def make(tmp_path: Path, table: Catalogue) -> Make:
    """Writes a project's files and reads it."""

    def written(requirements: str = "", **files: str) -> Project:
        folder = tmp_path / "news"
        folder.mkdir(exist_ok=True)
        contents = {"gpuyard.toml": "", "requirements.txt": requirements}
        contents.update({name.replace("_", "."): text for name, text in files.items()})
        for name, text in contents.items():
            (folder / name).write_text(text)
        return definition.load(folder, table)

    return written


def sha256(file: Path) -> str:
    """The checksum that a simple index names beside a file."""
    return hashlib.sha256(file.read_bytes()).hexdigest()
