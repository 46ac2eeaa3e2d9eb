"""Signs that a GPU was given to this container; the baked NVIDIA_VISIBLE_DEVICES=all is none."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, Dict, List

from verify.model import Facts, Verdict
from verify.probes.system import read

DRIVER = "libcuda.so.1"
NVML = "libnvidia-ml.so.1"
OTHER_NODES = ("dev/dxg", "dev/nvhost-gpu", "dev/nvmap")
"""WSL and Tegra have no /dev/nvidia*."""

USUAL_FOLDERS = (
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
    "/usr/local/nvidia/lib64",
    "/usr/local/nvidia/lib",
    "/usr/lib/wsl/lib",
    "/.singularity.d/libs",
)

ADD_GPU = "start the container with a GPU: docker run --gpus all ... (without one: verify --profile cpu)"


def gpu_signs(root: Path = Path("/")) -> Dict[str, Any]:
    """Device nodes, driver libraries the loader would find, and the driver the host has loaded."""
    nodes = sorted(str(path) for path in (root / "dev").glob("nvidia*"))
    nodes += [str(root / node) for node in OTHER_NODES if (root / node).exists()]
    return {
        "nodes": nodes,
        "libraries": [name for name in (DRIVER, NVML) if on_loader_path(name, root)],
        "host_driver": driver_version(read(root / "proc/driver/nvidia/version")),
        "visible": os.environ.get("NVIDIA_VISIBLE_DEVICES"),
    }


def on_loader_path(name: str, root: Path = Path("/")) -> bool:
    """Whether a library of that name lies where the loader looks; nothing is loaded."""
    return any((folder / name).exists() for folder in loader_folders(root))


def loader_folders(root: Path = Path("/")) -> List[Path]:
    """LD_LIBRARY_PATH, the folders of ld.so.conf and the usual ones."""
    own = [Path(part) for part in os.environ.get("LD_LIBRARY_PATH", "").split(":") if part]
    files = [root / "etc/ld.so.conf", *sorted((root / "etc/ld.so.conf.d").glob("*.conf"))]
    lines = [line.split("#")[0].strip() for file in files for line in read(file).splitlines()]
    listed = [root / line.lstrip("/") for line in lines if line.startswith("/")]
    return [*own, *listed, *(root / folder.lstrip("/") for folder in USUAL_FOLDERS)]


def driver_version(text: str) -> str:
    """The driver's version in the text of /proc/driver/nvidia/version, empty when there is none."""
    match = re.search(r"NVRM version:.*?\s(\d+\.\d+(?:\.\d+)?)\s", text + " ")
    return match.group(1) if match else ""


def gpu_nodes(nodes: List[str]) -> List[str]:
    """The nodes that are one GPU each."""
    return [node for node in nodes if re.search(r"/nvidia\d+$", node)]


def count_gpus() -> int:
    """GPUs of which there is a sign: at least 1 where anything of a driver is here, 0 without any."""
    signs = gpu_signs()
    return max(len(gpu_nodes(signs["nodes"])), int(any_sign(signs)))


def any_sign(facts: Facts) -> bool:
    """Whether the facts hold any sign at all."""
    return bool(facts.get("nodes") or facts.get("libraries"))


def no_gpu(facts: Facts) -> Verdict:
    """The verdict of every GPU check where there is no sign of one."""
    from verify.verdicts import skipped

    reason = "no GPU was given to this container (no /dev/nvidia*, no libcuda.so.1)"
    if facts.get("host_driver"):
        reason += f", although the host has driver {facts['host_driver']} loaded"
    if facts.get("visible") in ("", "void", "none"):
        reason += f"; NVIDIA_VISIBLE_DEVICES={facts['visible']!r} asks for none"
    return skipped(reason, ADD_GPU)
