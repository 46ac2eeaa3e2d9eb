"""The suite in images that were never ours: Debian with Python 3.9, and a Debian where torch came by plain pip."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest

from gpuyard.acceptance.any_image import FIND, INSIDE, zip_suite
from gpuyard.catalogue.product import Product
from gpuyard.catalogue.table import Catalogue
from gpuyard.packages.fetcher import Fetcher
from gpuyard.packages.locked import read
from gpuyard.store.store import Store

pytestmark = [pytest.mark.image, pytest.mark.full]
NAME = "gpuyard-test-other"
DIAGNOSE = f"set -- --level cpu --json -; {FIND}"


@contextlib.contextmanager
def debian(suite: str, *packages: str) -> Iterator[str]:
    """An image of that release, straight from Debian's archive."""
    tag = f"{NAME}:{suite}"
    make = ["mmdebstrap", "--quiet", "--variant=minbase", "--mode=root", f"--include={','.join(packages)}", suite, "-"]
    with subprocess.Popen(make, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as made:
        subprocess.run(["docker", "import", "-", tag], stdin=made.stdout, check=True, capture_output=True)
    try:
        assert made.returncode == 0
        yield tag
    finally:
        subprocess.run(["docker", "image", "rm", "--force", tag], check=False, capture_output=True)


def gpuyard(*words: str) -> subprocess.CompletedProcess[str]:
    """The command as users call it."""
    command = [".venv/bin/gpuyard", "verify", *words, "--gpus", "none"]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)


def test_python_3_9_is_enough(docker_client: docker.DockerClient, tmp_path: Path) -> None:
    """`gpuyard verify --image REF` on an old Debian: every probe runs, and the first broken link is torch's absence."""
    with debian("bullseye", "python3") as reference:
        ended = gpuyard("--image", reference)
        assert ended.returncode == 1, ended.stderr
        assert ended.stdout.startswith("The first broken link is one-torch: no torch is installed for this Python")
        suite = zip_suite(tmp_path / "verify.pyz")
        tmp_path.chmod(0o755)
        mount = {str(suite): {"bind": INSIDE, "mode": "ro"}}
        said = docker_client.containers.run(
            reference, ["-c", f"({DIAGNOSE}) 2>/dev/null; true"], entrypoint="sh", volumes=mount, remove=True
        )
        asked = docker_client.containers.run(reference, ["python3", INSIDE, "env"], volumes=mount, remove=True)
    report = json.loads(said)
    assert report["host"]["python"].startswith("3.9.")
    assert report["counts"]["unknown"] == 0, [f for f in report["findings"] if f["status"] == "unknown"]
    assert b"python     3.9." in asked


@pytest.fixture
def wheels(table: Catalogue, tmp_path: Path) -> Path:
    """The wheels of torch and all it needs, as pip would find them on an index."""
    product = Product(table, table.default_line, "workbench", table.default_os)
    fetcher = Fetcher(Store(), product.python)
    for layer in ("cuda", "torch"):
        for locked in read(product.locks.path(layer)):
            found = fetcher.ensure(locked).path
            os.link(found, tmp_path / found.name)
    tmp_path.chmod(0o755)
    return tmp_path


def test_torch_by_plain_pip_is_diagnosed_link_by_link(
    docker_client: docker.DockerClient, wheels: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """`pip install torch` into the system's Python: computing passes, and what such images lack is named."""
    suite = zip_suite(tmp_path_factory.mktemp("suite") / "verify.pyz")
    install = "pip install -q --break-system-packages --no-compile --no-index --find-links /wheels torch numpy >&2"
    mounts = {str(wheels): {"bind": "/wheels", "mode": "ro"}, str(suite): {"bind": INSIDE, "mode": "ro"}}
    with debian("trixie", "python3", "python3-pip") as reference:
        container = docker_client.containers.run(
            reference,
            ["-c", f"{install} && ({DIAGNOSE})"],
            entrypoint="sh",
            volumes=mounts,
            detach=True,
            shm_size="1g",
        )
        try:
            container.wait(timeout=600)
            report = json.loads(container.logs(stdout=True, stderr=False))
        finally:
            container.remove(force=True, v=True)
    status = {found["check"]: found["status"] for found in report["findings"]}
    good = ("one-torch", "cuda-majors", "needed-libraries", "cuda-copies", "torch-import", "loaded-libraries")
    assert [status[check] for check in (*good, "matmul-cpu", "operators-cpu", "gloo-two-ranks", "train-rnn")] == [
        "pass"
    ] * 10, report["result"]
    assert {status[check] for check in ("lock", "torch-versions", "image-env", "python")} == {"skip"}
    assert status["compiler"] == "fail"
    assert status["torch-compile"] == "skip"
    assert report["result"]["verdict"].startswith("The first broken link is compiler: C: not found, C++: not found")
