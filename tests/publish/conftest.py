"""What tests of publishing share: a registry on loopback, keys, and a small verified image to publish."""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gpuyard import paths
from gpuyard.acceptance import reports
from gpuyard.cli import main
from gpuyard.image.source import Source, from_layout
from gpuyard.publish import registry, verified
from gpuyard.publish.publisher import Publication
from gpuyard.publish.registry import Repository
from gpuyard.publish.signing import Signer
from tests.publish import servers, small

SUFFIXES = {"workbench": "", "runtime": "-runtime"}
Ordering = Callable[..., Publication]


@pytest.fixture(autouse=True)
def own_world(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Store and credentials of the test's own, and no waiting between tries."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path / "docker"))
    monkeypatch.setattr(registry, "PAUSE", 0.0)


@pytest.fixture(scope="session")
def storage(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the registry of all tests keeps its data."""
    return tmp_path_factory.mktemp("registry")


@pytest.fixture(scope="session")
def host(storage: Path) -> Iterator[str]:
    """HOST:PORT of a registry for all tests; each uses a repository of its own name."""
    with servers.registry(storage) as running:
        yield running


@pytest.fixture(scope="session")
def repositories(storage: Path) -> Path:
    """The registry's repositories as it keeps them, to be read without asking it."""
    return storage / "data" / "docker" / "registry" / "v2" / "repositories"


@pytest.fixture(scope="session")
def keys(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Two pairs of keys: ours and another's; by name, the private file (the public one ends in .pub)."""
    found = {}
    for name in ("ours", "others"):
        folder = tmp_path_factory.mktemp(name)
        command = ["cosign", "generate-key-pair"]
        env = {**os.environ, "COSIGN_PASSWORD": ""}
        subprocess.run(command, cwd=folder, env=env, check=True, capture_output=True)
        found[name] = folder / "cosign.key"
    return found


@pytest.fixture
def source(tmp_path: Path) -> Source:
    """The small image."""
    small.layout(tmp_path)
    return from_layout(tmp_path / "layout", SUFFIXES)


@pytest.fixture
def ordering(tmp_path: Path, source: Source) -> Ordering:
    """Makes the publication of the small image, verified, at HOST:PORT/NAME."""

    def make(where: str, signer: Signer | None = None, image: Source = source, **options: object) -> Publication:
        written = small.write(tmp_path / "reports", small.report(image.digest, image=image.facts.image["image"]))
        report = verified.require(reports.read(written), image.identities, image.facts.image, "gpuyard verify")
        plain = options.pop("plain_http", None)
        ca_file = options.pop("ca_file", None)
        assert isinstance(plain, bool | None)
        assert isinstance(ca_file, Path | None)
        assert not options
        return Publication(image, report, Repository.parse(where, "", ca_file, plain), image.tags, signer)

    return make


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """A repository's name that no other test uses."""
    return "test/" + hashlib.sha256(request.node.nodeid.encode()).hexdigest()[:16]


def quiet(_text: str) -> None:
    """No-op callback."""


def gpuyard(*words: str, folder: Path = paths.ROOT) -> subprocess.CompletedProcess[str]:
    """The command, as a person runs it in a folder, in this process."""
    out, err = io.StringIO(), io.StringIO()
    code: object = 0
    with contextlib.chdir(folder), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main(list(words))
        except SystemExit as ended:
            code = ended.code or 0
    return subprocess.CompletedProcess(words, int(str(code)), out.getvalue(), err.getvalue())
