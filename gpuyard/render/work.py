"""What is to run, wherever it runs: an image, a command, and how much of which machines."""

from __future__ import annotations

import re
from dataclasses import dataclass

from gpuyard.catalogue.table import Catalogue
from gpuyard.errors import UsageError

NAME = re.compile(r"[a-z]([a-z0-9-]{0,38}[a-z0-9])?")
REFERENCE = re.compile(r"[\w./:@#-]+")
PORT = 29500
"""Where the ranks of several nodes meet: torchrun's own default."""


@dataclass(frozen=True)
class Work:
    """A command on nodes. ``gpus`` and ``cpus`` are those of one node; ``shm`` and ``memory`` in GiB."""

    image: str
    command: tuple[str, ...]
    name: str = "train"
    nodes: int = 1
    gpus: int = 0
    cpus: int = 4
    memory: int = 16
    shm: int = 8
    verify: bool = True

    @property
    def checks(self) -> tuple[str, ...]:
        """The suite's words that judge a node before this work starts: seconds, not minutes."""
        if not self.gpus:
            return ("verify", "--quick")
        found = ["driver", "torch-cuda", "gpu-devices", "gpu-arch", "matmul-gpu", "shm-size"]
        return ("verify", "--only", ",".join([*found, "nccl-all-gpus"] if self.gpus > 1 else found))

    @property
    def processes(self) -> int:
        """How many processes torchrun starts on a node: one a GPU."""
        return max(self.gpus, 1)


def check(work: Work) -> Work:
    """The work, once it is known to make sense. Raises UsageError with the first thing that does not."""
    if not work.command:
        raise UsageError("no command: write it after --, such as: -- torchrun train.py")
    if not NAME.fullmatch(work.name):
        raise UsageError(
            f"--name {work.name!r}: expected up to 40 lower-case letters, digits and dashes, a letter first"
        )
    if not REFERENCE.fullmatch(work.image):
        raise UsageError(f"--image {work.image!r}: expected workbench, runtime or an image's reference")
    least = {"--nodes": (work.nodes, 1), "--gpus": (work.gpus, 0), "--cpus": (work.cpus, 1), "--shm": (work.shm, 1)}
    for option, (value, minimum) in least.items():
        if value < minimum:
            raise UsageError(f"{option} {value}: expected {minimum} or more")
    if work.memory <= work.shm:
        raise UsageError(
            f"--memory {work.memory} with --shm {work.shm}: shared memory counts as memory; give more of it"
        )
    return work


def image_reference(catalogue: Catalogue, word: str) -> str:
    """The default line's tag for ``workbench`` and ``runtime``; any other word is a reference already."""
    return catalogue.tag(catalogue.default_line, word) if word in catalogue.published else word
