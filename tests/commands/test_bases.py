"""Bases on a real registry: there, removed, silent; copied to a mirror and taken from it."""

from __future__ import annotations

import http.client
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpuyard import paths
from gpuyard.catalogue.product import Product
from gpuyard.catalogue.table import Catalogue, OperatingSystem, Origin
from gpuyard.commands.publishing import bases
from gpuyard.errors import UserError
from gpuyard.image import buildkit, origin
from tests.publish import servers

MANIFEST = "application/vnd.oci.image.manifest.v1+json"


@pytest.fixture(scope="module")
def upstream(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A registry from which manifests can be deleted, as NVIDIA does."""
    with servers.registry(tmp_path_factory.mktemp("upstream"), storage={"delete": {"enabled": True}}) as host:
        yield host


@pytest.fixture(scope="module")
def mirror(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Another registry."""
    with servers.registry(tmp_path_factory.mktemp("mirror")) as host:
        yield host


def push(host: str, name: str, text: str, folder: Path) -> str:
    """A small artifact under that name and tag; its digest."""
    (folder / "file").write_text(text)
    command = ["oras", "push", "--plain-http", "--format", "json", f"{host}/{name}", "file"]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=folder)
    return str(json.loads(done.stdout)["digest"])


def delete(host: str, name: str, digest: str) -> None:
    """Removes a manifest."""
    connection = http.client.HTTPConnection(host)
    connection.request("DELETE", f"/v2/{name}/manifests/{digest}")
    assert connection.getresponse().status == 202


def system(table: Catalogue, image: str, *origins: Origin) -> OperatingSystem:
    """An operating system on that image."""
    row = table.os[table.default_os]
    return row.model_copy(update={"image": image, "origins": origins or ("registry",)})


@pytest.fixture
def there(table: Catalogue, upstream: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> OperatingSystem:
    """A base that the upstream registry has, reached as a mirror of the usual one."""
    monkeypatch.setenv(origin.MIRROR, upstream)
    digest = push(upstream, "some/base:1", str(tmp_path), tmp_path)
    return system(table, f"some/base:1@{digest}")


def test_a_base_that_is_there_resolves(there: OperatingSystem) -> None:
    """By its digest."""
    assert origin.ask(origin.pulled(there.image)) == "there"
    assert origin.choose("x", there, "auto") == "registry"


def test_a_removed_base_names_its_replacement(
    there: OperatingSystem, table: Catalogue, upstream: str, tmp_path: Path
) -> None:
    """Gone is not silent: the message says what was removed and which digest the tag stands for now."""
    digest = there.image.partition("@")[2]
    fresh = push(upstream, "some/base:1", "newer", tmp_path)
    delete(upstream, "some/base", digest)
    with pytest.raises(UserError, match=fresh) as caught:
        origin.choose("x", there, "auto")
    assert caught.value.id == "base-removed"
    delete(upstream, "some/base", fresh)
    with pytest.raises(UserError, match="gpuyard bases --mirror") as caught:
        origin.choose("x", there, "registry")
    assert caught.value.id == "base-removed"
    assert fresh not in str(caught.value)
    assert origin.choose("x", system(table, there.image, "registry", "bootstrap"), "auto") == "bootstrap"


def test_no_answer_is_not_taken_for_removed(table: Catalogue, monkeypatch: pytest.MonkeyPatch) -> None:
    """A network that is down says nothing of what a registry has."""
    monkeypatch.setenv(origin.MIRROR, f"127.0.0.1:{servers.free_port()}")
    with pytest.raises(UserError, match="GPUYARD_MIRROR") as caught:
        origin.choose("x", system(table, "some/base:1@sha256:" + "0" * 64), "registry")
    assert caught.value.id == "base-unreachable"


@pytest.mark.parametrize("value", ["https://host/name", "host name", "host/UPPER"])
def test_a_mirror_that_is_no_registry_is_refused(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line says what was expected."""
    monkeypatch.setenv(origin.MIRROR, value)
    with pytest.raises(UserError, match="GPUYARD_MIRROR") as caught:
        origin.pulled("debian:x@sha256:0")
    assert caught.value.id == "mirror-invalid"


def test_a_copied_base_is_the_same_and_builds_take_it(
    there: OperatingSystem, table: Catalogue, mirror: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mirror has the same digest under the same name; BuildKit is told to pull it there."""
    digest = there.image.partition("@")[2]
    assert bases.copy(there, f"{mirror}/copies", None) == f"{mirror}/copies/some/base@{digest}"
    monkeypatch.setenv(origin.MIRROR, f"{mirror}/copies")
    assert origin.ask(origin.pulled(there.image)) == "there"
    catalogue = table.model_copy(update={"os": {"x": there}})
    product = Product(catalogue, table.default_line, "runtime", "x")
    inputs = buildkit.Inputs("registry", None, Path("uv"), {}, "")
    made = buildkit.definition(product, inputs, Path("/tmp"))["target"]["base"]["contexts"]["rootfs"]
    assert made == f"docker-image://{mirror}/copies/{there.image}"


def test_check_fails_where_a_base_is_gone(
    there: OperatingSystem, table: Catalogue, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """All are shown; the exit code and one line tell the scheduled job."""
    gone = system(table, "some/base:9@sha256:" + "0" * 64)
    monkeypatch.setattr(
        "gpuyard.catalogue.table.load", lambda: table.model_copy(update={"os": {"good": there, "bad": gone}})
    )
    bases.bases()
    with pytest.raises(UserError, match=r"1 of 2 .* bad.*some/base:9") as caught:
        bases.bases(check=True)
    assert caught.value.id == "bases-unresolved"
    said = capsys.readouterr().out
    assert "resolves" in said
    assert "removed" in said


@pytest.mark.parametrize(
    ("image", "name"),
    [
        ("debian:x@sha256:1", "docker.io/library/debian@sha256:1"),
        ("nvidia/cuda:x@sha256:1", "docker.io/nvidia/cuda@sha256:1"),
        ("127.0.0.1:5000/a/b:x@sha256:1", "127.0.0.1:5000/a/b@sha256:1"),
    ],
)
def test_a_short_name_is_dockers(image: str, name: str) -> None:
    """oras wants the whole name where Docker fills it in."""
    assert bases.full(image) == name


def test_every_base_of_the_catalogue_is_named_by_digest() -> None:
    """A tag alone can be moved or deleted under us."""
    for line in paths.CATALOGUE.read_text().splitlines():
        assert not line.startswith("image = ") or "@sha256:" in line
