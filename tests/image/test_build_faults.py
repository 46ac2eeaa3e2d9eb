"""A build that is killed, doubled, or runs out of disk: the next one completes, nothing wrong is used."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from gpuyard import paths
from gpuyard.store.store import Store, sha256_of
from tests.layers.wheels import make

KILLS = 20


class Quiet(SimpleHTTPRequestHandler):
    """Serves files without a word."""

    def log_message(self, format: str, *args: object) -> None:
        del format, args


@dataclass(frozen=True)
class World:
    """An index of a dozen wheels, two of them big, and a lock of them."""

    lock: Path
    index: str

    def start(self, store: Path) -> subprocess.Popen[str]:
        """A build, as a process."""
        command = [sys.executable, "-m", "tests.image.build_small", str(store), str(self.lock), self.index]
        pipe = subprocess.PIPE
        return subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, cwd=paths.ROOT)

    def build(self, store: Path) -> list[str]:
        """The digests of a build that completes."""
        process = self.start(store)
        out, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
        return out.split()


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """The same for all tests here."""
    root, noise = tmp_path_factory.mktemp("world"), random.Random(1)
    lines = []
    for number in range(12):
        name, size = f"sample{number}", 21_000_000 if number < 2 else 100_000
        wheel = make(root / "simple" / name, name, files={f"{name}/data.bin": noise.randbytes(size)})
        page = f'<a href="{wheel.path.name}#sha256={wheel.sha}">{wheel.path.name}</a>'
        (root / "simple" / name / "index.html").write_text(page)
        lines.append(f"{name}==1.0 \\\n    --hash=sha256:{wheel.sha}\n")
    (root / "lock.txt").write_text("".join(lines))
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(root)))
    Thread(target=server.serve_forever, daemon=True).start()
    yield World(root / "lock.txt", f"http://127.0.0.1:{server.server_port}/simple/")
    server.shutdown()


def wrong(folder: Path) -> list[str]:
    """Files of a store whose content is not what their name says."""
    store = Store(folder)
    blobs = [path for path in (folder / "blobs").glob("*") if sha256_of(path) != path.name]
    wheels = [path for path in (folder / "wheels").glob("*/*.whl") if sha256_of(path) != path.parent.name]
    records = [path for path in (folder / "layers").glob("*.json") if store.record("layers", path.stem) is None]
    return [str(path) for path in (*blobs, *wheels, *records)]


@pytest.mark.full
def test_a_build_killed_at_any_moment_completes_the_next_time(world: World, tmp_path: Path) -> None:
    """Twenty kills at random moments: never is a wrong file under its final name, and the end is the same."""
    expected = world.build(tmp_path / "whole")
    moments = random.Random(2)
    for _ in range(KILLS):
        process = world.start(tmp_path / "killed")
        time.sleep(moments.uniform(0.2, 2.5))
        process.kill()
        process.communicate()
        assert wrong(tmp_path / "killed") == []
    assert world.build(tmp_path / "killed") == expected


def test_two_builds_at_once_share_a_store(world: World, tmp_path: Path) -> None:
    """Both complete, with the same layers, and no file is fetched or made in two halves."""
    with ThreadPoolExecutor(2) as pool:
        one, other = pool.map(world.build, [tmp_path / "shared"] * 2)
    assert one == other
    assert wrong(tmp_path / "shared") == []


def test_a_full_disk_is_no_end(world: World, tmp_path: Path) -> None:
    """The build fails with the system's words; with room, the next one completes from what is there."""
    small = tmp_path / "small"
    small.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=50m", "tmpfs", str(small)], check=False)
    if mounted.returncode:
        pytest.skip("mounting a small file system needs root")
    try:
        process = world.start(small)
        _, err = process.communicate(timeout=120)
        assert process.returncode != 0
        assert "No space left on device" in err
        assert wrong(small) == []
        subprocess.run(["mount", "-o", "remount,size=200m", str(small)], check=True)
        assert world.build(small) == world.build(tmp_path / "whole")
    finally:
        subprocess.run(["umount", "--lazy", str(small)], check=True)
