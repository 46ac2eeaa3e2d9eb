"""A GPU's memory is given and taken back, and NCCL starts on it."""

from __future__ import annotations

import tempfile
from functools import partial
from typing import Any, Dict, List

from verify import remedies
from verify.checks.compute.common import EXPLAINED, GPU_WORKS, attempt_on_gpu, unmeasured
from verify.model import Check, Claims, Facts, Isolation, Level, Owner, Verdict
from verify.verdicts import failed, passed

MIB = 2**20
BLOCK_MIB = 256
MEMORY_EXPECTED = f"each GPU gives {BLOCK_MIB} MiB, holds what is written there and takes it all back"
NCCL_EXPECTED = "NCCL starts with one rank and its all-reduce keeps the values"


def probe_memory() -> Facts:
    """Allocate, fill, read and free a block on each GPU."""
    return attempt_on_gpu(_measure_memory)


def _measure_memory() -> Dict[str, Any]:
    import torch

    return {"devices": [_use_block(index) for index in range(torch.cuda.device_count())]}


def _use_block(index: int) -> Dict[str, Any]:
    import torch

    device = f"cuda:{index}"
    free, total = torch.cuda.mem_get_info(device)
    block = torch.full((BLOCK_MIB * MIB,), 3, dtype=torch.uint8, device=device)
    wrong = int((block != 3).sum())
    held = torch.cuda.memory_allocated(device)
    del block
    torch.cuda.empty_cache()
    kept = torch.cuda.memory_reserved(device)
    return {"device": device, "free": free, "total": total, "wrong": wrong, "held": held, "kept": kept}


def evaluate_memory(facts: Facts, _claims: Claims) -> Verdict:
    """Pass if on each GPU the values held and nothing stayed reserved."""
    remedy = "test the GPU's memory (dcgmi diag -r 3) and look for Xid messages in the host's kernel log"
    verdict = unmeasured(facts, MEMORY_EXPECTED, remedy, Owner.HOST)
    if verdict:
        return verdict
    bad = [device for device in facts["devices"] if _is_bad(device)]
    observed = "; ".join(
        f"{device['device']}: {device['free'] // MIB} of {device['total'] // MIB} MiB free, "
        f"{device['wrong']} wrong bytes, {device['kept'] // MIB} MiB not returned"
        for device in bad or facts["devices"]
    )
    if bad or not facts["devices"]:
        return failed(observed or "no device", MEMORY_EXPECTED, remedy, Owner.HOST)
    return passed(observed, MEMORY_EXPECTED)


def _is_bad(device: Any) -> bool:
    return bool(device["wrong"] or device["kept"] or device["held"] < BLOCK_MIB * MIB)


def probe_nccl() -> Facts:
    """Start NCCL with this process as its only rank and reduce a vector on the first GPU."""
    return attempt_on_gpu(_reduce)


def _reduce() -> Dict[str, Any]:
    import torch
    from torch import distributed

    values = torch.arange(1000.0, device="cuda:0")
    with tempfile.TemporaryDirectory(prefix="gpuyard-nccl-") as folder:
        store = distributed.FileStore(f"{folder}/store", 1)
        distributed.init_process_group("nccl", store=store, rank=0, world_size=1)
        try:
            distributed.all_reduce(values)
            torch.cuda.synchronize()
        finally:
            distributed.destroy_process_group()
    version = ".".join(map(str, torch.cuda.nccl.version()))
    return {"version": version, "equal": bool((values.cpu() == torch.arange(1000.0)).all())}


def evaluate_nccl(facts: Facts, _claims: Claims) -> Verdict:
    """Pass if the values came through the reduction unchanged."""
    remedy = "run again with NCCL_DEBUG=INFO; look for NCCL_* variables and a full /dev/shm (--shm-size=8g)"
    verdict = unmeasured(facts, NCCL_EXPECTED, remedy, Owner.START)
    if verdict:
        return verdict
    observed = f"NCCL {facts['version']} on 1 rank, values {'kept' if facts['equal'] else 'changed'}"
    if not facts["equal"]:
        return failed(observed, NCCL_EXPECTED, remedy, Owner.HOST)
    return passed(observed, NCCL_EXPECTED)


_check = partial(Check, level=Level.GPU, needs=GPU_WORKS, isolation=Isolation.TORCH)

CHECKS: List[Check] = [
    _check(
        id="cuda-memory",
        explained_by=("gpu-memory", "gpu-health"),
        group="gpu",
        title="GPU memory is given and taken back",
        probe=probe_memory,
        evaluate=evaluate_memory,
        timeout=60.0,
        why="GPU memory must hold what was written, and be returned when it is freed.",
        repairs=("on the host: nvidia-smi shows which process holds memory",),
    ),
    _check(
        id="nccl-one-rank",
        explained_by=EXPLAINED,
        group="nccl",
        title="NCCL starts on one GPU",
        probe=probe_nccl,
        evaluate=evaluate_nccl,
        timeout=90.0,
        why="If NCCL does not start on one GPU, it does not start on several.",
        repairs=("NCCL_DEBUG=INFO verify --only nccl-one-rank --json - shows where it stops", remedies.SHM),
    ),
]
