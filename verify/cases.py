"""The known ways in which GPU training breaks, which check sees each, and how that was shown.

The ids are those of the project's collection of user reports: A wiring of driver and runtime, B versions
and swapped packages, C libraries and tools, E shared memory and limits, F distributed training.
``shown`` is "simulated" where a test gives the fault to the suite itself (in a container of the image where
a simulator reaches it), "recorded" where a test judges recorded facts, "untested" where neither is possible
here. A case without a check is left out, and ``note`` says why or where else it is prevented.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Dict, List, Tuple

SIMULATED, RECORDED, UNTESTED = "simulated", "recorded", "untested"


@dataclass(frozen=True)
class Case:
    """One known way to break. ``outside`` names checks and commands of the host's side."""

    id: str
    title: str
    checks: Tuple[str, ...] = ()
    shown: str = ""
    note: str = ""
    outside: Tuple[str, ...] = ()


def _in(id: str, title: str, shown: str, *checks: str, outside: Tuple[str, ...] = (), note: str = "") -> Case:
    return Case(id, title, checks, shown, note, outside)


def _host(id: str, title: str, shown: str, *outside: str, note: str = "") -> Case:
    return Case(id, title, (), shown, note, outside)


def _out(id: str, title: str, why: str) -> Case:
    return Case(id, title, note=why)


