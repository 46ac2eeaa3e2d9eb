"""The Docker engine: used as it is where one answers, installed and started by gpuyard where none does."""

from __future__ import annotations

import os
import platform
import shutil
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import docker

from gpuyard import paths
from gpuyard.errors import UserError
from gpuyard.process import log, run
from gpuyard.waiting import until

INSTALLER = paths.DOCKER / "install-engine.sh"
LOG = Path("/var/log/gpuyard-dockerd.log")
PID = Path("/run/gpuyard-dockerd.pid")
FORBID = "GPUYARD_ENGINE"
"""Set to ``never``, this environment variable forbids installing or starting an engine."""


@dataclass(frozen=True)
class Host:
    """What decides whether we may install an engine here."""

    root: bool
    system: str
    forbidden: bool

    @classmethod
    def this(cls) -> Host:
        try:
            system = platform.freedesktop_os_release()["ID"]
        except OSError:
            system = platform.system().lower()
        return cls(os.geteuid() == 0, system, os.environ.get(FORBID, "").lower() == "never")


def client() -> docker.DockerClient:
    """A client of the engine that answers. Raises UserError if none does."""
    try:
        engine = docker.from_env(timeout=600)
        engine.ping()
    except Exception as error:  # behind ssh:// it is the SSH library's, of several kinds
        raise UserError(
            "engine-unreachable", f"no Docker engine answers ({_first_line(error)}). Run: gpuyard engine start"
        ) from error
    return engine


def answers() -> bool:
    """Whether an engine answers on the configured socket."""
    try:
        client().close()
    except UserError:
        return False
    return True


def ensure() -> None:
    """An engine answers, or UserError says exactly what to do.

    A running engine is never reconfigured. Without one, and only as root on Debian or Ubuntu and
    unless ``GPUYARD_ENGINE=never``, one is installed and started.
    """
    if not answers():
        start()


def ensure_buildx() -> None:
    """Checks that the buildx plugin is installed. Raises UserError that says how to get it."""
    run(["docker", "buildx", "version"], hint="Install the buildx plugin of your Docker engine (docker-buildx).")


def content_store(client: docker.DockerClient) -> bool:
    """Whether the engine keeps images as containerd does: by manifest, blobs as they came."""
    status = client.info().get("DriverStatus") or []
    return ["driver-type", "io.containerd.snapshotter.v1"] in status


def start() -> None:
    """Installs an engine if there is none, starts it detached, waits until it answers."""
    if answers():
        return
    host = Host.this()
    if not host.forbidden:
        refuse_elsewhere()
    refuse_to_install(host)
    if shutil.which("dockerd") is None:
        log.warning("no Docker engine on this machine: installing one (docker/install-engine.sh)")
        run(["bash", str(INSTALLER)], hint="The engine could not be installed.")
    _launch()


def refuse_elsewhere() -> None:
    """Raises UserError where an engine that we start would not be the one that was asked for, or would harm another."""
    if where := os.environ.get("DOCKER_HOST"):
        raise UserError(
            "engine-unreachable",
            f"no Docker engine answers at DOCKER_HOST={where}. Start that one, or unset DOCKER_HOST to use ours",
        )
    pid = PID.read_text().strip() if PID.exists() else ""
    if pid and Path("/proc", pid, "exe").exists():
        raise UserError(
            "engine-hung",
            f"the engine that gpuyard started (process {pid}) runs but does not answer; its log is "
            f"{LOG}. Run: gpuyard engine stop, then gpuyard engine start",
        )


def refuse_to_install(host: Host) -> None:
    """Raises UserError, with the commands for this system, where we may not install an engine."""
    if host.forbidden:
        raise UserError(
            "engine-forbidden",
            f"no Docker engine answers, and {FORBID}=never forbids starting one: start yours and run again",
        )
    if host.system not in ("debian", "ubuntu"):
        raise UserError(
            "engine-not-installable",
            f"no Docker engine answers, and gpuyard installs one on Debian and Ubuntu only (this is {host.system}). "
            "Install Docker with buildx and compose (docs.docker.com/engine/install), start it, and run again",
        )
    if not host.root:
        raise UserError(
            "engine-not-installable",
            f"no Docker engine answers, and installing one needs root. Run:  sudo bash {INSTALLER} && "
            "sudo systemctl start docker && sudo usermod -aG docker $USER && newgrp docker",
        )


def stop() -> bool:
    """Stops the engine that we started; leaves any other alone. Returns whether there was one."""
    if not PID.exists():
        return False
    pid = int(PID.read_text())
    try:
        os.kill(pid, signal.SIGTERM)
        until(lambda: not Path(f"/proc/{pid}").exists(), 30)
    except ProcessLookupError:
        pass
    PID.unlink(missing_ok=True)
    return True


def status() -> dict[str, Any]:
    """What answers: version, store, root, CDI, and whether we started it. Empty if nothing does."""
    if not answers():
        return {}
    info = client().info()
    return {
        "version": info["ServerVersion"],
        "architecture": info["Architecture"],
        "image store": info["Driver"],
        "data": info["DockerRootDir"],
        "CDI folders": ", ".join(info.get("CDISpecDirs") or []) or "off",
        "started by": "gpuyard" if PID.exists() else "the system",
    }


def disk_sizes(client: docker.DockerClient) -> dict[str, int]:
    """What each image takes on the engine's disk, by its id, as ``docker images`` shows it."""
    return {str(entry["Id"]): int(entry["Size"]) for entry in client.api.images(all=True)}


def _launch() -> None:
    # Of an engine that was killed: its number may be another process's by now, and dockerd would refuse.
    PID.unlink(missing_ok=True)
    with LOG.open("w") as output:
        daemon = subprocess.Popen(
            ["dockerd", "--pidfile", str(PID)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    if until(lambda: answers() or daemon.poll() is not None, 60) and answers():
        return
    if daemon.poll() is None:
        daemon.terminate()
    tail = "\n".join(LOG.read_text().splitlines()[-10:])
    raise UserError("engine-start-failed", f"the Docker engine did not come up; the end of {LOG}:\n{tail}")


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0][:160]
