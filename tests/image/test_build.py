"""Building: what is refused before anything is built."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import docker
import pytest

from gpuyard import indexes, paths
from gpuyard.catalogue.product import find_product
from gpuyard.catalogue.table import Catalogue
from gpuyard.engine import daemon
from gpuyard.image import build, buildkit, load, origin
from gpuyard.packages.fetcher import Fetcher
from gpuyard.store import usage
from tests.refusals import refused


def gpuyard(*words: str) -> subprocess.CompletedProcess[str]:
    """Runs the CLI as a user would."""
    command = [sys.executable, "-m", "gpuyard", *words]
    return subprocess.run(command, check=False, capture_output=True, text=True, cwd=paths.ROOT)


def test_an_unknown_line_is_one_line_and_exit_2() -> None:
    """The CLI names the known lines and ends with 2, without a traceback."""
    done = gpuyard("build", "3.1")
    assert done.returncode == 2
    assert done.stderr.startswith("gpuyard: error[line-unknown]: unknown line '3.1'.")
    assert len(done.stderr.splitlines()) == 1


def test_an_inner_layer_is_not_a_product(table: Catalogue) -> None:
    """`--target torch` is refused: only images with a tag can be asked for."""
    with refused("image-inner", "torch", "runtime, workbench", code=2):
        find_product(table, None, "torch")


def test_an_unknown_operating_system_is_refused(table: Catalogue) -> None:
    """The refusal names the declared ones."""
    with refused("os-unknown", "alpine", "debian-13", code=2):
        find_product(table, None, os="alpine")


@pytest.mark.parametrize("architecture", ["aarch64", "arm64"])
def test_arm64_is_refused_in_one_line(architecture: str) -> None:
    """Declared, not supported yet."""
    with refused("platform-unsupported", architecture):
        build.refuse_platform(architecture)


def test_x86_64_is_accepted() -> None:
    """The platform that is built."""
    build.refuse_platform("x86_64")


def test_a_full_disk_is_refused_with_the_figure(tmp_path: Path) -> None:
    """The message says what is free, what is needed, and how to free some."""
    with refused("disk-space", tmp_path, "100000000 GB", "gpuyard clean"):
        usage.require({tmp_path: 1e8})


def test_folders_of_one_disk_count_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Engine and store usually share a disk: each alone would fit, both do not; one that isn't there yet counts."""
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(100, 0, int(10e9)))
    needs = {tmp_path: 6.0, tmp_path / "not" / "yet": 6.0}
    for folder, gigabytes in needs.items():
        usage.require({folder: gigabytes})
    with refused("disk-space", "10.0 GB", "12 GB"):
        usage.require(needs)


@pytest.mark.engine
def test_a_build_without_room_ends_before_it_begins(
    table: Catalogue, docker_client: docker.DockerClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both builders refuse at once, with the figure, and the engine has no new image."""
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(100, 0, int(1e9)))
    before = {str(image.id) for image in docker_client.images.list(all=True)}
    builders: tuple[build.Builder, ...] = ("dockerfile", "layers")
    for builder in builders:
        with refused("disk-space", "1.0 GB"):
            build.build(find_product(table, None), builder=builder)
    assert {str(image.id) for image in docker_client.images.list(all=True)} == before


@pytest.mark.parametrize(
    ("there", "builder", "wheels", "gigabytes"),
    [
        ((), "layers", False, 22),
        ((), "dockerfile", False, 24),
        (("runtime",), "layers", False, 13),
        (("runtime",), "layers", True, 6),
        (("workbench",), "layers", True, 3),
    ],
)
def test_what_is_there_already_needs_no_room(
    table: Catalogue,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    there: tuple[str, ...],
    builder: build.Builder,
    wheels: bool,
    gigabytes: int,
) -> None:
    """Another image of the line has most of the layers, and stored wheels are not fetched again."""
    product = find_product(table, None)
    tags = [find_product(table, None, name).full_tag for name in there]
    asked: dict[Path, float] = {}
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(daemon, "client", lambda: Mock(info=lambda: {"DockerRootDir": str(tmp_path)}))
    monkeypatch.setattr(load, "has", lambda _, name: name in tags)
    monkeypatch.setattr(Fetcher, "promised", lambda *_: Mock(path=tmp_path) if wheels else None)
    monkeypatch.setattr(usage, "require", asked.update)
    build.refuse_full_disk(product, builder)
    assert sum(asked.values()) == gigabytes


def test_a_base_origin_that_is_not_declared_is_refused(table: Catalogue) -> None:
    """An nvidia/cuda base can't be bootstrapped, and the refusal says what is declared."""
    name, system = next((n, s) for n, s in table.os.items() if "bootstrap" not in s.origins)
    with refused("base-not-declared", name, "bootstrap", "registry"):
        origin.choose(name, system, "bootstrap")


def test_dry_run_builds_nothing_and_names_the_tags(table: Catalogue) -> None:
    """`build --dry-run` prints what would be built."""
    done = gpuyard("build", "--dry-run")
    assert done.returncode == 0
    assert done.stdout.startswith(table.tag(table.default_line, "workbench"))


def test_uv_is_pointed_at_the_indexes_of_pip(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mirror of pip's configuration is uv's default index; local folders can't reach a build."""
    monkeypatch.delenv("UV_DEFAULT_INDEX", raising=False)
    monkeypatch.setenv("PIP_INDEX_URL", "https://mirror.example/simple")
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "file:///wheels https://second.example/simple")
    urls = indexes.indexes()
    assert urls == ["https://mirror.example/simple", "https://second.example/simple"]
    assert indexes.uv_environment(urls)["UV_DEFAULT_INDEX"] == urls[0]
    assert indexes.uv_configuration(urls).count("default = true") == 1


def test_the_first_certificate_variable_that_is_a_file_wins(tmp_path: Path) -> None:
    """A variable that points nowhere is passed over."""
    bundle = tmp_path / "ca.pem"
    bundle.touch()
    assert indexes.ca_bundle({"SSL_CERT_FILE": "/nowhere", "PIP_CERT": str(bundle)}) == bundle


@pytest.mark.image
def test_a_build_that_fails_leaves_the_tag_as_it_was(image: str, table: Catalogue) -> None:
    """No half-made image under a real tag: the last layer breaks, and the tag still names the old image."""
    wanted = find_product(table, None)
    before = build.describe(wanted, 0).digest
    file = paths.BUILD / f"{wanted.line}-{wanted.image}" / "docker-bake.json"
    shutil.rmtree(file.parent / "claims")
    (file.parent / "claims").mkdir()
    (file.parent / "entrypoints" / "verify").unlink()
    (file.parent / "entrypoints").rename(file.parent / "elsewhere")
    (file.parent / "entrypoints").mkdir()
    with refused("build-failed"):
        buildkit.bake(file, wanted.image)
    assert build.describe(wanted, 0).digest == before
    assert image == wanted.tag
