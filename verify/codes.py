"""What the codes of the driver and NVML mean, who has to act, and what repairs them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Dict

from verify.model import Owner


@dataclass(frozen=True)
class Meaning:
    """What a code means."""

    text: str
    remedy: str
    owner: Owner


_RECREATE = "recreate the container with --gpus all; if it stays, restart the host"

CUDA: Dict[int, Meaning] = {
    2: Meaning(
        "the GPU has no memory left: other processes hold it",
        "nvidia-smi on the host shows which process holds it; end that process",
        Owner.HOST,
    ),
    3: Meaning(
        "the driver could not initialise",
        "check nvidia-smi on the host; reload the driver or restart the host",
        Owner.HOST,
    ),
    34: Meaning(
        "the libcuda.so.1 found is the link-time stub, not a driver",
        "remove the stubs folder from LD_LIBRARY_PATH and /etc/ld.so.conf.d, then start with --gpus all",
        Owner.START,
    ),
    35: Meaning(
        "the driver is older than this CUDA runtime needs",
        "upgrade the host's driver or use an image of an older CUDA line",
        Owner.HOST,
    ),
    46: Meaning(
        "the GPU is busy or unavailable: another process holds it in exclusive mode, or MIG is half set up",
        "nvidia-smi on the host: end the process, or nvidia-smi -c 0 for the default compute mode",
        Owner.HOST,
    ),
    100: Meaning(
        "the driver is here but sees no GPU",
        "start with --gpus all (not NVIDIA_VISIBLE_DEVICES=none, not an empty CUDA_VISIBLE_DEVICES)",
        Owner.START,
    ),
    101: Meaning(
        "a GPU was asked for by a number that does not exist",
        "unset CUDA_VISIBLE_DEVICES or name GPUs that nvidia-smi -L lists",
        Owner.START,
    ),
    214: Meaning(
        "the GPU met a memory error that it cannot correct",
        "on the host: end what runs on the GPU, then nvidia-smi --gpu-reset -i INDEX, or restart",
        Owner.HOST,
    ),
    304: Meaning(
        "an operating system call of the driver failed: a device node is missing or cannot be opened",
        _RECREATE,
        Owner.HOST,
    ),
    801: Meaning(
        "the driver does not support this operation here (often a virtual GPU or a wrong compat library)",
        "take cuda/compat out of the loader path; check the virtual GPU's licence and profile on the host",
        Owner.HOST,
    ),
    802: Meaning(
        "the system is not initialised: on NVSwitch machines the Fabric Manager does not run, "
        "or not at the driver's version",
        "on the host: systemctl start nvidia-fabricmanager (same version as the driver)",
        Owner.HOST,
    ),
    803: Meaning(
        "libcuda.so.1 and the kernel module are of different driver versions",
        "recreate the container after a driver upgrade, or restart the host; take cuda/compat out of the loader path",
        Owner.HOST,
    ),
    804: Meaning(
        "a forward-compatibility libcuda.so.1 is used on a GPU that does not allow it (only data centre GPUs do)",
        "take cuda/compat out of LD_LIBRARY_PATH and /etc/ld.so.conf.d, or upgrade the host's driver",
        Owner.START,
    ),
    805: Meaning(
        "the MPS daemon cannot be reached",
        "start nvidia-cuda-mps-control -d on the host and pass its pipe folder, or unset CUDA_MPS_PIPE_DIRECTORY",
        Owner.HOST,
    ),
    999: Meaning(
        "the driver gives no reason: usually nvidia-uvm is not loaded, or access to the device was revoked",
        "on the host: modprobe nvidia_uvm (nvidia-modprobe -u -c 0), then recreate the container",
        Owner.HOST,
    ),
}

NVML: Dict[int, Meaning] = {
    3: Meaning("NVML is not supported here", "check nvidia-smi on the host", Owner.HOST),
    4: Meaning("no permission to talk to the driver", _RECREATE, Owner.START),
    9: Meaning(
        "the kernel module is not loaded or its device nodes are not here",
        "on the host: modprobe nvidia; then start with --gpus all",
        Owner.HOST,
    ),
    12: Meaning("NVML did not find its own libraries", _RECREATE, Owner.START),
    15: Meaning("a GPU fell off the bus", "restart the host; look for Xid in dmesg", Owner.HOST),
    18: Meaning(
        "the driver's libraries and its kernel module are of different versions",
        "restart the host after its driver upgrade, then recreate this container",
        Owner.HOST,
    ),
    999: Meaning(
        "access to the GPU was lost: usually a systemd reload on the host took the device rules away",
        "recreate the container; for good: CDI, or native.cgroupdriver=cgroupfs in the engine",
        Owner.HOST,
    ),
}


def cuda_meaning(code: int) -> Meaning:
    """The meaning of a code of the CUDA driver API; a code not in the table says so."""
    other = Meaning("an unknown code", "check nvidia-smi and dmesg on the host", Owner.HOST)
    return CUDA.get(code, other)


def nvml_meaning(code: int) -> Meaning:
    """The meaning of a code of NVML; a code not in the table says so."""
    other = Meaning("an unknown code", "check nvidia-smi on the host", Owner.HOST)
    return NVML.get(code, other)
