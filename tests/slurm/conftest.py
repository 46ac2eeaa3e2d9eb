"""One real Slurm for all of this room's tests, and jobs that are submitted to it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from gpuyard.render.slurm import Slurm, script
from gpuyard.render.work import Work
from tests.slurm.cluster import PROGRAMS, Cluster, cluster, find

Submit = Callable[..., str]
COUNTER = Path(__file__).with_name("counter.py")


@pytest.fixture(scope="session")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A running Slurm; its programs are installed where root may do so."""
    if not all(find(program) for program in PROGRAMS):
        assert os.getuid() == 0, "Slurm is missing. On Debian: sudo apt-get install slurm-wlm munge"
        for words in (["update", "-q"], ["install", "-qy", "--no-install-recommends", "slurm-wlm", "munge"]):
            subprocess.run(["apt-get", *words], check=True, env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"})
    with cluster(tmp_path_factory.mktemp("slurm")) as found:
        yield found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where a job is submitted from: it holds the counter, and any user may write there."""
    tmp_path.chmod(0o777)
    (tmp_path / COUNTER.name).write_text(COUNTER.read_text())
    return tmp_path


@pytest.fixture
def submit(slurm: Cluster, folder: Path) -> Submit:
    """Renders a job for a command, submits it, and returns its number."""

    def send(*command: str, path: str | None = None, engine: str = "docker", on: str = "", **options: object) -> str:
        small = Work("local/image:test", command, cpus=1, memory=1, shm=1, verify=False)
        options = {"memory": 2, **options}
        job = script(replace(small, **options), Slurm(engine, env=("STEPS",)))  # type: ignore[arg-type]
        (folder / "job.sh").write_text(job)
        return slurm.submit(folder / "job.sh", *([f"--nodelist={on}"] if on else []), path=path)

    return send
