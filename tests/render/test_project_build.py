"""A fresh project, built and run as its README says."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gpuyard.render.project import create, files

pytestmark = [pytest.mark.full, pytest.mark.image]
NAME = f"gpuyard-test-new-{os.getpid()}"
Compose = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory, image: str) -> Path:
    """The project, in a folder that the container's user may read."""
    place = tmp_path_factory.mktemp("new") / NAME
    create(place, files(NAME, image))
    (place / "src").mkdir()
    (place / "src" / "model.py").write_text("NAME = 'in the image'\n")
    place.parent.chmod(0o755)
    return place


@pytest.fixture(scope="module")
def compose(project: Path) -> Iterator[Compose]:
    """docker compose in the project; its image and volumes are removed at the end."""

    def call(*words: str) -> subprocess.CompletedProcess[str]:
        command = ["docker", "compose", "--profile", "cpu", *words]
        return subprocess.run(command, cwd=project, capture_output=True, text=True, timeout=300, check=False)

    built = call("build")
    assert built.returncode == 0, built.stderr
    try:
        yield call
    finally:
        call("down", "--volumes", "--rmi", "all")


def test_it_trains_and_resumes_from_its_checkpoint(compose: Compose) -> None:
    """Three epochs, then five: the second run begins with the fourth, and the loss has fallen."""
    first = compose("run", "--rm", "cpu", "python", "train.py", "--epochs", "3")
    assert first.returncode == 0, first.stderr
    second = compose("run", "--rm", "cpu", "python", "train.py", "--epochs", "5")
    assert second.stdout.splitlines()[0] == "resumes after epoch 3"
    losses = [float(line.split()[3]) for line in (first.stdout + second.stdout).splitlines() if "loss" in line]
    assert len(losses) == 5
    assert losses[-1] < losses[0] / 2


@pytest.mark.usefixtures("compose")
def test_the_image_alone_holds_the_project_and_says_whose_it_is() -> None:
    """Without the folder mounted, sources in folders are there; its labels are its own."""
    command = ["docker", "run", "--rm", NAME, "python", "-c", "import src.model; print(src.model.NAME)"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout.splitlines()[-1] == "in the image", done.stderr
    form = "{{json .Config.Labels}}"
    asked = subprocess.run(["docker", "image", "inspect", NAME, "--format", form], capture_output=True, check=True)
    labels = json.loads(asked.stdout)
    assert labels["org.opencontainers.image.title"] == NAME
    assert labels["org.opencontainers.image.revision"] == ""


def test_verify_knows_the_new_image_as_whole(compose: Compose) -> None:
    """What CI asks: the image is what it claims to be, and shared memory is enough."""
    asked = compose("run", "--rm", "cpu", "verify", "--level", "image", "--require", "image", "--quiet")
    assert asked.returncode == 0, asked.stdout


def test_a_requirement_that_swaps_torch_fails_the_build(compose: Compose, project: Path) -> None:
    """The image's constraints hold for a project's requirements too."""
    (project / "requirements.txt").write_text("torch==9.9.9\n")
    try:
        built = compose("build")
    finally:
        (project / "requirements.txt").write_text("")
    assert built.returncode != 0
    said = (built.stdout + built.stderr).lower()
    assert "conflict" in said or "no matching distribution" in said, said
