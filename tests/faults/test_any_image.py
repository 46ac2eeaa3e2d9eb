"""The suite in images that are not ours: without torch, with a swapped torch, and with a torch that works."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest

from gpuyard.acceptance.any_image import command, zip_suite
from gpuyard.engine.start import Gpus

pytestmark = [pytest.mark.image, pytest.mark.full]
SITE = "/opt/venv/lib/python3*/site-packages"
FORGET = f"rm -rf /etc/gpuyard /opt/gpuyard {SITE}/gpuyard.pth"
WITHOUT_TORCH = f"{FORGET} {SITE}/torch {SITE}/torch-*"
SWAPPED = (
    f"{FORGET}; sed -i 's/^cuda.*= .*/cuda = None/' {SITE}/torch/version.py; rm -rf {SITE}/nvidia_cudnn*.dist-info"
)


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The suite as one file that a container's user may read."""
    folder = tmp_path_factory.mktemp("suite")
    for place in (folder, *list(folder.parents)[:2]):
        place.chmod(0o755)
    return zip_suite(folder / "verify.pyz")


@contextlib.contextmanager
def other(client: docker.DockerClient, image: str, name: str, change: str) -> Iterator[str]:
    """An image of somebody else: ours without what makes it ours, changed by a command."""
    container = client.containers.run(image, ["-c", change], entrypoint="sh", user="0", detach=True)
    tag = f"gpuyard-test-other:{name}"
    try:
        assert container.wait(timeout=300)["StatusCode"] == 0, container.logs()
        container.commit("gpuyard-test-other", name, changes=["ENTRYPOINT []"])
        yield tag
    finally:
        container.remove(force=True)
        with contextlib.suppress(docker.errors.DockerException):
            client.images.remove(tag, force=True)


def ask(reference: str, suite: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """What the suite says in the image."""
    line = command(reference, suite, Gpus(), "1g", list(words))
    return subprocess.run(line, capture_output=True, text=True, check=False, timeout=600)


def test_an_image_without_torch_is_told_so_first(docker_client: docker.DockerClient, image: str, suite: Path) -> None:
    """Python is there, torch is not, and nobody claims anything."""
    with other(docker_client, image, "no-torch", WITHOUT_TORCH) as reference:
        ended = ask(reference, suite, "--level", "image")
    assert ended.returncode == 1, ended.stderr
    assert ended.stdout.startswith("The first broken link is one-torch: no torch is installed")


def test_a_swapped_torch_is_seen_without_claims(docker_client: docker.DockerClient, image: str, suite: Path) -> None:
    """A CPU build by its own version file, and a requirement that nobody meets."""
    with other(docker_client, image, "swapped", SWAPPED) as reference:
        ended = ask(reference, suite, "--only", "packages")
    text = " ".join(ended.stdout.split())
    assert ended.returncode == 1, ended.stderr
    assert "is a CPU build" in text
    assert "torch needs nvidia-cudnn" in text


def test_a_plain_image_with_torch_passes(docker_client: docker.DockerClient, image: str, suite: Path) -> None:
    """The good case: torch computes, and what needs claims is skipped, not failed."""
    with other(docker_client, image, "plain", FORGET) as reference:
        ended = ask(reference, suite, "--only", "torch,compute,cuda-copies,needed-libraries")
    assert ended.returncode == 0, ended.stdout
