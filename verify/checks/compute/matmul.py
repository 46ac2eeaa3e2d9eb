"""Matrix products on every device against the CPU's in fp64."""

from __future__ import annotations

from functools import partial
from typing import Any, Dict, List, Mapping, Optional

from verify import remedies
from verify.checks.compute.common import EXPLAINED, GPU_WORKS, attempt, attempt_on_gpu, unmeasured
from verify.model import Check, Claims, Facts, Isolation, Level, Owner, Verdict
from verify.verdicts import failed, passed

SIZE = 256
TOLERANCES: Mapping[str, float] = {"fp32": 1e-5, "tf32": 2e-3, "bf16": 1e-2, "fp16": 2e-3}
"""Largest relative error (Frobenius norm) against fp64: a few roundings of each format."""
EXPECTED = "relative error against fp64 at most " + ", ".join(f"{name} {bound:g}" for name, bound in TOLERANCES.items())


def probe_cpu() -> Facts:
    """Multiply on the CPU in each format."""
    return attempt(lambda: {"devices": [_measure("cpu", "", bf16=True)]})


def probe_gpu() -> Facts:
    """Multiply on each GPU in each format that it has in hardware."""
    return attempt_on_gpu(lambda: {"devices": _measure_gpus()})


def _measure_gpus() -> List[Dict[str, Any]]:
    import torch

    measured = []
    for index in range(torch.cuda.device_count()):
        with torch.cuda.device(index):
            bf16 = torch.cuda.is_bf16_supported(including_emulation=False)
        tf32 = torch.cuda.get_device_capability(index) >= (8, 0)
        measured.append(_measure(f"cuda:{index}", torch.cuda.get_device_name(index), bf16, tf32))
    return measured


def _measure(device: str, name: str, bf16: bool, tf32: bool = False) -> Dict[str, Any]:
    """The errors by format; None for bf16 where the device lacks it, and no tf32 where it lacks that."""
    import torch

    formats = {"fp32": torch.float32, "tf32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
    errors = {
        label: product_error(device, dtype, label == "tf32") if label != "bf16" or bf16 else None
        for label, dtype in formats.items()
        if label != "tf32" or tf32
    }
    return {"device": device, "name": name, "errors": errors}


def product_error(device: str, dtype: Any, tf32: bool = False) -> float:
    """How far a seeded product in ``dtype`` on ``device`` is from the same product in fp64."""
    import torch

    # Said for every product: a user's setting for TF32 would be measured instead of fp32.
    torch.set_float32_matmul_precision("high" if tf32 else "highest")
    generator = torch.Generator().manual_seed(7)
    left, right = (torch.randn(SIZE, SIZE, generator=generator).to(dtype) for _ in range(2))
    product = left.to(device) @ right.to(device)
    return relative_error(product.double().cpu(), left.double() @ right.double())


def relative_error(found: Any, true: Any) -> float:
    """The norm of the difference over the norm of the truth; infinite when values are not finite."""
    error = float((found - true).norm() / true.norm())
    return error if error < float("inf") else 1e300


def evaluate(owner: Owner, facts: Facts, _claims: Claims) -> Verdict:
    """Pass if each device is within the bound in each format that it has."""
    remedy = "the values are wrong, not only slow: " + _advice(owner)
    verdict = unmeasured(facts, EXPECTED, remedy, owner)
    if verdict:
        return verdict
    devices: List[Mapping[str, Any]] = facts["devices"]
    observed = "; ".join(map(_summary, devices))
    wrong = [device["device"] for device in devices if not _within(device["errors"])]
    if wrong or not devices:
        return failed(f"wrong on {', '.join(wrong) or 'no device'}: {observed}", EXPECTED, remedy, owner)
    return passed(observed, EXPECTED)


def _advice(owner: Owner) -> str:
    if owner is Owner.HOST:
        return "take the GPU out of use and test it (dcgmi diag -r 3)"
    return "rebuild the image from its lock; if it stays, test the machine's memory and CPU"


def _within(errors: Mapping[str, Optional[float]]) -> bool:
    measured = {name: error for name, error in errors.items() if error is not None}
    return bool(measured) and all(error <= TOLERANCES[name] for name, error in measured.items())


def _summary(device: Mapping[str, Any]) -> str:
    errors = ", ".join(
        f"{name} {error:.1e}" if error is not None else f"{name} not in hardware"
        for name, error in device["errors"].items()
    )
    return f"{device['device']} {device['name']}".strip() + f": {errors}"


_check = partial(Check, isolation=Isolation.TORCH, timeout=90.0)

CHECKS: List[Check] = [
    _check(
        id="matmul-cpu",
        explained_by=EXPLAINED,
        group="compute",
        level=Level.CPU,
        title="Matrix products on the CPU have the right values",
        probe=probe_cpu,
        evaluate=partial(evaluate, Owner.IMAGE),
        why="Wrong numbers train a wrong model without an error, so products are compared with exact ones.",
        repairs=(remedies.LOCKED,),
    ),
    _check(
        id="matmul-gpu",
        explained_by=("gpu-health", *EXPLAINED),
        group="gpu",
        level=Level.GPU,
        title="Matrix products on every GPU have the right values",
        probe=probe_gpu,
        evaluate=partial(evaluate, Owner.HOST),
        needs=GPU_WORKS,
        why="A kernel must run on every GPU and give the CPU's values, in each precision.",
        repairs=("verify --only driver", "on the host: sudo dmesg | grep Xid; nvidia-smi -q -d ECC"),
    ),
]
