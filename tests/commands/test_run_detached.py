"""`gpuyard run --detach` on the real image: the link works when the command returns, or the reason is there."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest
import requests

from gpuyard import paths
from gpuyard.acceptance.local import HTTP
from tests.publish.servers import free_port

pytestmark = pytest.mark.image
NAME = "gpuyard-test-detached"


@pytest.fixture
def name(docker_client: docker.DockerClient, image: str) -> Iterator[str]:
    """A name under which nothing is left."""
    assert image
    yield NAME
    for container in docker_client.containers.list(all=True, filters={"name": NAME}):
        container.remove(force=True, v=True)


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """`gpuyard run --detach` in a folder."""
    command = [sys.executable, "-m", "gpuyard", "run", "--detach", "--gpus", "none", "--shm-size", "256m", *words]
    env = {"PYTHONPATH": str(paths.ROOT), "PATH": "/usr/local/bin:/usr/bin:/bin"}
    return subprocess.run(command, check=False, capture_output=True, text=True, cwd=folder, env=env)


def test_the_printed_link_works_at_once(name: str, tmp_path: Path) -> None:
    """It holds the token, and names the port of this host; the log's warnings and commands stand beside it."""
    done = run(tmp_path, "--name", name, "--jupyter-port", str(port := free_port()))
    assert done.returncode == 0, done.stderr
    (link,) = re.findall(r"http://\S+token=\S+", done.stderr)
    assert f":{port}/" in link
    assert HTTP.get(link.replace("/lab?", "/api/status?"), timeout=5).status_code == requests.codes.ok
    assert f"docker logs -f {name}" in done.stderr


def test_a_container_that_ends_at_once_says_why(name: str, tmp_path: Path) -> None:
    """The end of its log, and an exit code that a script sees."""
    done = run(tmp_path, "--name", name, "--jupyter-port", str(free_port()), "-e", "JUPYTER_TOKEN=a b")
    assert done.returncode == 1
    assert f"error[container-ended]: container {name}" in done.stderr
    assert "token" in done.stderr


def test_here_in_a_folder_that_cannot_be_written_is_refused(name: str, tmp_path: Path) -> None:
    """Before anything starts, with the command that helps."""
    (folder := tmp_path / "roots").mkdir(mode=0o755)
    done = run(folder, "--name", name, "--here")
    assert done.returncode == 1
    assert f"error[here-not-writable]: --here: the container's user cannot write to {folder}" in done.stderr
    assert f"chown 1000:1000 {folder}" in done.stderr