CASES: Tuple[Case, ...] = (
    _host("A1", "the container toolkit is missing", RECORDED, "gpuyard run"),
    _in("A2", "no GPU was given", SIMULATED, "device-nodes", "libcuda", "cuda-init", "torch-cuda"),
    _in("A3", "capability compute is missing", SIMULATED, "libcuda", "image-env"),
    _in("A5", "the GPU is lost in a running container", SIMULATED, "nvml", "device-nodes"),
    _in("A6", "NVIDIA_REQUIRE_CUDA refuses a driver that would do", RECORDED, "cuda-level", outside=("image-env",)),
    _in("A7", "forward compatibility on the wrong GPU (804)", SIMULATED, "cuda-init", "loader-path"),
    _in("A8", "driver files of the image beside the host's", SIMULATED, "driver-files", "nvml"),
    _in("A9", "driver files baked into the image", SIMULATED, "driver-files"),
    _in("A10", "the stub library is found (34)", SIMULATED, "cuda-init", "libcuda", "loader-path"),
    _in("A11", "Fabric Manager does not run (802)", SIMULATED, "cuda-init"),
    _in("A12", "the driver is too old; 12040 is not a driver version", SIMULATED, "cuda-level"),
    _in("A13", "library and kernel module differ after an upgrade", SIMULATED, "nvml", "cuda-init"),
    _in("A14", "no code for this GPU's generation", RECORDED, "gpu-arch", "arch-list", "matmul-gpu"),
    _in("A16", "three CUDA versions are mixed up", SIMULATED, "nvcc", "cuda-level", "one-torch"),
    _host("A17", "rootless Docker", RECORDED, "gpuyard run", note="the recipe is printed before the start"),
    _host("A18", "CDI device or specification is missing", RECORDED, "gpuyard run"),
    _in("A19", "SELinux refuses the device", SIMULATED, "device-nodes", note="the EACCES; not SELinux itself"),
    _in("A21", "no GPU is noticed only after minutes", SIMULATED, "torch-cuda"),
    _in("B22", "the tag says another torch than is in it", SIMULATED, "torch-versions", "python", "one-torch"),
    _in("B23", "a CPU build of torch in a GPU image", SIMULATED, "one-torch"),
    _in("B24", "a wrong version behind a version tag", SIMULATED, "torch-versions"),
    _in("B25", "variables and labels that contradict the packages", SIMULATED, "image-env", outside=("labels",)),
    _in("B26", "an install replaced torch", SIMULATED, "lock", "torch-versions", "pip-check"),
    _in("B27", "two CUDA majors in one environment", SIMULATED, "cuda-majors"),
    _in("B28", "the same build on another day", SIMULATED, "lock", note="prevented by locks with hashes"),
    _out("B29", "arm64 gets a CPU torch", "only linux/amd64 is published; one-torch would see a CPU build"),
    _in("B30", "uv syncs the environment to another torch", SIMULATED, "lock", "torch-versions"),
    _in("B31", "torchvision of another build", SIMULATED, "torchvision-nms", "torch-versions"),
    _in("B32", "torch built for another NumPy", SIMULATED, "numpy-bridge"),
    _out("B33", "nightly wheels are deleted", "the catalogue accepts releases only; its own tests show it"),
    _out("B34", "a combination that does not exist", "refused by the catalogue before a build; its own tests show it"),
    _in("B35", "local versions are compared as text", RECORDED, "torch-versions"),
    _in("C37", "cuDNN of the base and of pip differ", SIMULATED, "cudnn", "cuda-copies", "loaded-libraries"),
    _in("C38", "LD_LIBRARY_PATH puts an older library first", SIMULATED, "decoys", "loaded-libraries", "torch-import"),
    _in("C39", "an extension built for another CUDA", SIMULATED, "needed-libraries"),
    _in("C40", "NCCL is not torch's", SIMULATED, "nccl-version", "cuda-copies", "loaded-libraries", "nccl-one-rank"),
    _out("C41", "apt holds broken CUDA packages", "prevented: no CUDA package comes by apt"),
    _out("C42", "apt upgrade moves CUDA", "prevented: no CUDA package comes by apt"),
    _in("C44", "no nvcc in a runtime image", SIMULATED, "nvcc"),
    _in("C45", "no compiler for torch.compile", SIMULATED, "compiler", "torch-compile"),
    _in("C46", "extensions build without an arch list", SIMULATED, "nvcc"),
    _in("C47", "nvrtc of another CUDA major", SIMULATED, "cuda-copies", "cuda-majors", "needed-libraries"),
    _in("C48", "CUDA twice: toolkit of the base and wheels", SIMULATED, "cuda-copies"),
    _out("C49", "a file written again in a later layer", "the layers are disjoint by construction; no check judges it"),
    _in("C50", "opencv without its system libraries", SIMULATED, "needed-libraries"),
    _in("C51", "an older libstdc++ comes first", SIMULATED, "decoys", "torch-import"),
    _in("E62", "/dev/shm of 64 MB", SIMULATED, "shm-size", "shm-dataloader"),
    _in(
        "E63",
        "NCCL out of shared memory",
        SIMULATED,
        "shm-size",
        note="the small /dev/shm; NCCL's own failure needs two GPUs",
    ),
    _in("E65", "no --shm-size in swarm", SIMULATED, "shm-type", "shm-size"),
    _in("E66", "too few open files", SIMULATED, "limit-nofile"),
    _in("E67", "memlock for InfiniBand", SIMULATED, "limit-memlock", "infiniband"),
    _in(
        "E69",
        "the OOM killer picks a process",
        SIMULATED,
        "memory-kills",
        note="that the server survives is the start's work, tested there",
    ),
    _in("E71", "threads are refused by an old host Docker", SIMULATED, "threads"),
    _in("F73", "the hostname is the loopback", SIMULATED, "hostname"),
    _in("F74", "NCCL picks docker0 or lo", SIMULATED, "interface"),
    _in("F75", "IPv6 noise (errno 97)", SIMULATED, "gloo-two-ranks"),
    _in("F76", "P2P hangs", SIMULATED, "nccl-all-gpus", note="with a rank that hangs; NCCL's own hang needs two GPUs"),
    _in("F77", "only one rank sees a GPU", RECORDED, "nccl-all-gpus"),
    _in("F78", "variables of the image beat the user's", SIMULATED, "tuning-env"),
    _in(
        "F79",
        "NUMA calls are refused",
        SIMULATED,
        "nccl-all-gpus",
        note="the refusal; what NCCL makes of it needs two GPUs",
    ),
)


def cases_of(check: str) -> Tuple[str, ...]:
    """Ids of the cases that the check sees."""
    return tuple(case.id for case in CASES if check in case.checks)


def table() -> str:
    """The text of ``verify --list --cases``."""
    rows = [_row(case) for case in CASES]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    lines = ["  ".join([*(row[n].ljust(widths[n]) for n in range(3)), row[3]]).rstrip() for row in rows]
    counts: Dict[str, int] = {}
    for case in CASES:
        counts[case.shown or "left out"] = counts.get(case.shown or "left out", 0) + 1
    total = ", ".join(f"{number} {name}" for name, number in counts.items())
    return "\n".join([*lines, "", f"{len(CASES)} cases: {total}"])


def _row(case: Case) -> List[str]:
    seen = ", ".join([*case.checks, *(f"{name} (host side)" for name in case.outside)])
    text = "; ".join(part for part in (seen, case.note) if part)
    return [case.id, case.title, case.shown or "left out", text]
