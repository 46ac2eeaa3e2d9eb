"""Times the start of services in a container against the bare programs in the same image: ``make bench-start``.

Both are timed from Docker's own word that the container runs to the first right answer. Beside them: what all
processes but Jupyter hold in memory when both services are idle.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path

import docker
from docker.models.containers import Container

from gpuyard.catalogue import table
from gpuyard.catalogue.product import find_product
from gpuyard.engine import daemon
from gpuyard.image import build
from tests.entrypoints.conftest import greeting, make_key
from tests.entrypoints.jupyter.web import get

BARE_JUPYTER = ["jupyter", "lab", "--ip=0.0.0.0", "--port=8888", "--no-browser", "--IdentityProvider.token=t"]
SSHD = "/usr/sbin/sshd -D -e -p 2222 -h /tmp/k -o UsePAM=no -o PidFile=none"
BARE_SSHD = ["sh", "-c", f"ssh-keygen -q -t ed25519 -N '' -f /tmp/k && exec {SSHD}"]


@dataclass(frozen=True)
class Figure:
    """Seconds from the container's start to the first answer."""

    service: str
    start: float
    bare: float

    @property
    def on_top(self) -> float:
        """The seconds that our start adds."""
        return self.start - self.bare


@contextlib.contextmanager
def started(client: docker.DockerClient, tag: str, **options: object) -> Iterator[Container]:
    """A container that is removed at the end."""
    container = client.containers.run(tag, detach=True, labels={"io.gpuyard.session": "bench"}, **options)
    try:
        yield container
    finally:
        container.remove(force=True, v=True)


def seconds(container: Container, inside: int, answers: Callable[[int], bool]) -> float:
    """Seconds from the container's start, by Docker's clock, to the first correct answer."""
    container.reload()
    address = next(iter(container.ports[f"{inside}/tcp"]))
    begun = datetime.fromisoformat(container.attrs["State"]["StartedAt"][:26].rstrip("Z") + "+00:00").timestamp()
    end = time.monotonic() + 60
    while time.monotonic() < end:
        with contextlib.suppress(OSError):
            if answers(int(address["HostPort"])):
                return time.time() - begun
        time.sleep(0.01)
    raise SystemExit(f"no answer on port {inside} within 60 s")


def jupyter_answers(port: int) -> bool:
    """Whether JupyterLab serves its own version."""
    return get(f"http://127.0.0.1:{port}/api")[0] == 200


def ssh_answers(port: int) -> bool:
    """Whether an SSH server greets."""
    return greeting(port).startswith(b"SSH-2.0-")


def measure(client: docker.DockerClient, tag: str, rounds: int) -> list[Figure]:
    """The median of several rounds, ours and bare in turn, so that other load slows both."""
    with tempfile.TemporaryDirectory() as folder:
        key = make_key(Path(folder) / "id").public
    cases = (
        ("jupyter", 8888, jupyter_answers, {"GPUYARD_SERVICES": "jupyter"}, BARE_JUPYTER),
        ("ssh", 2222, ssh_answers, {"GPUYARD_SERVICES": "ssh", "SSH_PUBLIC_KEY": key}, BARE_SSHD),
    )
    figures = []
    for name, port, answers, env, bare in cases:
        ports = {f"{port}/tcp": ("127.0.0.1", None)}
        ours: list[float] = []
        theirs: list[float] = []
        for _ in range(rounds):
            with started(client, tag, ports=ports, environment=env) as container:
                ours.append(seconds(container, port, answers))
            with started(client, tag, ports=ports, entrypoint=["/usr/bin/tini", "--"], command=bare) as container:
                theirs.append(seconds(container, port, answers))
        figures.append(Figure(name, statistics.median(ours), statistics.median(theirs)))
    return figures


def idle_memory(client: docker.DockerClient, tag: str) -> float:
    """Memory of all processes but Jupyter in MB; shared pages count once for each process."""
    with tempfile.TemporaryDirectory() as folder:
        env = {"SSH_PUBLIC_KEY": make_key(Path(folder) / "id").public}
    with started(client, tag, ports={"8888/tcp": ("127.0.0.1", None)}, environment=env) as container:
        seconds(container, 8888, jupyter_answers)
        time.sleep(5)
        rows = [line.split() for line in container.exec_run("ps -eo rss=,comm=").output.decode().splitlines()]
    return sum(int(row[0]) for row in rows if row[1] not in ("ps", "jupyter-lab")) / 1024


def main() -> int:
    """Prints the figures, as text or as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="starts of each kind (default: 5)")
    parser.add_argument("--json", action="store_true", help="print JSON only")
    chosen = parser.parse_args()
    wanted = find_product(table.load(), None)
    build.ensure(wanted)
    figures = measure(daemon.client(), wanted.tag, chosen.rounds)
    memory = idle_memory(daemon.client(), wanted.tag)
    if chosen.json:
        found = {figure.service: {**asdict(figure), "on_top": figure.on_top} for figure in figures}
        json.dump({**found, "idle_mb": memory}, sys.stdout, indent=1)
        return 0
    print("service   with gpuyard's start   bare       on top")
    for figure in figures:
        print(f"{figure.service:<10}{figure.start:>10.2f} s {figure.bare:>15.2f} s {figure.on_top:>10.2f} s")
    print(f"idle memory of everything but Jupyter: {memory:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
