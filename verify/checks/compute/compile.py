"""torch.compile builds a kernel on the CPU and on a GPU, and the kernel computes what eager mode does."""

from __future__ import annotations

import os
import tempfile
from functools import partial
from typing import Any, Dict, List

from verify.checks.compute.common import EXPLAINED, GPU_WORKS, attempt, attempt_on_gpu, unmeasured
from verify.model import Check, Claims, Facts, Isolation, Level, Owner, Verdict
from verify.verdicts import failed, inapplicable, passed

TOLERANCE = 1e-5
TRITONS_FIRST = (7, 0)
"""The oldest compute capability that triton builds kernels for."""
EXPECTED = f"torch.compile gives eager's values within {TOLERANCE:g}"
NO_COMPILER = ("InvalidCxxCompiler", "Failed to find C compiler", "No working C++ compiler")
INSTALL = "the C++ compiler is missing from PATH: use an image with g++ (base has it) or apt-get install g++"


def probe_cpu() -> Facts:
    """Compile for the CPU."""
    return attempt(lambda: _compile("cpu"))


def probe_gpu() -> Facts:
    """Compile for the first GPU, where triton supports it."""
    return attempt_on_gpu(_compile_on_gpu)


def _compile_on_gpu() -> Dict[str, Any]:
    import torch

    capability = list(torch.cuda.get_device_capability(0))
    return {"capability": capability, **(_compile("cuda:0") if tuple(capability) >= TRITONS_FIRST else {})}


def _compile(device: str) -> Dict[str, Any]:
    """Compile with caches in a fresh folder: a kernel from an earlier run would prove nothing."""
    with tempfile.TemporaryDirectory(prefix="gpuyard-compile-") as cache:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = f"{cache}/inductor"
        os.environ["TRITON_CACHE_DIR"] = f"{cache}/triton"
        # As torchhost sets them; here for a probe that runs without it.
        os.environ["TORCHINDUCTOR_VEC_ISA_OK"] = "0"
        os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
        return _compare(device, cache)


def _compare(device: str, cache: str) -> Dict[str, Any]:
    import torch

    inputs = torch.linspace(-2, 2, 1000, device=device)
    # A precompiled header pays off from the second kernel on; some versions have no such option.
    options = {"cpp_cache_precompile_headers": False}
    known = torch._inductor.list_options()
    given = {name: value for name, value in options.items() if name in known}
    compiled = torch.compile(_function, fullgraph=True, options=given)
    difference = float((compiled(inputs) - _function(inputs)).abs().max())
    files = sum(len(names) for _, _, names in os.walk(cache))
    return {"device": device, "difference": difference, "files": files}


def _function(values: Any) -> Any:
    return (values.sin() * values.exp() + 1).relu()


def evaluate(owner: Owner, facts: Facts, _claims: Claims) -> Verdict:
    """Pass if a kernel was built and is right; a missing compiler is named as such."""
    capability = tuple(facts.get("capability") or TRITONS_FIRST)
    if capability < TRITONS_FIRST:
        has, needs = (".".join(map(str, pair)) for pair in (capability, TRITONS_FIRST))
        text = f"this GPU has compute capability {has}, triton needs {needs}"
        return inapplicable(text, "train in eager mode here; torch.compile on the CPU is checked by torch-compile")
    error = str(facts.get("error", ""))
    if any(text in error for text in NO_COMPILER):
        return failed(error.strip().splitlines()[0], EXPECTED, INSTALL, Owner.IMAGE)
    verdict = unmeasured(facts, EXPECTED, "verify explain torch-compile; TORCH_LOGS=+inductor says more", owner)
    if verdict:
        return verdict
    observed = f"{facts['device']}: differs by {facts['difference']:.1e}, {facts['files']} files built"
    if not facts["difference"] <= TOLERANCE or not facts["files"]:
        return failed(observed, EXPECTED, "rebuild the image from its lock: gpuyard build", owner)
    return passed(observed, EXPECTED)


_check = partial(Check, isolation=Isolation.TORCH, timeout=240.0)

CHECKS: List[Check] = [
    _check(
        id="torch-compile",
        explained_by=EXPLAINED,
        group="compile",
        level=Level.CPU,
        title="torch.compile works on the CPU",
        probe=probe_cpu,
        evaluate=partial(evaluate, Owner.IMAGE),
        needs=("compiler",),
        why="Inductor must find a compiler, and its kernel must give the values of eager mode.",
        repairs=("verify --only compiler", "export TORCHINDUCTOR_CACHE_DIR=/tmp/inductor"),
    ),
    _check(
        id="torch-compile-gpu",
        explained_by=EXPLAINED,
        group="gpu",
        level=Level.GPU,
        title="torch.compile works on the GPU",
        probe=probe_gpu,
        evaluate=partial(evaluate, Owner.IMAGE),
        needs=GPU_WORKS,
        why="Triton needs a C compiler and the driver's library to build its first kernel.",
        repairs=("verify --only compiler,libcuda",),
    ),
]
