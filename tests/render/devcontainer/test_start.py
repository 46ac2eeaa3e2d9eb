"""The rendered file, started by the Dev Containers CLI on the local engine."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest

from gpuyard import paths
from gpuyard.render.devcontainer import Editor, configuration
from gpuyard.render.pods import HEALTH
from gpuyard.waiting import until

pytestmark = [pytest.mark.full, pytest.mark.image]
LOCK = Path(__file__).with_name("cli")
PLACE = paths.ROOT / ".cache" / "devcontainer"
NAME = "gpuyard-test-editor"


@pytest.fixture(scope="module")
def cli() -> Path:
    """The CLI, by the lock's hashes."""
    npm = shutil.which("npm")
    assert npm, "npm is missing. On Debian: sudo apt-get install npm"
    PLACE.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(LOCK / name, PLACE / name)
    subprocess.run([npm, "ci", "--silent", "--no-audit", "--no-fund", "--prefix", PLACE], check=True, timeout=300)
    return PLACE / "node_modules" / ".bin" / "devcontainer"


@pytest.fixture(scope="module")
def folder(
    tmp_path_factory: pytest.TempPathFactory, cli: Path, image: str, docker_client: docker.DockerClient
) -> Iterator[Path]:
    """A project folder whose container is up; the container and its volumes are removed at the end."""
    place = tmp_path_factory.mktemp("editor")
    # As a folder of the reader's own is: the container's user may look into it.
    place.chmod(0o755)
    (place / "mine.txt").write_text("from the host")
    (place / ".devcontainer").mkdir()
    (place / ".devcontainer" / "devcontainer.json").write_text(configuration(Editor(image, NAME)))
    up = call(cli, "up", place, "--skip-non-blocking-commands")
    try:
        said = json.loads(up.stdout.strip().splitlines()[-1])
        assert said["outcome"] == "success", up.stderr
        yield place
    finally:
        found = docker_client.containers.list(all=True, filters={"label": f"devcontainer.local_folder={place}"})
        for container in found:
            container.remove(force=True, v=True)
        for volume in docker_client.volumes.list(filters={"name": NAME}):
            volume.remove(force=True)


def call(cli: Path, verb: str, place: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """What the CLI says to a command about this folder."""
    command = [str(cli), verb, "--workspace-folder", str(place), *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def test_an_editor_gets_trainer_the_folder_and_torch(cli: Path, folder: Path) -> None:
    """The user is trainer, its folder is the project's, and the Python that extensions are told of has torch."""
    words = "id -un; cat mine.txt; echo; /opt/venv/bin/python -c 'import torch; print(torch.ones(2).sum().item())'"
    said = call(cli, "exec", folder, "sh", "-c", words)
    assert said.stdout.split("\n")[:3] == ["trainer", "from the host", "2.0"]


def test_the_images_own_start_ran(cli: Path, folder: Path) -> None:
    """JupyterLab answers, and the shared memory is the file's."""
    answers = until(lambda: "jupyter answer" in call(cli, "exec", folder, HEALTH).stdout, seconds=60)
    size = call(cli, "exec", folder, "df", "-m", "--output=size", "/dev/shm")
    assert (answers, size.stdout.split()[-1]) == (True, "8192")


def test_the_volumes_can_be_written(cli: Path, folder: Path) -> None:
    """Data and models outlive the container, and trainer may write there."""
    said = call(cli, "exec", folder, "sh", "-c", "touch /mnt/data/x /mnt/models/x && echo written")
    assert said.stdout.strip() == "written"
