"""One real Slurm for all of this room's tests, and jobs that are submitted to it."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from gpuyard.render.slurm import Slurm, script
from gpuyard.render.work import Work
from tests.render.slurm.cluster import PROGRAMS, Cluster, cluster, find

Submit = Callable[..., str]
PLAIN = Slurm()
COUNTER = Path(__file__).with_name("counter.py")


@pytest.fixture(scope="session")
def slurm() -> Iterator[Cluster]:
    """A running Slurm; its programs are installed where root may do so."""
    if not all(find(program) for program in PROGRAMS):
        assert os.getuid() == 0, "Slurm is missing. On Debian: sudo apt-get install slurm-wlm munge"
        for words in (["update", "-q"], ["install", "-qy", "--no-install-recommends", "slurm-wlm", "munge"]):
            subprocess.run(["apt-get", *words], check=True, env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"})
    # Not below pytest's own folder, which other users may not enter: jobs run as whoever submits them.
    with tempfile.TemporaryDirectory(prefix="gpuyard-slurm-") as place, cluster(Path(place)) as found:
        yield found


@pytest.fixture
def folder() -> Iterator[Path]:
    """Where a job is submitted from: it holds the counter, and any user may write there."""
    with tempfile.TemporaryDirectory(prefix="gpuyard-job-") as place:
        Path(place).chmod(0o777)
        (Path(place) / COUNTER.name).write_text(COUNTER.read_text())
        yield Path(place)


@pytest.fixture
def submit(slurm: Cluster, folder: Path) -> Submit:
    """Renders a job for a command, submits it, and returns its number."""

    def send(
        *command: str, path: str | None = None, where: Slurm = PLAIN, sbatch: tuple[str, ...] = (), **options: object
    ) -> str:
        small = Work("local/image:test", command, cpus=1, memory=2, shm=1, verify=False)
        (folder / "job.sh").write_text(script(replace(small, **options), where))  # type: ignore[arg-type]
        return slurm.submit(folder / "job.sh", *sbatch, path=path)

    return send
