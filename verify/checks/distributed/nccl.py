"""NCCL with one rank per GPU: values, gradients, bandwidth, and a second try without direct access after a hang."""

from __future__ import annotations

import os
from dataclasses import asdict
from typing import Any, Dict, List, Optional

from verify import remedies
from verify.checks.compute.common import EXPLAINED, GPU_WORKS
from verify.checks.distributed.ranks import VALUES, advice, facts_of, gradients_agree, surroundings
from verify.engine.isolate import run_forked
from verify.engine.ranks import Work, run_ranks, troubles
from verify.model import Check, Claims, Facts, Isolation, Level, Owner, Verdict
from verify.probes.gpu_signs import any_sign, gpu_signs, no_gpu
from verify.verdicts import failed, passed, skipped

COUNT_TIMEOUT = 60.0
NCCL_TIMEOUT = 90.0
"""For one try; longer than the process group's own limit, so that NCCL can say what it waits for."""
FLOOR = 1.0
"""GB/s of bus bandwidth: far below PCIe 3.0 with eight lanes and a detour over the host's memory."""
SPEED = f"{VALUES}, and all-reduce reaches {FLOOR:g} GB/s"
SYS_NICE = "NUMA calls are refused here, so NCCL allocates from /dev/shm: --cap-add SYS_NICE and --shm-size=8g"


def probe_gpus(work: Optional[Work] = None) -> Facts:
    """Run one rank per GPU with NCCL; after a hang, once more without direct access between GPUs."""
    signs = gpu_signs()
    if not any_sign(signs):
        return {**signs, "no_gpu": True}
    # Counted in a child: a process that has touched CUDA cannot fork ranks that use it.
    outcome = run_forked(_count, COUNT_TIMEOUT)
    if outcome.facts is None:
        return {**signs, "uncounted": troubles([asdict(outcome)])[0][0].replace("rank 0", "the process")}
    seen = outcome.facts
    if seen["count"] < 2:
        return {**signs, **seen}
    from verify.reference import collectives

    return {**measure_gpus(work or collectives.nccl_rank, seen["count"], NCCL_TIMEOUT), **seen}


def _count() -> Dict[str, Any]:
    """The GPUs, and between how many of all ordered pairs the driver allows direct access."""
    import torch

    count = torch.cuda.device_count()
    pairs = [(one, other) for one in range(count) for other in range(count) if one != other]
    return {"count": count, "pairs": len(pairs), "direct": sum(torch.cuda.can_device_access_peer(*p) for p in pairs)}


def measure_gpus(work: Work, count: int, timeout: float) -> Dict[str, Any]:
    """The ranks' outcomes and, after a hang, whether it goes away with NCCL_P2P_DISABLE=1."""
    ranks = run_ranks(work, count, timeout)
    without_p2p = None
    if troubles(ranks)[1]:
        os.environ["NCCL_P2P_DISABLE"] = "1"
        without_p2p = not troubles(run_ranks(work, count, timeout))[0]
        del os.environ["NCCL_P2P_DISABLE"]
    return {"ranks": ranks, "without_p2p": without_p2p, **surroundings()}


def evaluate_gpus(facts: Facts, _claims: Claims) -> Verdict:
    """Pass if every rank saw its GPU, all values and gradients are right, and the bandwidth was measured."""
    if facts.get("no_gpu"):
        return no_gpu(facts)
    if facts.get("uncounted"):
        remedy = "dmesg on the host (Xid); then run it alone: verify --only cuda-context,gpu-devices"
        return failed(f"the GPUs could not be counted: {facts['uncounted']}", VALUES, remedy, Owner.HOST)
    if facts["count"] < 2:
        return skipped(f"{facts['count']} GPU: collectives between GPUs need two", "give the container more GPUs")
    trouble = _gpu_trouble(facts)
    if trouble:
        return trouble
    ranks = facts_of(facts)
    text, right = gradients_agree(ranks)
    wrong = [f"rank {n} ({r['device']}): {', '.join(r['wrong'])}" for n, r in enumerate(ranks) if r["wrong"]]
    if wrong or not right:
        return failed("; ".join([*wrong, text]), VALUES, "test the GPUs: dcgmi diag -r 3", Owner.HOST)
    slowest = min(rank["gb_per_second"] for rank in ranks)
    peers = f"direct access between {facts['direct']} of {facts['pairs']} pairs"
    speed = f"all-reduce {slowest:g} GB/s (floor {FLOOR:g}), {peers}"
    if slowest < FLOOR:
        remedy = f"nvidia-smi topo -m and nvidia-smi nvlink --status on the host; {SYS_NICE}"
        return failed(f"{len(ranks)} GPUs: {speed}", SPEED, remedy, Owner.HOST)
    note = f" ({SYS_NICE})" if facts["numa_refused"] else ""
    return passed(f"{len(ranks)} GPUs: all values right, {speed}, {text}{note}", SPEED)


def _gpu_trouble(facts: Facts) -> Optional[Verdict]:
    """The verdict where a rank hung, died or failed; None where all answered."""
    said = "; ".join(troubles(facts["ranks"])[0])
    if facts["without_p2p"]:
        text = f"ranks hang with direct access between GPUs, and not without it: {said}"
        remedy = "export NCCL_P2P_DISABLE=1 for now; on the host: switch off ACS in the BIOS, or iommu=pt"
        return failed(text, VALUES, remedy, Owner.HOST)
    if not said:
        return None
    remedy = advice(said, facts) + (f"; {SYS_NICE}" if facts["numa_refused"] else "")
    return failed(said, VALUES, remedy, Owner.START)


CHECKS: List[Check] = [
    Check(
        id="nccl-all-gpus",
        group="nccl",
        level=Level.MULTI_GPU,
        title="NCCL gives right values on all GPUs, and is not too slow",
        isolation=Isolation.TORCH,
        explained_by=("shm-size", "interface", *EXPLAINED),
        probe=probe_gpus,
        evaluate=evaluate_gpus,
        needs=(*GPU_WORKS, "nccl-one-rank"),
        timeout=COUNT_TIMEOUT + 2 * NCCL_TIMEOUT + 60,
        why="NCCL hangs where ACS or an IOMMU breaks direct access between GPUs; the check then tries without it.",
        repairs=(
            "export NCCL_P2P_DISABLE=1 to confirm; then switch ACS off in the BIOS",
            remedies.SHM,
            "docker run --cap-add SYS_NICE ...",
        ),
    ),
]
