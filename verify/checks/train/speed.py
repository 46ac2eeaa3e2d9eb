"""How fast mixed precision trains beside fp32 on this GPU: not slower where the GPU has tensor cores."""

from __future__ import annotations

import time
from typing import Any, Dict, List

from verify.checks.compute.common import GPU_WORKS, attempt_on_gpu, unmeasured
from verify.model import Check, Claims, Facts, Isolation, Level, Owner, Verdict
from verify.verdicts import failed, passed

WIDTH, BATCH, STEPS, WARM = 4096, 2048, 10, 3
TENSOR_CORES = (7, 0)
"""The first compute capability with tensor cores; before it there is nothing that would make half precision faster."""
EXPECTED = "finite losses; with tensor cores (compute capability 7.0 and newer) AMP at least as fast as fp32"
REMEDY = "nvidia-smi -q -d PERFORMANCE on the host: look for throttling; end other processes on the GPU"


def probe() -> Facts:
    """Time training steps of one wide network in fp32 without TF32 and under autocast on the first GPU."""
    return attempt_on_gpu(_measure)


def _measure() -> Dict[str, Any]:
    import torch

    bf16 = torch.cuda.is_bf16_supported(including_emulation=False)
    lower = torch.bfloat16 if bf16 else torch.float16
    capability = list(torch.cuda.get_device_capability(0))
    rates = {"fp32_rate": _rate(None), "amp_rate": _rate(lower)}
    return {"amp": "bf16" if bf16 else "fp16", "capability": capability, **rates}


def _rate(lower: Any) -> float:
    """Samples per second, 0 when a loss was not finite."""
    import torch

    torch.set_float32_matmul_precision("highest")
    torch.manual_seed(7)
    layers = [torch.nn.Linear(WIDTH, WIDTH), torch.nn.GELU(), torch.nn.Linear(WIDTH, WIDTH)]
    model = torch.nn.Sequential(*layers).to("cuda:0")
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    inputs = torch.randn(BATCH, WIDTH, device="cuda:0")
    started, loss = 0.0, torch.zeros(())
    for step in range(WARM + STEPS):
        if step == WARM:
            torch.cuda.synchronize()
            started = time.perf_counter()
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=lower or torch.bfloat16, enabled=lower is not None):
            loss = model(inputs).float().square().mean()
        loss.backward()
        optimizer.step()
    torch.cuda.synchronize()
    seconds = time.perf_counter() - started
    return BATCH * STEPS / seconds if bool(torch.isfinite(loss)) else 0.0


def evaluate(facts: Facts, _claims: Claims) -> Verdict:
    """Pass with both speeds and their ratio."""
    verdict = unmeasured(facts, EXPECTED, REMEDY, Owner.HOST)
    if verdict:
        return verdict
    full, mixed = facts["fp32_rate"], facts["amp_rate"]
    if not full or not mixed:
        return failed("a loss was not finite", EXPECTED, "test the GPU: dcgmi diag -r 3", Owner.HOST)
    text = f"fp32 {full:.0f} samples/s, {facts['amp']} autocast {mixed:.0f} samples/s: {mixed / full:.1f} times"
    if tuple(facts["capability"]) < TENSOR_CORES:
        return passed(f"{text}; no tensor cores here, so the speed is not judged", EXPECTED)
    if mixed < full:
        return failed(text, EXPECTED, REMEDY, Owner.HOST)
    return passed(text, EXPECTED, ratio=round(mixed / full, 2))


CHECKS: List[Check] = [
    Check(
        id="amp-speed",
        explained_by=("gpu-health", "gpu-memory"),
        group="gpu",
        level=Level.GPU,
        title="Mixed precision is not slower than fp32",
        probe=probe,
        evaluate=evaluate,
        needs=GPU_WORKS,
        isolation=Isolation.TORCH,
        timeout=120.0,
        why="If mixed precision is slower than fp32, the tensor cores are not used or the GPU is throttled.",
        repairs=("on the host: nvidia-smi -q -d PERFORMANCE",),
    ),
]
