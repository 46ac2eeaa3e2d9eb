"""What probes on a device share: the look for a GPU, and errors as facts instead of exceptions."""

from __future__ import annotations

from typing import Any, Callable, Dict, Optional

from verify.model import Facts, Owner, Verdict
from verify.probes.gpu_signs import any_sign, gpu_signs, no_gpu
from verify.verdicts import failed

Measure = Callable[[], Dict[str, Any]]

GPU_WORKS = ("torch-cuda", "gpu-arch")
"""Checks without whose pass no kernel can run."""

EXPLAINED = ("decoys", "lock", "user-site")
"""Checks whose failure explains wrong values and failed imports: other libraries or other packages than the image's."""

REMEDIES = (
    (
        "no kernel image",
        "this image has no code for this GPU: take the line whose arch list has it",
        Owner.IMAGE,
    ),
    ("No module named", "rebuild the image from its lock; a package is missing", Owner.IMAGE),
    ("undefined symbol", "rebuild the image: two packages of different builds are mixed", Owner.IMAGE),
    ("out of memory", "free the GPU: another process holds its memory (nvidia-smi shows which)", Owner.HOST),
)
"""What an error text means, what to do about it and who has to."""


def attempt(measure: Measure) -> Facts:
    """The facts, or the error as one: what breaks here is the very thing that is checked."""
    try:
        return measure()
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}


def attempt_on_gpu(measure: Measure) -> Facts:
    """The facts with CUDA started first; without a sign of a GPU the facts of that search.

    Never falls back to the CPU: where CUDA does not start, that is the error.
    """
    signs = gpu_signs()
    if not any_sign(signs):
        return {**signs, "no_gpu": True}
    return attempt(lambda: _with_cuda(measure))


def _with_cuda(measure: Measure) -> Dict[str, Any]:
    import torch

    torch.cuda.init()
    if torch.cuda.device_count() == 0:
        raise RuntimeError("CUDA started and found no device")
    return measure()


def unmeasured(facts: Facts, expected: str, remedy: str, owner: Owner) -> Optional[Verdict]:
    """The verdict where there are no measurements to judge: no GPU, or an error; None where there are."""
    if facts.get("no_gpu"):
        return no_gpu(facts)
    if "error" not in facts:
        return None
    error = str(facts["error"])
    for text, known_remedy, known_owner in REMEDIES:
        if text in error:
            return failed(error, expected, known_remedy, known_owner)
    return failed(error, expected, remedy, owner)
