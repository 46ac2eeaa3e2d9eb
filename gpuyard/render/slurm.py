"""A batch script for Slurm: verifies the nodes, runs the command in the image, saves and requeues in time."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from typing import Literal, get_args

from gpuyard.catalogue.table import unknown
from gpuyard.errors import UsageError
from gpuyard.render.text import text
from gpuyard.render.work import Work, absent_script, check, is_local

Engine = Literal["docker", "pyxis", "apptainer"]
ENGINES: tuple[str, ...] = get_args(Engine)

_TIME = re.compile(
    r"(?P<minutes>\d+)(:(?P<rest>[0-5]\d))?"
    r"|(?P<hours>\d+):(?P<m>[0-5]\d):(?P<s>[0-5]\d)"
    r"|(?P<days>\d+)-(?P<dh>[01]?\d|2[0-3])(:(?P<dm>[0-5]\d)(:(?P<ds>[0-5]\d))?)?"
)
_SECONDS = {"minutes": 60, "rest": 1, "hours": 3600, "m": 60, "s": 1, "days": 86400, "dh": 3600, "dm": 60, "ds": 1}
_WORD = re.compile(r"[\w.,@-]*")
_PATH = r"/[^:,\"$`\\\n]*"
_VOLUME = re.compile(rf"{_PATH}:{_PATH}(:ro|:rw)?")
_ENV = re.compile(r"[A-Za-z_]\w*(=[^\n]*)?")
# Docker looks a local tag up in its own store, the others at Docker Hub.
_HOW = {
    "pyxis": "a registry's (registry#owner/name:tag) or a file from: enroot import -o FILE.sqsh dockerd://{tag}",
    "apptainer": "docker://REFERENCE or a file from: apptainer build FILE.sif docker-daemon://{tag}",
}


@dataclass(frozen=True)
class Slurm:
    """Options of Slurm alone. ``warning``: seconds before the end at which the command is told to save."""

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
    if slurm.engine != "docker" and is_local(work.image):
        raise UsageError(
            "render-image-local",
            f"--image {work.image}: {slurm.engine} needs {_HOW[slurm.engine].format(tag=work.image)}",
        )
    notes = {"local": is_local(work.image), "missing": missing_script(work, slurm)}
    return text("slurm/job.sh.j2", work=work, slurm=slurm, srun=_srun(work, slurm), **notes)


def missing_script(work: Work, slurm: Slurm) -> str:
    """The command's script if it lies in a folder of the user's that no volume holds."""
    places = [volume.split(":")[1] for volume in slurm.volumes]
    # The folder that the job is submitted from is /workspace.
    return absent_script(work.command, ["/workspace", *places], ["/mnt/data", "/mnt/models", "/home"])


def seconds(time: str) -> int | None:
    """A time limit as Slurm reads it; None for one that it would refuse."""
    found = _TIME.fullmatch(time)
    return sum(int(found[name] or 0) * unit for name, unit in _SECONDS.items()) if found else None


def _check(slurm: Slurm) -> None:
    if slurm.engine not in ENGINES:
        raise UsageError("render-choice-unknown", unknown("engine", slurm.engine, ENGINES))
    _check_time(slurm)
    for option, value in (("--partition", slurm.partition), ("--account", slurm.account)):
        if not _WORD.fullmatch(value):
            raise UsageError("render-value-invalid", f"{option} {value!r}: expected a name of your cluster")
    for volume in slurm.volumes:
        if not _VOLUME.fullmatch(volume):
            raise UsageError(
                "render-value-invalid",
                f"-v {volume!r}: expected /FOLDER:/PLACE[:ro], both absolute, without commas and quotes",
            )
    for item in slurm.env:
        if not _ENV.fullmatch(item):
            raise UsageError(
                "render-value-invalid", f"-e {item!r}: expected NAME=value on one line, or NAME to pass it on"
            )


def _check_time(slurm: Slurm) -> None:
    limit = seconds(slurm.time)
    if limit is None:
        raise UsageError(
            "render-value-invalid", f"--time {slurm.time!r}: expected MINUTES, HOURS:MM:SS or DAYS-HH:MM:SS"
        )
    if not 10 <= slurm.warning <= 65535:
        raise UsageError("render-value-invalid", f"--save-before {slurm.warning}: expected 10 to 65535 seconds")
    if 0 < limit <= slurm.warning:
        raise UsageError(
            "render-value-invalid",
            f"--time {slurm.time} is {limit} s, not more than --save-before {slurm.warning}: give more time",
        )


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
