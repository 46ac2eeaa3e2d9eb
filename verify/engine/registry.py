"""All checks, in the order of the chain: what comes first is the likelier cause of what follows."""

from __future__ import annotations

import difflib
from dataclasses import replace
from typing import Dict, Iterable, List, Set

from verify.cases import cases_of
from verify.checks.compute import compile, dataloader, libraries, matmul, operators
from verify.checks.compute import gpu as compute_gpu
from verify.checks.container import folders, limits, network, process, shm, surroundings
from verify.checks.distributed import data_parallel, nccl, ranks
from verify.checks.driver import context, devices, driver, gpu, gpu_health
from verify.checks.image import environment, imports, loaded, native, packages, torch_libs, variables
from verify.checks.train import learning, speed
from verify.model import Check, Isolation, Level

TORCH_IMPORT = "torch-import"
TORCH_CUDA = "torch-cuda"

_CHAIN: List[Check] = [
    *environment.CHECKS,
    *variables.CHECKS,
    *packages.CHECKS,
    *native.CHECKS,
    *surroundings.CHECKS,
    *folders.CHECKS,
    *shm.CHECKS,
    *limits.CHECKS,
    *process.CHECKS,
    *loaded.BEFORE_IMPORT,
    *network.CHECKS,
    *torch_libs.CHECKS,
    *loaded.AFTER_IMPORT,
    *devices.CHECKS,
    *driver.CHECKS,
    *context.CHECKS,
    *gpu_health.CHECKS,
    *gpu.CHECKS,
    *libraries.CHECKS,
    *matmul.CHECKS,
    *operators.CHECKS,
    *dataloader.CHECKS,
    *compile.CHECKS,
    *compute_gpu.CHECKS,
    *imports.CHECKS,
    *ranks.CHECKS,
    *nccl.CHECKS,
    *data_parallel.CHECKS,
    *learning.CHECKS,
    *speed.CHECKS,
]
CHECKS: List[Check] = [replace(check, cases=cases_of(check.id)) for check in _CHAIN]


class UnknownName(Exception):
    """A check, group or level that does not exist; the text names the nearest that do."""

    id = "verify-unknown-name"


def names(checks: Iterable[Check]) -> Set[str]:
    """Everything a user may write for these checks: ids, groups and levels."""
    listed = list(checks)
    return {c.id for c in listed} | {c.group for c in listed} | {c.level.value for c in listed}


def resolve(checks: List[Check], wanted: Iterable[str]) -> List[str]:
    """Ids of the checks that have one of the names as id, group or level, in the order of the chain.

    A check that disturbs is meant by its id alone.
    """
    asked = list(wanted)
    known = names(checks)
    for name in asked:
        if name not in known:
            raise UnknownName(unknown_text("check or group", name, known))
    return [c.id for c in checks if c.id in asked or (not c.disturbs and {c.group, c.level.value} & set(asked))]


def unknown_text(kind: str, name: str, known: Iterable[str]) -> str:
    """One line: the unknown name and the nearest known ones."""
    options = sorted(known)
    near = difflib.get_close_matches(name, options, n=3, cutoff=0.5)
    hint = f"nearest: {', '.join(near)}" if near else f"there are: {', '.join(options)}"
    return f"unknown {kind} {name!r}; {hint}"


def with_needs(checks: List[Check], ids: Iterable[str]) -> List[str]:
    """The ids and everything they need, in the order of the chain."""
    by_id: Dict[str, Check] = {check.id: check for check in checks}
    reached: Set[str] = set()
    pending = list(ids)
    while pending:
        current = pending.pop()
        if current not in reached and current in by_id:
            reached.add(current)
            pending.extend(all_needs(by_id[current]))
    return [check.id for check in checks if check.id in reached]


def all_needs(check: Check) -> List[str]:
    """The check's needs, including those that all torch checks, or all torch checks on a GPU, share."""
    implied = []
    if check.isolation is Isolation.TORCH:
        implied = [TORCH_IMPORT, TORCH_CUDA] if check.level.on_gpu else [TORCH_IMPORT]
    return [*(need for need in implied if need != check.id), *check.needs]


def at_most(checks: Iterable[Check], level: Level) -> List[str]:
    """Ids of the checks that need no more of a machine than ``level``."""
    order = list(Level)
    return [check.id for check in checks if order.index(check.level) <= order.index(level)]
