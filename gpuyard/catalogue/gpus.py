"""GPU names: any usual spelling of one to its compute capability, and one line about those that cannot run."""

from __future__ import annotations

import difflib
import re

from gpuyard.catalogue.table import Catalogue
from gpuyard.errors import UsageError, UserError

NOISE = re.compile(
    r"\bmig\b.*|\b(?:nvidia|corporation|geforce|tesla|grid|graphics|gpu|card|laptop|notebook|mobile|max q|with"
    r"|design|generation|edition|server|workstation|founders|oem|dgx|hgx|dgxs|fhhl|pcie?|sxm ?\d?|nvl ?\d*|hbm\d\w?"
    r"|\d+ ?(?:gi?b?|[qcab]))\b"
)
"""What makers, vendors and nvidia-smi put around a name: maker, memory, socket, form, a slice of the GPU."""
OTHERS = (
    ("AMD", r"\b(?:amd|radeon|instinct|firepro|vega)\b|\brx ?\d|\bmi ?\d{2,3}[xa]?\b"),
    ("Intel", r"\b(?:intel|gaudi|iris|xe)\b|\barc\b"),
    ("Apple", r"\bapple\b|^m\d (?:pro|max|ultra)\b|^m[1-5]$"),
    ("Google", r"\btpu\b"),
)
"""Makers whose GPUs have no CUDA, and how their names look."""


def capabilities(catalogue: Catalogue, gpu: str) -> list[str]:
    """The compute capabilities of a GPU by its name, its generation (``Ada``), or its number (``8.9``).

    The name may be spelled as nvidia-smi, shops or people do. Raises UserError for a GPU that no image can run on
    (arm64 boards, other makers), and UsageError with similar names for an unknown one.
    """
    if gpu in catalogue.gpu:
        return [_for_x86(catalogue, gpu, gpu)]
    generation = gpu.strip().lower().removesuffix(" lovelace")
    if found := [cc for cc, row in catalogue.gpu.items() if row.names and row.generation.lower() == generation]:
        return found
    _refuse_other_makers(gpu)
    wanted = spellings(gpu)
    for cc, row in catalogue.gpu.items():
        if any(wanted & spellings(name) for name in row.arm64):
            raise _arm64(catalogue, gpu)
        if any(wanted & spellings(name) for name in row.names):
            return [cc]
    if "jetson" in gpu.lower():
        raise _arm64(catalogue, gpu)
    raise _unknown(catalogue, gpu)


def spellings(name: str) -> set[str]:
    """A name in one spelling, with and without the parts that people leave out (``RTX 4090``, ``4090``)."""
    plain = re.sub(r"[\W_]+", " ", re.sub(r"\(.*?\)", " ", name.lower()))
    words = re.findall(r"ti(?=super)|[a-z]+|\d+", NOISE.sub(" ", plain))
    if "pro" in words:
        words = [word for word in words if word != "blackwell"]
    if words[:1] == ["quadro"] and words[1:2] != ["rtx"]:
        words = words[1:]
    bare = words[1:] if words[:1] in (["rtx"], ["gtx"], ["gt"]) and "titan" not in words else words
    return {" ".join(words), " ".join(bare)} - {""}


def _for_x86(catalogue: Catalogue, cc: str, gpu: str) -> str:
    if not catalogue.gpu[cc].names:
        raise _arm64(catalogue, gpu)
    return cc


def _arm64(catalogue: Catalogue, gpu: str) -> UserError:
    return UserError("gpu-arm64", f"{gpu} is on boards with arm64 processors; images are for {catalogue.platform} only")


def _refuse_other_makers(gpu: str) -> None:
    plain = " ".join(re.sub(r"[\W_]+", " ", gpu.lower()).split())
    for maker, pattern in OTHERS:
        if "nvidia" not in plain and "tesla" not in plain and re.search(pattern, plain):
            raise UserError(
                "gpu-not-nvidia", f"{gpu} is from {maker} and does not run CUDA; images are for NVIDIA GPUs only"
            )


def _unknown(catalogue: Catalogue, gpu: str) -> UsageError:
    known = [name for row in catalogue.gpu.values() for name in (*row.names, *row.arm64)]
    words = set(max(spellings(gpu), key=len, default="").split())
    near = [name for name in known if words and words <= set(max(spellings(name), key=len).split())][:4]
    lower = {name.lower(): name for name in known}
    near = near or [lower[name] for name in difflib.get_close_matches(gpu.lower(), lower, n=3)]
    hint = f"Did you mean {' or '.join(map(repr, near))}? " if near else ""
    return UsageError(
        "gpu-unknown",
        f"unknown GPU {gpu!r}. {hint}A compute capability (8.9) or a generation (Ada) works too; "
        "nvidia-smi --query-gpu=name,compute_cap --format=csv prints both",
    )
