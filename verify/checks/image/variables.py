"""The variables of the image and of whoever started it: those that must say the truth, and those that tune."""

from __future__ import annotations

import os
import re
from functools import partial
from pathlib import Path
from typing import List

from verify import remedies, versions
from verify.claims import claimed_version
from verify.model import Check, Claims, Facts, Level, Owner, Verdict
from verify.verdicts import NOT_AN_IMAGE, failed, inside, listed, passed, skipped

TUNING = re.compile(
    r"(NCCL|GLOO|OMP|MKL|KMP|OPENBLAS|UCX|CUBLAS|CUDNN|TORCH_NCCL|TORCHINDUCTOR)_\w+"
    r"|CUDA_(LAUNCH_BLOCKING|MODULE_LOADING|DEVICE_ORDER|DEVICE_MAX_CONNECTIONS|CACHE_\w+|FORCE_PTX_JIT)"
    r"|PYTORCH_(CUDA_)?ALLOC_CONF|PYTORCH_NO_CUDA_MEMORY_CACHING|PYTORCH_NVML_BASED_CUDA_CHECK"
    r"|NVIDIA_TF32_OVERRIDE|LD_PRELOAD"
)
CONSTRAINTS = ("PIP_CONSTRAINT", "UV_CONSTRAINT")
NO_TUNING = ("TORCHINDUCTOR_CACHE_DIR",)


def probe_tuning() -> Facts:
    """Environment variables that change speed or results."""
    names = sorted(name for name in os.environ if TUNING.fullmatch(name) and name not in NO_TUNING)
    return {"set": {name: os.environ[name] for name in names}}


def evaluate_tuning(facts: Facts, _claims: Claims) -> Verdict:
    """A baked value beats the user's under pyxis; a forgotten one makes a run slow or different."""
    found = facts["set"]
    if found:
        text = "set: " + listed(f"{name}={value}" for name, value in found.items())
        remedy = "unset them unless you mean them (docker run without -e ...); the image must set none"
        return failed(text, "no tuning variables", remedy, Owner.START, variables=found)
    return passed("none is set", "no tuning variables")


def probe_environment() -> Facts:
    """The variables the image sets for engines and hooks."""
    names = ("NVIDIA_DRIVER_CAPABILITIES", "PYTORCH_VERSION", *CONSTRAINTS)
    values = {name: os.environ.get(name, "") for name in names}
    return {**values, "missing": [name for name in CONSTRAINTS if not Path(values[name] or "/none").is_file()]}


def evaluate_environment(facts: Facts, claims: Claims) -> Verdict:
    """Variables that contradict the packages mislead every build on top of this image."""
    if not inside(claims):
        return skipped(NOT_AN_IMAGE)
    wrong = []
    granted = str(facts["NVIDIA_DRIVER_CAPABILITIES"]).split(",")
    if "all" not in granted and not {"compute", "utility"} <= set(granted):
        wrong.append(f"NVIDIA_DRIVER_CAPABILITIES={facts['NVIDIA_DRIVER_CAPABILITIES']}")
    torch = claimed_version(claims, "torch")
    if not versions.same(str(facts["PYTORCH_VERSION"]), torch):
        wrong.append(f"PYTORCH_VERSION={facts['PYTORCH_VERSION']}")
    wrong += [f"{name}={facts[name]}" for name in facts["missing"]]
    expected = f"compute,utility; PYTORCH_VERSION={torch}; a constraints file that exists"
    if wrong:
        remedy = "do not override the image's variables at start; if nobody did, rebuild the image"
        return failed(f"wrong or missing: {listed(wrong)}", expected, remedy, Owner.START)
    return passed(f"PYTORCH_VERSION={facts['PYTORCH_VERSION']}, capabilities {listed(granted)}", expected)


_check = partial(Check, group="image", level=Level.IMAGE)

CHECKS: List[Check] = [
    _check(
        id="image-env",
        title="The image's variables say the truth",
        probe=probe_environment,
        evaluate=evaluate_environment,
        why="Hooks and builds on top trust these variables; one that contradicts the packages misleads them.",
        repairs=("do not override them at start", remedies.REBUILD),
        quick=True,
        needs_claims=True,
    ),
    _check(
        id="tuning-env",
        group="environment",
        title="No tuning variables",
        probe=probe_tuning,
        evaluate=evaluate_tuning,
        why="Tuning variables change speed or results, and one baked into an image beats the user's under pyxis.",
        repairs=("docker run without -e NAME=...", "remove it from the Dockerfile"),
    ),
]
