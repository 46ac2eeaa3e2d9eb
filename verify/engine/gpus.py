"""How many GPUs a run is planned for."""

from __future__ import annotations

import os
from functools import partial
from typing import Any, Dict, List, Optional

from verify.engine.isolate import run_forked
from verify.probes.allocation import allocated, asked_for, mig_given, open_nodes
from verify.probes.gpu_signs import any_sign, gpu_nodes, gpu_signs

OPENS = 20.0
"""Seconds for opening every GPU's node: without a persistence daemon the first open starts the GPU."""


def count_gpus() -> int:
    """GPUs that this process is meant to use: 0 without any sign of one, else at least 1."""
    signs = gpu_signs()
    if not any_sign(signs):
        return 0
    nodes = gpu_nodes(signs["nodes"])
    if len(nodes) < 2 or mig_given():
        return 1
    asked = asked_for(os.environ.get("CUDA_VISIBLE_DEVICES"))
    return max(1, min(len(nodes), len(_ours(nodes)) if asked is None else asked))


def _ours(nodes: List[str]) -> List[str]:
    """In a child, because opening a broken GPU may hang."""
    facts: Optional[Dict[str, Any]] = run_forked(partial(open_nodes, nodes), OPENS).facts
    return nodes if facts is None else allocated(facts)
