"""Asks an image's own Python for its versions, to compare them with the catalogue's rows."""

from __future__ import annotations

import json
from typing import Any

from docker.models.containers import Container

from gpuyard.catalogue.product import Product
from gpuyard.catalogue.table import Line

SCRIPT = """
import importlib.metadata as m, json, platform, torch, torchaudio, torchvision
print(json.dumps({
    "torch": torch.__version__, "torchvision": torchvision.__version__, "torchaudio": torchaudio.__version__,
    "cuda": torch.version.cuda, "cudnn": torch.backends.cudnn.version(), "nccl": list(torch.cuda.nccl.version()),
    "arch_list": torch._C._cuda_getArchFlags().split(), "python": platform.python_version(),
    "needs": m.requires("torch"), "tags": m.distribution("torch").read_text("WHEEL").split(),
    "vision_needs": m.requires("torchvision"), "audio_needs": m.requires("torchaudio") or [],
    "versions": {name: m.version(name) for name in ("torch", "torchvision", "torchaudio")},
}))
"""


def ask(container: Container) -> dict[str, Any]:
    """The answers, from a running container."""
    code, said = container.exec_run(["python", "-c", SCRIPT], user="1000:1000")
    assert code == 0, said.decode()
    answers = json.loads(said.decode().splitlines()[-1])
    assert isinstance(answers, dict)
    return answers


def differences(product: Product, said: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Where the row and the answers differ: what the row says, and what the image said."""
    row = product.row
    both = {
        "torch": (row.torch_version, said["torch"]),
        "torchvision": (row.torchvision, said["torchvision"].partition("+")[0]),
        "torchaudio": (row.torchaudio, said["torchaudio"].partition("+")[0]),
        "cuda": (row.cuda, said["cuda"]),
        "cudnn": (".".join(row.cudnn.split(".")[:3]), spelled(said["cudnn"])),
        "nccl": (row.nccl, ".".join(map(str, said["nccl"]))),
        "arch_list": (list(row.arch_list), [arch for arch in said["arch_list"] if arch.startswith("sm_")]),
        "python": (product.python, ".".join(said["python"].split(".")[:2])),
        **{f"wheel of {name}": (getattr(row, name), version) for name, version in said["versions"].items()},
        **pins(row, said["needs"]),
    }
    return {name: pair for name, pair in both.items() if pair[0] != pair[1]}


def spelled(number: int) -> str:
    """cuDNN's number as its version: two digits for the minor one and the patch."""
    return f"{number // 10000}.{number // 100 % 100}.{number % 100}"


def pins(row: Line, needs: list[str]) -> dict[str, tuple[str, str]]:
    """cuDNN and NCCL as the wheel of torch itself asks for them."""
    found = {}
    for name, version in (("cudnn", row.cudnn), ("nccl", row.nccl)):
        wanted = next(need for need in needs if need.startswith(f"nvidia-{name}-cu{row.cuda_major}"))
        found[f"{name} that torch asks for"] = (version, wanted.partition(";")[0].partition("==")[2].strip())
    return found
