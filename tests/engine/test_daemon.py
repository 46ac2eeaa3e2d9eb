"""The engine: used as it is, never installed where that is not ours to do, and its failure shown."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import docker
import pytest

from gpuyard import paths
from gpuyard.engine import daemon
from gpuyard.engine.daemon import Host
from gpuyard.errors import UserError
from gpuyard.image.buildkit import bake_oci
from tests.refusals import refused


@pytest.fixture
def no_engine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No engine answers on the configured socket."""
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")


@pytest.mark.parametrize(
    ("host", "id", "named"),
    [
        (Host(root=False, system="debian", forbidden=False), "engine-not-installable", "install-engine.sh"),
        (Host(root=True, system="fedora", forbidden=False), "engine-not-installable", "fedora"),
        (Host(root=True, system="debian", forbidden=True), "engine-forbidden", "GPUYARD_ENGINE=never"),
    ],
)
def test_installing_is_refused_with_the_commands_for_this_system(host: Host, id: str, named: str) -> None:
    """Not root, another system, or forbidden: one message that says what to do instead."""
    with refused(id, named):
        daemon.refuse_to_install(host)


def test_root_on_debian_may_install() -> None:
    """The case in which we install: nothing is refused."""
    daemon.refuse_to_install(Host(root=True, system="debian", forbidden=False))


def test_a_daemon_that_dies_shows_the_end_of_its_log(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A dockerd that can't start ends in one error with its own last words."""
    fake = tmp_path / "bin" / "dockerd"
    fake.parent.mkdir()
    fake.write_text("#!/bin/sh\necho 'failed to mount overlay: no such device'\nexit 1\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{fake.parent}:{os.environ['PATH']}")
    monkeypatch.setattr(daemon, "LOG", tmp_path / "log")
    monkeypatch.setattr(daemon, "PID", tmp_path / "pid")
    monkeypatch.setattr(daemon, "answers", lambda: False)
    monkeypatch.setattr(Host, "this", classmethod(lambda _: Host(root=True, system="debian", forbidden=False)))
    with refused("engine-start-failed", "no such device"):
        daemon.start()


@pytest.mark.parametrize("where", ["unix:///none.sock", "ssh://127.0.0.1:1", "tcp://127.0.0.1:1"])
def test_an_engine_elsewhere_is_not_replaced_by_one_here(monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    """With DOCKER_HOST, a second daemon on this machine would harm the first: one line instead."""
    monkeypatch.setenv("DOCKER_HOST", where)
    with refused("engine-unreachable", where):
        daemon.start()


def test_an_engine_of_ours_that_hangs_is_not_doubled(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Its process lives and does not answer: the commands that end it and start another."""
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    monkeypatch.setattr(daemon, "PID", tmp_path / "pid")
    (tmp_path / "pid").write_text(str(os.getpid()))
    with refused("engine-hung", os.getpid()):
        daemon.refuse_elsewhere()
    (tmp_path / "pid").write_text("4194305")
    daemon.refuse_elsewhere()


@pytest.mark.usefixtures("no_engine")
def test_the_cli_says_that_no_engine_answers() -> None:
    """`gpuyard engine status` without an engine: one line, exit code 1."""
    command = [sys.executable, "-m", "gpuyard", "engine", "status"]
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=paths.ROOT)
    assert (done.returncode, done.stdout) == (1, "no Docker engine answers\n")


@pytest.mark.usefixtures("no_engine")
def test_never_is_obeyed_by_a_command_that_needs_an_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """With GPUYARD_ENGINE=never, a build ends in one line on stderr and starts nothing."""
    monkeypatch.setenv("GPUYARD_ENGINE", "never")
    command = [sys.executable, "-m", "gpuyard", "build"]
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=paths.ROOT)
    assert done.returncode == 1
    assert done.stderr.startswith("gpuyard: error[engine-forbidden]: ")
    assert len(done.stderr.splitlines()) == 1


def test_an_engine_without_buildx_is_told_how_to_get_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Where BuildKit is needed: the plugin's name, not a failed build."""
    (tmp_path / "docker").write_text("#!/bin/sh\necho \"docker: 'buildx' is not a docker command\" >&2\nexit 1\n")
    (tmp_path / "docker").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(UserError, match="docker-buildx"):
        bake_oci({}, "base", tmp_path / "out")


@pytest.mark.engine
def test_a_running_engine_is_used_as_it_is(docker_client: docker.DockerClient) -> None:
    """Ensuring an engine that answers changes nothing: the same daemon answers afterwards."""
    before = docker_client.info()["ID"]
    daemon.ensure()
    assert docker_client.info()["ID"] == before


@pytest.mark.full
def test_an_older_debian_gets_the_engine_and_nothing_else_of_the_newer(tmp_path: Path) -> None:
    """In a Debian 12 of its own: the newer release gives the engine's packages; libc stays."""
    root = tmp_path / "bookworm"
    made = ["mmdebstrap", "--variant=minbase", "--mode=root", "--include=ca-certificates", "bookworm", str(root)]
    subprocess.run(made, check=True, capture_output=True)
    (root / "scripts").mkdir()
    for name in ("install-engine.sh", "newer-release.sh", "daemon.json"):
        (root / "scripts" / name).write_text((paths.DOCKER / name).read_text())
    (root / "usr/sbin/policy-rc.d").write_text("#!/bin/sh\nexit 101\n")
    (root / "usr/sbin/policy-rc.d").chmod(0o755)
    (root / "etc/resolv.conf").write_text(Path("/etc/resolv.conf").read_text())
    subprocess.run(["chroot", str(root), "bash", "/scripts/install-engine.sh"], check=True, capture_output=True)
    query = ["chroot", str(root), "dpkg-query", "-W", "-f", "${Package} ${Version}\n"]
    listed = subprocess.run(query, check=True, capture_output=True, text=True).stdout
    newer = {line.split()[0] for line in listed.splitlines() if "deb13" in line}
    packages = {line.split()[0] for line in listed.splitlines()}
    assert {"docker.io", "docker-cli", "docker-buildx", "docker-compose"} <= packages
    assert newer <= {"docker.io", "docker-cli", "docker-buildx", "docker-compose", "containerd"}
    assert (root / "etc/docker/daemon.json").exists()
