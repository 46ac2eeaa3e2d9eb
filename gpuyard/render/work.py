"""What runs, on any scheduler: an image, a command, and the machines' resources."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from gpuyard.catalogue.table import Catalogue, unknown
from gpuyard.errors import UsageError

NAME = re.compile(r"[a-z]([a-z0-9-]{0,38}[a-z0-9])?")
REFERENCE = re.compile(r"[\w./:@#-]+")
PORT = 29500
"""Where the ranks of several nodes meet: torchrun's own default."""
PER_GPU = {"cpus": 8, "memory": 32, "shm": 8}
"""What a job gets by default for each GPU: processors, and GiB."""
WITHOUT_GPU = {"cpus": 4, "memory": 16, "shm": 8}
_SCRIPT = re.compile(r"[\w./-]+\.(py|sh)")


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
        """The command that verifies a node before the work starts: seconds, not minutes."""
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
        raise UsageError("render-command-missing", "no command: write it after --, such as: -- torchrun train.py")
    check_name(work.name)
    check_image(work.image)
    least = {"--nodes": (work.nodes, 1), "--gpus": (work.gpus, 0), "--cpus": (work.cpus, 1), "--shm": (work.shm, 1)}
    for option, (value, minimum) in least.items():
        check_least(option, value, minimum)
    if work.memory <= work.shm:
        raise UsageError(
            "render-memory-too-small",
            f"--memory {work.memory} with --shm {work.shm}: shared memory counts as memory; give more memory",
        )
    return work


def check_name(name: str) -> None:
    """Raises UsageError for a name that Kubernetes, Slurm or Docker would refuse."""
    if not NAME.fullmatch(name):
        raise UsageError(
            "render-value-invalid",
            f"--name {name!r}: expected up to 40 lower-case letters, digits and dashes, a letter first",
        )


def check_image(image: str) -> None:
    """Raises UsageError for text that is not an image's reference."""
    if not REFERENCE.fullmatch(image):
        raise UsageError(
            "render-value-invalid", f"--image {image!r}: expected workbench, runtime or an image's reference"
        )


def check_least(option: str, value: int, minimum: int) -> None:
    """Raises UsageError for a number below its minimum."""
    if value < minimum:
        raise UsageError("render-value-invalid", f"{option} {value}: expected {minimum} or more")


def amount(what: str, gpus: int, given: int | None) -> int:
    """Processors, memory or shared memory of a node: as given, or by its GPUs."""
    return given if given is not None else PER_GPU[what] * gpus if gpus > 0 else WITHOUT_GPU[what]


def absent_script(command: tuple[str, ...], mounted: Iterable[str], empty: Iterable[str]) -> str:
    """The command's first script if it lies where nothing puts it; empty if there is none.

    ``mounted`` are folders with files of the user, ``empty`` those that hold none unless they are mounted. A relative
    path is below /workspace.
    """
    scripts = [word for word in command if _SCRIPT.fullmatch(word)]
    if not scripts:
        return ""
    place = scripts[0] if scripts[0].startswith("/") else f"/workspace/{scripts[0]}"
    below = [folder for folder in (*mounted, *empty) if place.startswith(folder.rstrip("/") + "/")]
    return scripts[0] if below and not set(below) & set(mounted) else ""


def is_local(image: str) -> bool:
    """Whether a reference names no registry, so that only an engine that has the image can start it."""
    return "/" not in image and "#" not in image


def image_reference(catalogue: Catalogue, word: str) -> str:
    """The default line's tag for ``workbench`` and ``runtime``; any other word is a reference already.

    Raises UsageError for a tag of the catalogue's own repository that the catalogue does not have.
    """
    if word in catalogue.published:
        return catalogue.tag(catalogue.default_line, word)
    ours = {catalogue.tag(line, image): "" for line in catalogue.line for image in catalogue.images_of(line)}
    moving = re.fullmatch(rf"{re.escape(catalogue.repository)}:v[\w.-]*", word)
    if moving and word not in ours:
        raise UsageError("image-tag-unknown", unknown("--image", word, ours))
    return word
