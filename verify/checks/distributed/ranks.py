"""Collectives and DDP: two ranks on the CPU, and one rank per GPU; a hang ends with a diagnosis."""

from __future__ import annotations

import os
import socket
from functools import partial
from typing import Any, Dict, List, Mapping, Optional, Tuple

from verify import remedies
from verify.checks.compute.common import GPU_WORKS
from verify.engine.isolate import run_forked
from verify.engine.ranks import Work, run_ranks, troubles
from verify.model import Check, Claims, Facts, Isolation, Level, Owner, Verdict
from verify.probes import system
from verify.probes.bus_error import bus_facts, space_advice
from verify.probes.gpu_signs import any_sign, gpu_signs, no_gpu
from verify.verdicts import failed, passed, skipped

TIMEOUT = 45.0
TOLERANCE = 1e-6
NCCL_TIMEOUT = 90.0
VALUES = "the collectives give the values that arithmetic does"
SYS_NICE = "NUMA calls are refused here, so NCCL allocates from /dev/shm: --cap-add SYS_NICE and --shm-size=8g"
GRADIENTS = f"gradients are equal on every rank and within {TOLERANCE:g} of one process with all data"


def probe_ranks(work: str) -> Facts:
    """Run two ranks with gloo on the loopback, both forked from a process that has torch."""
    from verify.reference import collectives

    return {"ranks": run_ranks(getattr(collectives, work), 2, TIMEOUT), **surroundings()}


def probe_torchrun() -> Facts:
    """Run two ranks under torchrun's own agent, which forks them, finds the port and collects the answers."""
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    config = LaunchConfig(
        1, 1, 2, run_id="verify", rdzv_backend="c10d", rdzv_endpoint="127.0.0.1:0", start_method="fork", max_restarts=0
    )
    answers = elastic_launch(config, torchrun_rank)()
    done = {"timed_out": False, "crash": "", "error": "", "output": ""}
    return {"ranks": [{**done, "facts": answers[rank]} for rank in sorted(answers)], **surroundings()}


def torchrun_rank() -> Dict[str, Any]:
    """One rank, which learns from the environment who it is."""
    from torch import distributed

    from verify.reference.collectives import wrong_values

    distributed.init_process_group("gloo")
    rank, world = distributed.get_rank(), distributed.get_world_size()
    wrong = wrong_values(rank, world, "cpu")
    distributed.barrier()
    return {"wrong": wrong}


def surroundings() -> Dict[str, Any]:
    """What a failed meeting of ranks is explained with."""
    names = [name for name in os.environ if name.startswith(("NCCL_", "GLOO_", "MASTER_", "TORCH_NCCL_"))]
    return {
        "variables": {name: os.environ[name] for name in names},
        "interfaces": [name for _, name in socket.if_nameindex()],
        "numa_refused": system.numa_refused(),
        **bus_facts(),
    }


def evaluate_values(facts: Facts, _claims: Claims) -> Verdict:
    """Pass if both ranks met and every value is right."""
    trouble = _trouble(facts, VALUES)
    if trouble:
        return trouble
    wrong = [f"rank {n}: {', '.join(f['wrong'])}" for n, f in enumerate(_facts(facts)) if f["wrong"]]
    if wrong:
        remedy = "rebuild the image from its lock: gpuyard build"
        return failed(f"wrong values: {'; '.join(wrong)}", VALUES, remedy, Owner.IMAGE)
    return passed(f"{len(facts['ranks'])} ranks met, all values right{_noise(facts)}", VALUES)


def evaluate_gradients(facts: Facts, _claims: Claims) -> Verdict:
    """Pass if DDP averaged the gradients over the ranks' different data."""
    trouble = _trouble(facts, GRADIENTS)
    if trouble:
        return trouble
    text, right = _gradients(_facts(facts))
    if not right:
        return failed(text, GRADIENTS, "rebuild the image from its lock: gpuyard build", Owner.IMAGE)
    return passed(text, GRADIENTS)


def _gradients(ranks: List[Mapping[str, Any]]) -> Tuple[str, bool]:
    equal = all(rank["gradients"] == ranks[0]["gradients"] for rank in ranks)
    worst = max(rank["difference"] for rank in ranks)
    words = "equal" if equal else "different"
    return f"gradients {words} on {len(ranks)} ranks, {worst:.1e} from one process", equal and worst <= TOLERANCE


def _facts(facts: Facts) -> List[Mapping[str, Any]]:
    return [rank["facts"] for rank in facts["ranks"]]


def _noise(facts: Facts) -> str:
    """errno 97 is IPv6 being tried first; where the ranks met all the same it means nothing."""
    seen = any("errno: 97" in rank["output"] or "errno 97" in rank["output"] for rank in facts["ranks"])
    return "; messages with errno 97 are harmless (no IPv6)" if seen else ""


