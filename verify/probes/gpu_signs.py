"""Signs that a GPU was given to this container, and how many; the image's own NVIDIA_VISIBLE_DEVICES=all is not one."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, Dict, List

from verify.model import Facts, Status, Verdict
from verify.probes.system import read

DRIVER = "libcuda.so.1"
NVML = "libnvidia-ml.so.1"
OTHER_NODES = ("dev/dxg", "dev/nvhost-gpu", "dev/nvmap")
"""WSL and Tegra have no /dev/nvidia*."""

LOADER_FOLDERS = ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib")
"""Where the loader looks by itself."""
DRIVER_FOLDERS = (
    "/usr/local/nvidia/lib64",
    "/usr/local/nvidia/lib",
    "/usr/lib/wsl/lib",
    "/.singularity.d/libs",
    "/usr/lib64-nvidia",
    "/usr/lib/nvidia",
    "/opt/nvidia/lib64",
    "/var/lib/nvidia/lib64",
    "/run/nvidia/driver/usr/lib/x86_64-linux-gnu",
    "/run/opengl-driver/lib",
)
"""Where platforms mount the driver without telling the loader: GKE's device plugin, WSL, Apptainer, Colab, the GPU
operator, Container-Optimized OS, NixOS."""

ADD_GPU = "start the container with a GPU: docker run --gpus all ... (without one: verify --profile cpu)"


def gpu_signs(root: Path = Path("/")) -> Dict[str, Any]:
    """Device nodes, driver libraries the loader would find, and the driver the host has loaded."""
    nodes = sorted(str(path) for path in (root / "dev").glob("nvidia*"))
    nodes += [str(root / node) for node in OTHER_NODES if (root / node).exists()]
    return {
        "nodes": nodes,
        "libraries": [name for name in (DRIVER, NVML) if on_loader_path(name, root)],
        "elsewhere": {name: place for name in (DRIVER, NVML) for place in (off_loader_path(name, root),) if place},
        "host_driver": driver_version(read(root / "proc/driver/nvidia/version")),
        "visible": os.environ.get("NVIDIA_VISIBLE_DEVICES"),
    }


def on_loader_path(name: str, root: Path = Path("/")) -> bool:
    """Whether a library of that name lies where the loader looks; nothing is loaded."""
    return any((folder / name).exists() for folder in loader_folders(root))


def off_loader_path(name: str, root: Path = Path("/")) -> str:
    """The folder where a platform mounted a library that the loader does not find; empty where it finds it."""
    if on_loader_path(name, root):
        return ""
    return next((folder for folder in DRIVER_FOLDERS if (root / folder.lstrip("/") / name).exists()), "")


def driver_folders(root: Path = Path("/")) -> List[Path]:
    """The loader's folders, and those where platforms mount the driver."""
    return [*loader_folders(root), *(root / folder.lstrip("/") for folder in DRIVER_FOLDERS)]


def loader_folders(root: Path = Path("/")) -> List[Path]:
    """LD_LIBRARY_PATH, the folders of ld.so.conf, and the loader's own."""
    own = [Path(part) for part in os.environ.get("LD_LIBRARY_PATH", "").split(":") if part]
    files = [root / "etc/ld.so.conf", *sorted((root / "etc/ld.so.conf.d").glob("*.conf"))]
    lines = [line.split("#")[0].strip() for file in files for line in read(file).splitlines()]
    listed = [root / line.lstrip("/") for line in lines if line.startswith("/")]
    return [*own, *listed, *(root / folder.lstrip("/") for folder in LOADER_FOLDERS)]


def driver_version(text: str) -> str:
    """The driver's version in the text of /proc/driver/nvidia/version, empty when there is none."""
    match = re.search(r"NVRM version:.*?\s(\d+\.\d+(?:\.\d+)?)\s", text + " ")
    return match.group(1) if match else ""


def gpu_nodes(nodes: List[str]) -> List[str]:
    """The nodes that are one GPU each."""
    return [node for node in nodes if re.search(r"/nvidia\d+$", node)]


def any_sign(facts: Facts) -> bool:
    """Whether the facts hold any sign at all."""
    return bool(facts.get("nodes") or facts.get("libraries") or facts.get("elsewhere"))


def no_gpu(facts: Facts) -> Verdict:
    """The verdict of every GPU check where there is no sign of one."""
    reason = "no GPU was given to this container (no /dev/nvidia*, no libcuda.so.1)"
    if facts.get("host_driver"):
        reason += f", although the host has driver {facts['host_driver']} loaded"
    if facts.get("visible") in ("", "void", "none"):
        reason += f"; NVIDIA_VISIBLE_DEVICES={facts['visible']!r} asks for none"
    return Verdict(Status.SKIP, reason, remedy=ADD_GPU, data={"no_gpu": True})
