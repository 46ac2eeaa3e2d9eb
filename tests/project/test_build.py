"""A project's image on the real engine, on a small line: what is in it, what an edit costs, and what is refused."""

from __future__ import annotations

import contextlib
import json
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import docker
import pytest
from docker.errors import ImageNotFound

from gpuyard.catalogue.table import Catalogue
from gpuyard.errors import UserError
from gpuyard.image.assemble import Options
from gpuyard.image.build import from_layers
from gpuyard.project import build, files, lock
from gpuyard.project.definition import Project
from gpuyard.store.store import Store
from tests.image import small
from tests.images.index import wheel
from tests.project.conftest import Make

pytestmark = pytest.mark.engine
LOOK = "import leaf, twig, jinja2, os; print(leaf.__version__, os.environ['NEWS'], open('src/model.py').read())"


@pytest.fixture
def project(
    index: Path, make: Make, table: Catalogue, docker_client: docker.DockerClient, tmp_path: Path
) -> Iterator[Project]:
    """A project with two packages on a small line, locked."""
    assert index.is_dir()
    made = make("twig", gpuyard_toml='command = ["python", "train.py"]\nenvironment = { NEWS = "1" }')
    (made.folder / "src").mkdir()
    (made.folder / "src" / "model.py").write_text("one")
    made = replace(made, product=small.product(table, tmp_path / "locks", "gpuyard-small:project", "runtime"))
    lock.write(made)
    yield made
    for tag in (build.tag(made), made.product.tag, made.product.full_tag):
        with contextlib.suppress(ImageNotFound):
            docker_client.images.remove(tag, force=True)


def test_the_image_holds_the_line_the_packages_and_the_files(
    project: Project, docker_client: docker.DockerClient
) -> None:
    """Importable, with the project's variable, command and own labels; an edit changes one layer."""
    store = Store()
    line = from_layers(project.product, Options(), store)
    built = build.build(project, Options(), store)
    said = docker_client.containers.run(built.digest, ["python", "-c", LOOK], remove=True).decode()
    assert said.split() == ["1.1", "1", "one"]
    config = docker_client.images.get(built.digest).attrs["Config"]
    assert config["Cmd"] == ["python", "train.py"]
    labels = config["Labels"]
    assert labels["org.opencontainers.image.title"] == "news"
    assert labels["org.opencontainers.image.base.digest"] == line.digest
    assert labels["org.opencontainers.image.base.name"] == project.product.full_tag
    assert "org.opencontainers.image.source" not in labels
    assert "org.opencontainers.image.revision" not in labels
    claims = docker_client.containers.run(built.digest, ["cat", "/etc/gpuyard/project.json"], remove=True)
    assert json.loads(claims)["packages"] == {"twig": "1.0", "leaf": "1.1"}
    owner = docker_client.containers.run(
        built.digest, ["stat", "-c", "%a %u:%g", "/workspace", "/workspace/src"], remove=True
    )
    assert owner.decode().split() == ["775", "1000:0"] * 2

    assert build.build(project, Options(), store).digest == built.digest
    before = layers(project, store)
    (project.folder / "src" / "model.py").write_text("two")
    after = layers(project, store)
    assert after[:-1] == before[:-1]
    assert after[-1] != before[-1]
    assert before[: len(line.blobs)] == line.blobs


def layers(project: Project, store: Store) -> list[str]:
    """The digests of the image's layers."""
    return build.assemble(project, files.collect(project), store, Options()).blobs


def test_a_wheel_that_overwrites_another_file_is_refused(project: Project, index: Path) -> None:
    """Both are named; no image gets a tag."""
    thief = wheel(index, "thief", "1.0")
    rename_package(thief, "thief/__init__.py", "leaf/__init__.py")
    (project.folder / "requirements.txt").write_text("twig\nthief\n")
    changed = replace(project, requirements=("thief", "twig"))
    lock.write(changed)
    with pytest.raises(UserError) as error:
        build.assemble(changed, files.collect(changed), Store(), Options())
    assert "thief" in str(error.value)
    assert "leaf" in str(error.value)


def rename_package(file: Path, old: str, new: str) -> None:
    """Rewrites a wheel with one of its files under another name."""
    with zipfile.ZipFile(file) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(file, "w") as archive:
        for name, data in contents.items():
            archive.writestr(new if name == old else name, data.replace(old.encode(), new.encode()))


def test_a_stale_lock_builds_nothing(project: Project) -> None:
    """Refused before anything is fetched."""
    with pytest.raises(UserError) as error:
        build.build(replace(project, requirements=("leaf",)), Options())
    assert error.value.id == "project-lock-stale"
