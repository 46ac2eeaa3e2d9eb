"""A batch script for Slurm: judges the nodes, runs the command in the image, saves and queues again in time."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from typing import Literal, get_args

from gpuyard.catalogue.table import unknown
from gpuyard.errors import UsageError
from gpuyard.render.text import text
from gpuyard.render.work import Work, check

Engine = Literal["docker", "pyxis", "apptainer"]
ENGINES: tuple[str, ...] = get_args(Engine)

_TIME = re.compile(r"\d+|(\d+-)?\d{1,2}:\d\d(:\d\d)?")
_WORD = re.compile(r"[\w.,@-]*")
_PATH = r"/[^:,\"$`\\\n]*"
_VOLUME = re.compile(rf"{_PATH}:{_PATH}(:ro|:rw)?")
_ENV = re.compile(r"[A-Za-z_]\w*(=[^\n]*)?")
# A local tag means Docker's own store to Docker, and Docker Hub to the others.
_HOW = {
    "pyxis": "a registry's (registry#owner/name:tag) or a file from: enroot import -o FILE.sqsh dockerd://{tag}",
    "apptainer": "docker://REFERENCE or a file from: apptainer build FILE.sif docker-daemon://{tag}",
}


@dataclass(frozen=True)
class Slurm:
    """What only Slurm has. ``warning`` is how many seconds before the end the command is told to save."""

    engine: str = "docker"
    time: str = "1:00:00"
    warning: int = 120
    partition: str = ""
    account: str = ""
    volumes: tuple[str, ...] = ()
    env: tuple[str, ...] = ()


def script(work: Work, slurm: Slurm) -> str:
    """The batch script. Raises UsageError for what Slurm or the engine would refuse."""
    check(work)
    _check(slurm)
    if slurm.engine != "docker" and "/" not in work.image and "#" not in work.image:
        raise UsageError(f"--image {work.image}: {slurm.engine} needs {_HOW[slurm.engine].format(tag=work.image)}")
    return text("slurm/job.sh.j2", work=work, slurm=slurm, srun=_srun(work, slurm))


def _check(slurm: Slurm) -> None:
    if slurm.engine not in ENGINES:
        raise UsageError(unknown("engine", slurm.engine, ENGINES))
    if not _TIME.fullmatch(slurm.time):
        raise UsageError(f"--time {slurm.time!r}: expected minutes, HOURS:MM:SS or DAYS-HH:MM:SS")
    if not 10 <= slurm.warning <= 65535:
        raise UsageError(f"--save-before {slurm.warning}: expected 10 to 65535 seconds")
    for option, value in (("--partition", slurm.partition), ("--account", slurm.account)):
        if not _WORD.fullmatch(value):
            raise UsageError(f"{option} {value!r}: expected a name of your cluster")
    for volume in slurm.volumes:
        if not _VOLUME.fullmatch(volume):
            raise UsageError(f"-v {volume!r}: expected /FOLDER:/PLACE[:ro], both absolute, without commas and quotes")
    for item in slurm.env:
        if not _ENV.fullmatch(item):
            raise UsageError(f"-e {item!r}: expected NAME=value on one line, or NAME to pass it on")


def _srun(work: Work, slurm: Slurm) -> str:
    """pyxis starts the container as part of srun itself."""
    if slurm.engine != "pyxis":
        return ""
    mounts = "".join(f",{volume}" for volume in slurm.volumes)
    options = [
        f"--container-image={shlex.quote(work.image)}",
        f'--container-mounts="$SLURM_SUBMIT_DIR:/workspace{mounts}"',
        "--container-workdir=/workspace",
        "--no-container-mount-home",
    ]
    return "".join(f" \\\n    {option}" for option in options) + " \\\n   "
