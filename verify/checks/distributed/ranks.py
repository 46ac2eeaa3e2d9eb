"""Collectives and DDP between two ranks on the CPU; a hang ends with a diagnosis."""

from __future__ import annotations

import os
import socket
from functools import partial
from typing import Any, Dict, List, Mapping, Optional, Tuple

from verify import remedies
from verify.checks.compute.common import EXPLAINED
from verify.engine.ranks import run_ranks, troubles
from verify.model import Check, Claims, Facts, Isolation, Level, Owner, Verdict
from verify.probes import system
from verify.probes.bus_error import bus_facts, space_advice
from verify.verdicts import failed, passed

TIMEOUT = 45.0
TOLERANCE = 1e-6
VALUES = "the collectives give the values that arithmetic does"
GRADIENTS = f"gradients are equal on every rank and within {TOLERANCE:g} of one process with all data"


def probe_ranks(work: str) -> Facts:
    """Run two ranks with gloo on the loopback, both forked from a process that has torch."""
    from verify.reference import collectives

    return {"ranks": run_ranks(getattr(collectives, work), 2, TIMEOUT), **surroundings()}


def probe_torchrun() -> Facts:
    """Run two ranks under torchrun's agent, which starts them, chooses the port and collects the answers."""
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
    wrong = [f"rank {n}: {', '.join(f['wrong'])}" for n, f in enumerate(facts_of(facts)) if f["wrong"]]
    if wrong:
        remedy = "rebuild the image from its lock: gpuyard build"
        return failed(f"wrong values: {'; '.join(wrong)}", VALUES, remedy, Owner.IMAGE)
    return passed(f"{len(facts['ranks'])} ranks met, all values right{_noise(facts)}", VALUES)


def evaluate_gradients(facts: Facts, _claims: Claims) -> Verdict:
    """Pass if DDP averaged the gradients over the ranks' different data."""
    trouble = _trouble(facts, GRADIENTS)
    if trouble:
        return trouble
    text, right = gradients_agree(facts_of(facts))
    if not right:
        return failed(text, GRADIENTS, "rebuild the image from its lock: gpuyard build", Owner.IMAGE)
    return passed(text, GRADIENTS)


def gradients_agree(ranks: List[Mapping[str, Any]]) -> Tuple[str, bool]:
    equal = all(rank["gradients"] == ranks[0]["gradients"] for rank in ranks)
    worst = max(rank["difference"] for rank in ranks)
    words = "equal" if equal else "different"
    return f"gradients {words} on {len(ranks)} ranks, {worst:.1e} from one process", equal and worst <= TOLERANCE


def facts_of(facts: Facts) -> List[Mapping[str, Any]]:
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
    """What to try, by the error and the variables that are set."""
    chosen = {name: value for name, value in facts["variables"].items() if name.endswith("SOCKET_IFNAME")}
    if "Unable to find address" in text or any(value not in facts["interfaces"] for value in chosen.values()):
        names = ", ".join(f"{name}={value}" for name, value in chosen.items()) or "GLOO_SOCKET_IFNAME"
        return f"{names} names no interface here ({', '.join(facts['interfaces'])}): unset it"
    if "SIGBUS" in text or "No space left" in text:
        return space_advice(text, facts)
    others = [f"{name}={value}" for name, value in facts["variables"].items()]
    unset = f"unset {', '.join(others)}; then " if others else ""
    return f"{unset}verify --only network (hostname, interface); run again with NCCL_DEBUG=INFO"


_check = partial(
    Check,
    explained_by=("interface", *EXPLAINED),
    group="distributed",
    level=Level.CPU,
    isolation=Isolation.TORCH,
    timeout=2 * TIMEOUT,
)

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
        why="If DDP does not average gradients, every rank trains alone, and no error is raised.",
        repairs=(remedies.LOCKED,),
    ),
]
