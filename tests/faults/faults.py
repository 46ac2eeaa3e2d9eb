"""The faults that can be given to a real container, and what verify has to say about each."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from verify.model import Owner

HOME = "/usr/lib/x86_64-linux-gnu"
"""Where the container toolkit mounts the host's driver."""
COMPAT = "/usr/local/cuda/compat"
STUBS = "/usr/local/cuda/lib64/stubs"
PLUGIN = "/usr/local/nvidia/lib64"
"""Where GKE's device plugin mounts it; the loader does not look there."""
NODES = ("nvidia0", "nvidiactl", "nvidia-uvm")
READ_WRITE = {"permissions": "rwm", "fileMode": 0o666}


@dataclass(frozen=True)
class Fault:
    """A broken machine. ``cuda`` and ``nvml`` are the folders of the stand-ins, None where there is none.

    ``linked`` adds the compat folder to the loader's cache by a hook, as the container toolkit does.
    ``first`` is the check that must be named, ``owner`` who has to act, ``words`` what must stand in the observation
    and ``remedy`` what must stand in the remedy.
    """

    name: str
    first: str
    owner: Owner
    words: tuple[str, ...]
    remedy: tuple[str, ...]
    env: dict[str, str] = field(default_factory=dict)
    cuda: str | None = HOME
    nvml: str | None = HOME
    nodes: tuple[str, ...] = NODES
    node: dict[str, Any] = field(default_factory=lambda: READ_WRITE)
    linked: bool = False


def _code(number: int, owner: Owner, words: str, remedy: str, **changes: Any) -> Fault:
    env = {"STUB_CUINIT": str(number), **changes.pop("env", {})}
    return Fault(str(number), "cuda-init", owner, (f"cuInit answers {number}", words), (remedy,), env, **changes)


def _level(number: int, cuda: str) -> Fault:
    words = (f"supports CUDA up to {cuda}", f"found version {number}")
    env = {"STUB_CUINIT": "0", "STUB_DRVVER": str(number)}
    return Fault(f"level-{number}", "cuda-level", Owner.HOST, words, ("upgrade the host's driver to",), env)


WORKING = {"STUB_CUINIT": "0"}

