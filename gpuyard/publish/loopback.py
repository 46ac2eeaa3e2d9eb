"""A registry on this machine, for trying the pipeline: started only if none answers, and left running."""

from __future__ import annotations

import json
import socket
import subprocess
from pathlib import Path

from gpuyard.errors import UserError, warn
from gpuyard.paths import cache_folder
from gpuyard.publish.registry import Repository, ensure_clients, is_loopback
from gpuyard.waiting import until

PROGRAM = "docker-registry"
SECONDS = 10.0


def ensure(repository: Repository) -> int | None:
    """Starts a registry on loopback if none answers there, and returns its process; otherwise None."""
    if answers(repository.host) or not is_loopback(repository.host):
        return None
    ensure_clients([PROGRAM])
    folder = cache_folder() / "registry"
    process = start(folder, repository.host)
    text = (
        f"no registry answered at {repository.host}: started one; its data is in {folder}; stop it with: kill {process}"
    )
    warn("registry-started", text)
    return process


def start(folder: Path, host: str) -> int:
    """Starts a registry, detached, with its data in a folder. Raises UserError with its last words."""
    folder.mkdir(parents=True, exist_ok=True)
    config = {
        "version": "0.1",
        "log": {"level": "warn", "accesslog": {"disabled": True}},
        "storage": {"filesystem": {"rootdirectory": str(folder / "data")}, "delete": {"enabled": True}},
        "http": {"addr": ":".join(address(host))},
    }
    (folder / "config.yml").write_text(json.dumps(config))
    with (folder / "log").open("w") as out:
        command = [PROGRAM, "serve", str(folder / "config.yml")]
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True)
    if until(lambda: answers(host) or process.poll() is not None, SECONDS) and process.poll() is None:
        return process.pid
    process.terminate()
    last = (folder / "log").read_text().strip().splitlines()[-1:] or ["nothing"]
    raise UserError("registry-not-started", f"{PROGRAM} did not start at {host}; it printed: {last[0][:300]}")


def address(host: str) -> tuple[str, str]:
    """Host and port of a registry; 443 without a port."""
    name, _, port = host.rpartition(":")
    return (name, port) if name and port.isdigit() else (host, "443")


def answers(host: str) -> bool:
    """Whether anything listens there."""
    name, port = address(host)
    try:
        with socket.create_connection((name.strip("[]"), int(port)), 2):
            return True
    except OSError:
        return False
