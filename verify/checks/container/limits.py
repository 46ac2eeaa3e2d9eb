"""The limits of this process: open files, lockable memory, stack."""

from __future__ import annotations

import resource
from functools import partial
from pathlib import Path
from typing import List

from verify.model import Check, Claims, Facts, Level, Owner, Verdict
from verify.probes import system
from verify.probes.cgroup_events import memory_events
from verify.verdicts import failed, passed

NOFILE_MINIMUM = 4096
STACK_MINIMUM = 8 << 20


def probe_limits() -> Facts:
    """Read this process's limits; -1 is unlimited."""
    kinds = {"nofile": resource.RLIMIT_NOFILE, "memlock": resource.RLIMIT_MEMLOCK, "stack": resource.RLIMIT_STACK}
    soft = {name: resource.getrlimit(kind)[0] for name, kind in kinds.items()}
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return {**soft, "nofile_hard": hard, "infiniband": Path("/dev/infiniband").exists()}


def _unlimited(value: int) -> bool:
    return value < 0 or value >= 1 << 62


def evaluate_nofile(facts: Facts, _claims: Claims) -> Verdict:
    """Each tensor that workers share takes a file descriptor."""
    value = facts["nofile"]
    expected = f"at least {NOFILE_MINIMUM} (65536 for many workers)"
    text = "unlimited" if _unlimited(value) else f"{value} open files (hard limit {facts['nofile_hard']})"
    if not _unlimited(value) and value < NOFILE_MINIMUM:
        return failed(text, expected, "docker run --ulimit nofile=65536:65536 ...", Owner.START)
    return passed(text, expected)


def evaluate_memlock(facts: Facts, _claims: Claims) -> Verdict:
    """RDMA pins memory; without InfiniBand nothing needs it."""
    value = facts["memlock"]
    text = "unlimited" if _unlimited(value) else system.size(value)
    if facts["infiniband"] and not _unlimited(value):
        remedy = "docker run --ulimit memlock=-1 --cap-add IPC_LOCK ..."
        return failed(f"{text} of lockable memory beside /dev/infiniband", "unlimited", remedy, Owner.START)
    use = "InfiniBand is here" if facts["infiniband"] else "no InfiniBand needs more"
    return passed(f"{text}; {use}", "unlimited where /dev/infiniband exists")


def evaluate_stack(facts: Facts, _claims: Claims) -> Verdict:
    """A small stack crashes compilers and threads without a message."""
    value = facts["stack"]
    expected = f"at least {system.size(STACK_MINIMUM)}"
    text = "unlimited" if _unlimited(value) else system.size(value)
    if not _unlimited(value) and value < STACK_MINIMUM:
        return failed(text, expected, "docker run --ulimit stack=67108864 ...", Owner.START)
    return passed(text, expected)


def probe_memory_kills() -> Facts:
    """Read the cgroup's count of processes that were killed for memory."""
    return {**memory_events(whole=system.in_container()), "limit": system.memory_limit()}


def evaluate_memory_kills(facts: Facts, _claims: Claims) -> Verdict:
    """A worker that the kernel killed leaves no message but 'Killed' or 'exited unexpectedly'; the count stays."""
    kills, hits = facts["kills"], facts["hits"]
    expected = "no process was killed for memory"
    limit = f" (limit {system.size(facts['limit'])})" if facts["limit"] else ""
    if kills:
        plural = "process" if kills == 1 else "processes"
        text = f"the kernel killed {kills} {plural} in here for memory{limit}"
        remedy = (
            "docker run with a larger --memory, or fewer DataLoader workers, smaller batches; then a fresh container"
        )
        return failed(text, expected, remedy, Owner.START, kills=kills, hits=hits)
    if kills is None:
        return passed("no cgroup counts it here", expected)
    return passed(f"{expected}{limit}" + (f"; the limit was hit {hits} times" if hits else ""), expected)


_check = partial(Check, group="limits", level=Level.CONTAINER)

CHECKS: List[Check] = [
    _check(
        id="limit-nofile",
        title="Enough open files",
        probe=probe_limits,
        evaluate=evaluate_nofile,
        why="Each tensor that workers share takes a file descriptor: 'Too many open files'.",
        repairs=("docker run --ulimit nofile=65536:65536 ...",),
        quick=True,
    ),
    _check(
        id="limit-memlock",
        title="Enough lockable memory",
        probe=probe_limits,
        evaluate=evaluate_memlock,
        why="InfiniBand pins memory; without it the limit does not matter.",
        repairs=("docker run --ulimit memlock=-1 --cap-add IPC_LOCK ...",),
        quick=True,
    ),
    _check(
        id="limit-stack",
        title="Enough stack",
        probe=probe_limits,
        evaluate=evaluate_stack,
        why="A small stack crashes compilers and threads without a message.",
        repairs=("docker run --ulimit stack=67108864 ...",),
        quick=True,
    ),
    _check(
        id="memory-kills",
        title="The kernel killed no process for memory",
        probe=probe_memory_kills,
        evaluate=evaluate_memory_kills,
        why="Where a container's memory ends, the kernel kills a process: workers vanish, nothing is said.",
        repairs=("docker run with a larger --memory, or without it", "fewer DataLoader workers, smaller batches"),
        quick=True,
    ),
]
