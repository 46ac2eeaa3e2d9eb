"""How many of a machine's GPUs this process may use: device nodes that open, the variables, and MIG."""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path
from typing import Dict, List, Optional, Sequence

from verify.probes.gpu_signs import gpu_nodes

REFUSED = "EPERM"
"""What the device cgroup answers for a GPU that was allocated to somebody else."""
MIG_MONITOR = 2
"""Capability nodes up to this number belong to MIG's administration; those above are instances."""


def open_node(node: str) -> str:
    """Open a device node as the driver's libraries do: "ok", "folder", or the error's name."""
    if Path(node).is_dir():
        return "folder"
    try:
        os.close(os.open(node, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC))
    except OSError as error:
        return errno.errorcode.get(error.errno or 0, str(error.errno))
    return "ok"


def open_nodes(nodes: Sequence[str]) -> Dict[str, str]:
    """The answer of each node that is here."""
    return {node: open_node(node) for node in nodes if Path(node).exists()}


def allocated(opened: Dict[str, str]) -> List[str]:
    """The GPUs' nodes that are ours.

    Where some open and others are refused, a scheduler gave the refused ones to other jobs (Slurm's
    ConstrainDevices). Where all are refused, none is anybody else's: that is a fault.
    """
    gpus = gpu_nodes(list(opened))
    ours = [node for node in gpus if opened[node] != REFUSED]
    return ours if any(opened[node] == "ok" for node in ours) else gpus


def asked_for(cuda_visible: Optional[str]) -> Optional[int]:
    """How many GPUs CUDA_VISIBLE_DEVICES names; None where it is not set. MIG: a process gets one instance."""
    if cuda_visible is None:
        return None
    names = [part.strip() for part in cuda_visible.split(",") if part.strip()]
    return min(len(names), 1) if any(name.startswith("MIG") for name in names) else len(names)


def mig_given(root: Path = Path("/")) -> bool:
    """Whether MIG instances were given: by their names in NVIDIA_VISIBLE_DEVICES or by their capability nodes."""
    if re.search(r"MIG-|\b\d+:\d+\b", os.environ.get("NVIDIA_VISIBLE_DEVICES", "")):
        return True
    caps = (root / "dev/nvidia-caps").glob("nvidia-cap*")
    numbers = [re.search(r"(\d+)$", path.name) for path in caps]
    return any(int(number.group(1)) > MIG_MONITOR for number in numbers if number)
