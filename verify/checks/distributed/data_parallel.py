"""nn.DataParallel over all GPUs gives what one GPU gives: outputs, gradients, and every GPU took part."""

from __future__ import annotations

import copy
from typing import Any, Callable, Dict, List

from verify.checks.compute.common import GPU_WORKS, attempt_on_gpu, unmeasured
from verify.model import Check, Claims, Facts, Isolation, Level, Owner, Verdict
from verify.verdicts import failed, passed, skipped

TOLERANCE = 1e-5
ROWS = 8
"""Samples for each GPU."""
EXPECTED = f"outputs and gradients within {TOLERANCE:g} of one GPU's, every GPU taking its share of the batch"
REMEDY = "verify --only nccl-all-gpus; prefer DistributedDataParallel; export NCCL_P2P_DISABLE=1 to confirm a bad link"


def probe() -> Facts:
    """Run one step with DataParallel over all GPUs, and the same step on the first GPU alone."""
    return attempt_on_gpu(_measure)


def _measure() -> Dict[str, Any]:
    import torch

    count = torch.cuda.device_count()
    if count < 2:
        return {"count": count}
    return {"count": count, **compare(torch.nn.DataParallel, "cuda:0", count)}


def compare(wrap: Callable[[Any], Any], device: str, count: int) -> Dict[str, Any]:
    """How far the wrapped model's step is from the plain one's, and the devices that took part."""
    import torch

    torch.manual_seed(7)
    alone = _network(torch).to(device)
    together, seen = copy.deepcopy(alone), set()
    together.register_forward_hook(lambda _module, _given, output: seen.add(str(output.device)))
    data = torch.randn(ROWS * count, 16).to(device)
    found, true = wrap(together)(data), alone(data)
    found.square().mean().backward()
    true.square().mean().backward()
    pairs = zip(together.parameters(), alone.parameters())  # noqa: B905 - Python 3.9 has no strict
    gradient = max(float((one.grad - other.grad).abs().max()) for one, other in pairs)
    same_shape = found.shape == true.shape
    output = float((found - true).abs().max()) if same_shape else float("inf")
    return {"devices": sorted(seen), "output": output, "gradient": gradient}


def _network(torch: Any) -> Any:
    return torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.Tanh(), torch.nn.Linear(32, 4))


def evaluate(facts: Facts, _claims: Claims) -> Verdict:
    """Pass if every GPU took part and nothing differs from one GPU; both differences are shown."""
    verdict = unmeasured(facts, EXPECTED, REMEDY, Owner.HOST)
    if verdict:
        return verdict
    if facts["count"] < 2:
        return skipped(f"{facts['count']} GPU: DataParallel needs two", "give the container more GPUs")
    text = f"{len(facts['devices'])} of {facts['count']} GPUs took part, outputs differ by {facts['output']:.1e}, "
    text += f"gradients by {facts['gradient']:.1e}"
    right = facts["output"] <= TOLERANCE and facts["gradient"] <= TOLERANCE
    if not right or len(facts["devices"]) != facts["count"]:
        return failed(text, EXPECTED, REMEDY, Owner.HOST)
    return passed(text, EXPECTED)


CHECKS: List[Check] = [
    Check(
        id="data-parallel",
        group="nccl",
        level=Level.MULTI_GPU,
        title="DataParallel gives the result of one GPU",
        probe=probe,
        evaluate=evaluate,
        needs=GPU_WORKS,
        isolation=Isolation.TORCH,
        timeout=120.0,
        why=(
            "DataParallel splits a batch over GPUs; a bad link between them, or a GPU that idles, changes the result."
        ),
        repairs=("verify --only nccl-all-gpus", "use DistributedDataParallel"),
    ),
]