FAULTS: tuple[Fault, ...] = (
    _code(804, Owner.HOST, f"{COMPAT}/libcuda.so.1", "upgrade the host's driver", cuda=COMPAT, linked=True),
    _code(34, Owner.HOST, f"{HOME}/libcuda.so.1", "reinstall the driver's libcuda"),
    _code(46, Owner.HOST, "exclusive process mode", "nvidia-smi -c 0", env={"STUB_MODE": "3"}),
    _code(100, Owner.START, "sees no GPU", "--gpus all"),
    _code(304, Owner.HOST, "device node", "recreate the container with --gpus all"),
    _code(802, Owner.HOST, "Fabric Manager", "systemctl start nvidia-fabricmanager"),
    _code(803, Owner.HOST, "different driver versions", "restart the host"),
    _code(999, Owner.HOST, "nvidia-uvm", "modprobe nvidia_uvm"),
    _level(11040, "11.4"),
    Fault(
        "804-path",
        "loader-path",
        Owner.START,
        (COMPAT,),
        ("take it out of LD_LIBRARY_PATH",),
        {"STUB_CUINIT": "804", "LD_LIBRARY_PATH": COMPAT},
        cuda=COMPAT,
    ),
    Fault(
        "34-path",
        "loader-path",
        Owner.START,
        (STUBS,),
        ("take it out of LD_LIBRARY_PATH",),
        {"STUB_CUINIT": "34", "LD_LIBRARY_PATH": STUBS},
        cuda=STUBS,
    ),
    Fault("no-compute", "libcuda", Owner.START, ("'compute' was not granted",), ("compute,utility",), cuda=None),
    Fault("no-utility", "nvml", Owner.START, ("'utility' was not granted",), ("compute,utility",), WORKING, nvml=None),
    Fault("no-libraries", "libcuda", Owner.START, ("no libcuda.so.1",), ("--gpus all",), cuda=None, nvml=None),
    Fault("no-nodes", "device-nodes", Owner.START, ("no /dev/nvidia0",), ("--gpus all",), WORKING, nodes=()),
    Fault(
        "no-uvm", "device-nodes", Owner.HOST, ("/dev/nvidia-uvm",), ("nvidia-modprobe -u",), WORKING, nodes=NODES[:2]
    ),
    Fault(
        "nodes-refused",
        "device-nodes",
        Owner.HOST,
        ("EPERM", "systemd reload"),
        ("recreate the container",),
        WORKING,
        node={"permissions": "m", "fileMode": 0o666, "major": 195, "minor": 0},
    ),
    Fault(
        "nodes-closed",
        "device-nodes",
        Owner.HOST,
        ("EACCES",),
        ("container_use_devices", "--group-add video"),
        WORKING,
        node={"permissions": "rwm", "fileMode": 0o600},
    ),
    Fault("nvml-18", "nvml", Owner.HOST, ("different versions",), ("restart the host",), {"STUB_NVML": "18"}),
    Fault("nvml-999", "nvml", Owner.HOST, ("was lost", "systemd reload"), ("CDI",), {"STUB_NVML": "999"}),
    Fault("nvml-9", "nvml", Owner.HOST, ("not loaded",), ("modprobe nvidia",), {"STUB_NVML": "9"}),
    Fault("few-gpus", "nvml", Owner.HOST, ("NVML answers for 0",), ("Xid",), {**WORKING, "STUB_COUNT": "0"}),
    Fault("ecc", "gpu-health", Owner.HOST, ("2 uncorrected memory",), ("--gpu-reset",), {**WORKING, "STUB_ECC": "2"}),
    Fault(
        "remap", "gpu-health", Owner.HOST, ("waits to be remapped",), ("--gpu-reset",), {**WORKING, "STUB_REMAP": "1"}
    ),
    Fault("heat", "gpu-health", Owner.HOST, ("held down by heat",), ("fans",), {**WORKING, "STUB_SLOW": "64"}),
    Fault(
        "no-context",
        "cuda-context",
        Owner.HOST,
        ("cuDevicePrimaryCtxRetain answers 999",),
        ("modprobe nvidia_uvm",),
        {**WORKING, "STUB_CONTEXT": "999"},
    ),
    Fault(
        "no-memory",
        "cuda-context",
        Owner.HOST,
        ("cuMemAlloc_v2 answers 2", "no memory left"),
        ("nvidia-smi on the host",),
        {**WORKING, "STUB_ALLOC": "2"},
    ),
    Fault(
        "no-gpu-listed",
        "cuda-context",
        Owner.START,
        ("the driver lists no GPU",),
        ("unset CUDA_VISIBLE_DEVICES", "--gpus all"),
        {**WORKING, "STUB_GPUS": "0"},
    ),
    Fault(
        "driver-folder",
        "libcuda",
        Owner.START,
        (f"libcuda.so.1 is in {PLUGIN}",),
        (f"LD_LIBRARY_PATH={PLUGIN}",),
        WORKING,
        cuda=PLUGIN,
        nvml=PLUGIN,
    ),
    Fault("gpu-lost", "nvml", Owner.HOST, ("fell off the bus",), ("Xid",), {**WORKING, "STUB_LOST": "1"}),
    Fault(
        "hidden",
        "visible-devices",
        Owner.START,
        ("hides every GPU",),
        ("unset",),
        {**WORKING, "CUDA_VISIBLE_DEVICES": ""},
    ),
    Fault(
        "out-of-range",
        "visible-devices",
        Owner.START,
        ("names GPU 3, but there are 1",),
        ("unset",),
        {**WORKING, "CUDA_VISIBLE_DEVICES": "0,3"},
    ),
    Fault(
        "void",
        "visible-devices",
        Owner.START,
        ("asks for no GPU",),
        ("--gpus all",),
        {**WORKING, "NVIDIA_VISIBLE_DEVICES": "void"},
        nodes=(),
    ),
    Fault(
        "mig",
        "cuda-init",
        Owner.START,
        ("MIG is on for GPU 0",),
        ("nvidia-smi -L", "--gpus device=0:0"),
        {"STUB_CUINIT": "100", "STUB_MIG": "1"},
    ),
)
LEVELS = tuple(replace(_level(number, ""), first="") for number in (12040, 13040))
"""Drivers that are old for some image and new for another; what is said depends on the image."""
WHOLE = Fault("whole", "", Owner.HOST, (), (), {"STUB_CUINIT": "0"})
"""The good case: the same stand-ins with nothing wrong below torch."""
