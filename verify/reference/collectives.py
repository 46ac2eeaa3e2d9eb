"""What each rank of a distributed check does: collectives with known results, and DDP's gradients."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any, Dict, List

import torch
from torch import distributed, nn

LENGTH = 1000
BANDWIDTH_MIB = 64
ROUNDS = 5


def gloo_rank(rank: int, world: int, port: int) -> Dict[str, Any]:
    """Sum, gather and broadcast on the CPU."""
    _join("gloo", rank, world, port)
    return _leave({"wrong": wrong_values(rank, world, "cpu")})


def ddp_rank(rank: int, world: int, port: int) -> Dict[str, Any]:
    """The gradients of one step with data of this rank's own, and those of all data on one process."""
    _join("gloo", rank, world, port)
    return _leave(ddp_gradients(rank, world, "cpu"))


def nccl_rank(rank: int, world: int, port: int) -> Dict[str, Any]:
    """The same on this rank's GPU, with the bandwidth of a large sum."""
    torch.cuda.set_device(rank)
    device = f"cuda:{rank}"
    _join("nccl", rank, world, port)
    wrong = wrong_values(rank, world, device)
    name = torch.cuda.get_device_name(rank)
    facts = {"wrong": wrong, "device": name, "gb_per_second": bandwidth(world, device)}
    return _leave({**facts, **ddp_gradients(rank, world, device)})


def _join(backend: str, rank: int, world: int, port: int) -> None:
    address = f"tcp://127.0.0.1:{port}"
    limit = timedelta(seconds=60)
    distributed.init_process_group(backend, init_method=address, rank=rank, world_size=world, timeout=limit)


def _leave(facts: Dict[str, Any]) -> Dict[str, Any]:
    """Wait for the others. With gloo that is all: in about one of ten forked pairs, taking the group down hangs."""
    distributed.barrier()
    if distributed.get_backend() != "gloo":
        distributed.destroy_process_group()
    return facts


def wrong_values(rank: int, world: int, device: str) -> List[str]:
    """The collectives whose result on this rank is not what arithmetic says."""
    ramp = torch.arange(float(LENGTH), device=device)
    total = ramp + rank
    distributed.all_reduce(total)
    parts = [torch.empty_like(ramp) for _ in range(world)]
    distributed.all_gather(parts, ramp + rank)
    sent = ramp + rank
    distributed.broadcast(sent, src=world - 1)
    right = {
        "all-reduce": bool((total == world * ramp + sum(range(world))).all()),
        "all-gather": all(bool((part == ramp + other).all()) for other, part in enumerate(parts)),
        "broadcast": bool((sent == ramp + world - 1).all()),
    }
    if device != "cpu":
        share = torch.empty(LENGTH, device=device)
        distributed.reduce_scatter_tensor(share, (ramp + rank).repeat(world))
        right["reduce-scatter"] = bool((share == world * ramp + sum(range(world))).all())
    return [name for name, holds in right.items() if not holds]


def bandwidth(world: int, device: str) -> float:
    """Bus bandwidth of an all-reduce in GB/s, as nccl-tests counts it."""
    block = torch.ones(BANDWIDTH_MIB * 2**20 // 4, device=device)
    distributed.all_reduce(block)
    torch.cuda.synchronize()
    started = time.perf_counter()
    for _ in range(ROUNDS):
        distributed.all_reduce(block)
    torch.cuda.synchronize()
    seconds = (time.perf_counter() - started) / ROUNDS
    return round(float(block.nbytes) / seconds * 2 * (world - 1) / world / 1e9, 1)


def ddp_gradients(rank: int, world: int, device: str) -> Dict[str, Any]:
    """This rank's gradients after one DDP step, as a sum to compare, and how far one process is from them."""
    data = torch.randn(world, 8, 16, generator=torch.Generator().manual_seed(7)).to(device)
    alone, parallel = _model(device), nn.parallel.DistributedDataParallel(_model(device))
    parallel(data[rank]).square().mean().backward()
    alone(data.flatten(0, 1)).square().mean().backward()
    pairs = list(zip(parallel.module.parameters(), alone.parameters()))  # noqa: B905 - Python 3.9 has no strict
    difference = max(float((one.grad - other.grad).abs().max()) for one, other in pairs)
    return {"gradients": [float(one.grad.double().sum()) for one, _ in pairs], "difference": difference}


def _model(device: str) -> Any:
    torch.manual_seed(7)
    return nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 4)).to(device)