def _trouble(facts: Facts, expected: str) -> Optional[Verdict]:
    """The verdict where ranks hung, died or failed, by the likeliest cause; None where all answered."""
    said, hung = troubles(facts["ranks"])
    if not said:
        return None
    text = "; ".join(said)
    if hung:
        text += f" for {TIMEOUT:g} s, until it was ended"
    return failed(text, expected, advice(text, facts), Owner.START)


def advice(text: str, facts: Facts) -> str:
    """What to try, by the words of the failure and the variables that are set."""
    chosen = {name: value for name, value in facts["variables"].items() if name.endswith("SOCKET_IFNAME")}
    if "Unable to find address" in text or any(value not in facts["interfaces"] for value in chosen.values()):
        names = ", ".join(f"{name}={value}" for name, value in chosen.items()) or "GLOO_SOCKET_IFNAME"
        return f"{names} names no interface here ({', '.join(facts['interfaces'])}): unset it"
    if "SIGBUS" in text or "No space left" in text:
        return space_advice(text, facts)
    others = [f"{name}={value}" for name, value in facts["variables"].items()]
    unset = f"unset {', '.join(others)}; then " if others else ""
    return f"{unset}verify --only network (hostname, interface); run again with NCCL_DEBUG=INFO"


def probe_gpus(work: Optional[Work] = None) -> Facts:
    """Run one rank per GPU with NCCL; after a hang once more without P2P, which tells whose fault it is."""
    signs = gpu_signs()
    if not any_sign(signs):
        return {**signs, "no_gpu": True}
    from verify.reference import collectives

    # Counted in a child: a process that has touched CUDA cannot fork ranks that use it.
    seen = run_forked(_count, 60.0).facts or {"count": 0}
    if seen["count"] < 2:
        return {**signs, **seen}
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
    if facts["count"] < 2:
        return skipped(f"{facts['count']} GPU: collectives between GPUs need two", "give the container more GPUs")
    if facts["without_p2p"]:
        text = (
            f"ranks hang with direct access between GPUs, and not without it: {'; '.join(troubles(facts['ranks'])[0])}"
        )
        remedy = "export NCCL_P2P_DISABLE=1 for now; on the host: switch off ACS in the BIOS, or iommu=pt"
        return failed(text, VALUES, remedy, Owner.HOST)
    said, _ = troubles(facts["ranks"])
    if said:
        remedy = advice("; ".join(said), facts)
        if facts["numa_refused"]:
            remedy += f"; {SYS_NICE}"
        return failed("; ".join(said), VALUES, remedy, Owner.START)
    ranks = _facts(facts)
    text, right = _gradients(ranks)
    wrong = [f"rank {n} ({r['device']}): {', '.join(r['wrong'])}" for n, r in enumerate(ranks) if r["wrong"]]
    if wrong or not right:
        return failed("; ".join([*wrong, text]), VALUES, "test the GPUs: dcgmi diag -r 3", Owner.HOST)
    slowest = min(rank["gb_per_second"] for rank in ranks)
    peers = f", direct access between {facts['direct']} of {facts['pairs']} pairs"
    note = f" ({SYS_NICE})" if facts["numa_refused"] else ""
    return passed(f"{len(ranks)} GPUs: all values right, all-reduce {slowest:g} GB/s, {text}{peers}{note}", VALUES)


_check = partial(Check, group="distributed", level=Level.CPU, isolation=Isolation.TORCH, timeout=2 * TIMEOUT)

CHECKS: List[Check] = [
    _check(
        id="gloo-two-ranks",
        title="Two ranks meet and reduce",
        probe=partial(probe_ranks, "gloo_rank"),
        evaluate=evaluate_values,
        why="Collectives fail by hanging: two ranks must meet, and every value must be right.",
        repairs=("verify --only network", "unset GLOO_SOCKET_IFNAME"),
    ),
    _check(
        id="torchrun-two-ranks",
        title="torchrun's agent starts two ranks",
        probe=probe_torchrun,
        evaluate=evaluate_values,
        why="torchrun brings its own rendezvous, which needs the loopback and a free port.",
        repairs=("verify --only network", "unset MASTER_ADDR MASTER_PORT"),
    ),
    _check(
        id="ddp-gradients",
        title="DDP averages gradients",
        probe=partial(probe_ranks, "ddp_rank"),
        evaluate=evaluate_gradients,
        why="DDP that does not average trains every rank alone, without an error.",
        repairs=(remedies.LOCKED,),
    ),
    _check(
        id="nccl-all-gpus",
        group="nccl",
        level=Level.MULTI_GPU,
        title="NCCL reduces right over all GPUs",
        probe=probe_gpus,
        evaluate=evaluate_gpus,
        needs=(*GPU_WORKS, "nccl-one-rank"),
        timeout=2 * NCCL_TIMEOUT + 60,
        why="Between GPUs NCCL hangs where ACS or an IOMMU breaks direct access; the check tries without it.",
        repairs=("NCCL_P2P_DISABLE=1 to confirm; ACS off in the BIOS", remedies.SHM, "--cap-add SYS_NICE"),
    ),
]
