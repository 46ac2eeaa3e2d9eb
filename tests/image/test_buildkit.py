"""The bake definition: generated, complete, and without a secret or an escape from the locks."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from gpuyard import paths
from gpuyard.catalogue.product import Product
from gpuyard.catalogue.table import Catalogue
from gpuyard.engine import daemon
from gpuyard.image import buildkit
from gpuyard.image.buildkit import Inputs
from tests.refusals import refused


@pytest.fixture
def product(table: Catalogue) -> Product:
    return Product(table, table.default_line, "workbench", table.default_os)


@pytest.fixture
def inputs(tmp_path: Path) -> Inputs:
    secret = tmp_path / "ca.pem"
    secret.write_text("trusted")
    return Inputs("bootstrap", tmp_path / "rootfs.tar", tmp_path / "uv", {"ca": secret}, "0" * 40)


def test_the_chain_is_linked_from_the_root_file_system_up(product: Product, inputs: Inputs, tmp_path: Path) -> None:
    """Each image builds on the target of its parent, and only the last one is tagged."""
    targets = buildkit.definition(product, inputs, tmp_path)["target"]
    assert list(targets) == ["rootfs", "base", "cuda", "torch", "workbench"]
    assert targets["torch"]["contexts"]["cuda"] == "target:cuda"
    assert [name for name, target in targets.items() if "tags" in target] == ["workbench"]
    assert targets["workbench"]["tags"] == [product.tag, product.full_tag]


def test_a_registry_base_is_taken_by_digest(product: Product, inputs: Inputs, tmp_path: Path) -> None:
    """Where a registry answers, the base is the catalogue's digest, and its label says so."""
    registry = Inputs("registry", None, inputs.uv, {}, "")
    targets = buildkit.definition(product, registry, tmp_path)["target"]
    assert "@sha256:" in targets["base"]["contexts"]["rootfs"]
    assert targets["workbench"]["labels"]["io.gpuyard.base-origin"] == "registry"


def test_the_certificates_are_a_secret_and_nothing_else(product: Product, inputs: Inputs, tmp_path: Path) -> None:
    """The definition has the host's CA bundle as a secret's path, never in args or labels."""
    for target in buildkit.definition(product, inputs, tmp_path)["target"].values():
        assert "ca.pem" not in json.dumps({k: v for k, v in target.items() if k != "secret"})


def test_a_staged_file_is_a_clean_copy(product: Product, tmp_path: Path) -> None:
    """What a build sees of verify and entrypoints has no byte code; a second staging replaces the first."""
    folder = tmp_path / "stage"
    buildkit.stage(product, folder)
    (folder / "verify" / "left-over").touch()
    buildkit.stage(product, folder)
    assert not list(folder.rglob("*.pyc"))
    assert not (folder / "verify" / "left-over").exists()
    assert json.loads((folder / "claims" / "image.json").read_text())["line"] == product.line


def test_a_commit_changes_no_file_of_an_image(product: Product, inputs: Inputs, tmp_path: Path) -> None:
    """The commit is in one label only, so that it changes no layer."""
    buildkit.stage(product, tmp_path / "stage")
    text = json.dumps(buildkit.definition(product, inputs, tmp_path / "stage"))
    assert text.count(inputs.revision) == 1


def test_no_dockerfile_names_a_version_or_a_frontend() -> None:
    """Versions come from the catalogue as arguments, and no `# syntax=` line needs a registry."""
    for file in paths.IMAGES.glob("*/Dockerfile"):
        text = file.read_text()
        assert "syntax=" not in text
        assert "==" not in text.replace('== "$PYTHON"', "").replace("== 1", "")


@pytest.fixture
def docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stands for the docker command on an engine with the classic store; returns the log of its calls.

    It fails for calls with a word of the file ``refused`` beside the log, and says why on standard error.
    """
    folder = tmp_path / "fake"
    folder.mkdir()
    (folder / "refused").write_text("no such word")
    program = folder / "docker"
    program.write_text(
        '#!/bin/sh\nhere=$(dirname "$0"); echo "$*" >> "$here/log"\n'
        'for word in $(cat "$here/refused"); do case " $* " in *" $word "*) echo "no: $word" >&2; exit 1;; esac; done\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setattr(daemon, "client", lambda: None)
    monkeypatch.setattr(daemon, "content_store", lambda _: False)
    return folder / "log"


def test_the_engines_own_buildkit_is_used_where_it_can(docker: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With containerd's image store nothing is started."""
    monkeypatch.setattr(daemon, "content_store", lambda _: True)
    buildkit.bake_oci({"target": {"base": {}}}, "base", docker.parent / "out")
    assert "--builder" not in docker.read_text()


def test_the_classic_store_gets_a_builder_in_a_container(docker: Path) -> None:
    """Made once: the second build finds it."""
    (docker.parent / "refused").write_text("inspect")
    buildkit.bake_oci({"target": {"base": {}}}, "base", docker.parent / "out")
    assert "buildx create --name gpuyard --driver docker-container --bootstrap" in docker.read_text()
    assert docker.read_text().splitlines()[-1].endswith("base --builder gpuyard")
    (docker.parent / "refused").write_text("create")
    buildkit.bake_oci({"target": {"base": {}}}, "base", docker.parent / "out")


def test_a_builder_that_cannot_start_is_one_line_and_is_removed(docker: Path) -> None:
    """With the reason; the next try starts from nothing."""
    (docker.parent / "refused").write_text("inspect create")
    with refused("builder-unavailable", "no: create"):
        buildkit.bake_oci({"target": {"base": {}}}, "base", docker.parent / "out")
    assert docker.read_text().splitlines()[-1] == "buildx rm --force gpuyard"


def test_a_build_that_fails_has_an_id(docker: Path) -> None:
    """BuildKit's own output is above it."""
    (docker.parent / "refused").write_text("bake")
    with refused("build-failed", "base"):
        buildkit.bake_oci({"target": {"base": {}}}, "base", docker.parent / "out")
