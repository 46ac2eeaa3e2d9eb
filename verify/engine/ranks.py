"""Runs several processes at once; each returns facts, an error, a crash or a timeout."""

from __future__ import annotations

import re
import socket
from dataclasses import asdict
from functools import partial
from typing import Any, Callable, Dict, List, Mapping, Sequence, Tuple

from verify.engine.isolate import Outcome, run_forked

Work = Callable[[int, int, int], Dict[str, Any]]
"""What one rank does: given its rank, the number of ranks and the port to meet at."""


def run_ranks(work: Work, world: int, timeout: float) -> List[Dict[str, Any]]:
    """One outcome per rank, as plain data; all are gone when this returns.

    Each is forked by a thread of its own, which lives as long as its rank does.
    """
    from concurrent.futures import ThreadPoolExecutor

    port = free_port()
    with ThreadPoolExecutor(world) as pool:
        outcomes: List[Outcome] = list(
            pool.map(lambda rank: run_forked(partial(work, rank, world, port), timeout), range(world))
        )
    return [asdict(outcome) for outcome in outcomes]


def free_port() -> int:
    """A free port of the loopback interface."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


LIMITS = re.compile(r"tim(ed|e) ?out|watchdog", re.IGNORECASE)
"""What gloo, NCCL and torch print when a collective times out."""


def hung(outcome: Mapping[str, Any]) -> bool:
    """Whether a rank hung: it was ended by us, its own limit ran out, or NCCL's watchdog aborted it."""
    if outcome["timed_out"]:
        return True
    if outcome["crash"] == "SIGABRT":
        return bool(LIMITS.search(outcome["output"]))
    return bool(outcome["error"] and LIMITS.search(outcome["error"].strip().splitlines()[-1]))


def troubles(ranks: Sequence[Mapping[str, Any]]) -> Tuple[List[str], List[int]]:
    """What went wrong, rank by rank, and which ranks hung."""
    said = []
    for rank, outcome in enumerate(ranks):
        if outcome["timed_out"]:
            said.append(f"rank {rank} hung")
        elif outcome["crash"] and hung(outcome):
            said.append(f"rank {rank} hung until the watchdog aborted it")
        elif outcome["crash"]:
            said.append(f"rank {rank} was killed by {outcome['crash']}")
        elif outcome["error"]:
            said.append(f"rank {rank}: {outcome['error'].strip().splitlines()[-1]}")
    return said, [rank for rank, outcome in enumerate(ranks) if hung(outcome)]
