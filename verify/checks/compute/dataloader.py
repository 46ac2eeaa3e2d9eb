"""A data loader whose workers send large batches through /dev/shm, as real training does."""

from __future__ import annotations

import os
from typing import Any, Dict, List

from verify import remedies
from verify.checks.compute.common import attempt, unmeasured
from verify.model import Check, Claims, Facts, Isolation, Level, Owner, Verdict
from verify.verdicts import failed, passed

MIB = 2**20
BATCHES = 8
SAMPLES = 4
SAMPLE_MIB = 4
TOTAL_MIB = BATCHES * SAMPLES * SAMPLE_MIB
"""All batches are held at once, so this much lies in /dev/shm: twice Docker's default of 64 MiB."""

EXPECTED = f"2 workers move {TOTAL_MIB} MiB through /dev/shm and every value arrives"
REMEDY = "start the container with --shm-size=8g (Compose: shm_size; Kubernetes: an emptyDir of medium Memory)"
TOO_SMALL = ("unable to allocate shared memory", "No space left on device", "Bus error", "SIGBUS")
"""What torch, the C library and the kernel say when /dev/shm is full."""


class Ramp:
    """Samples of 4 MiB, each filled with its own index."""

    def __len__(self) -> int:
        return BATCHES * SAMPLES

    def __getitem__(self, index: int) -> Any:
        import torch

        return torch.full((SAMPLE_MIB * MIB // 4,), float(index))


def probe() -> Facts:
    """Take all batches from two workers and hold them, then compare what arrived."""
    space = os.statvfs("/dev/shm")
    # Twice: torch reports a killed worker by an exception in a signal handler, and the second
    # worker's may come while the first one's is being handled.
    return {"shm_mib": space.f_blocks * space.f_frsize // MIB, **attempt(lambda: dict(attempt(_load)))}


def _load() -> Dict[str, Any]:
    from torch.utils.data import DataLoader

    loader: Any = DataLoader(Ramp(), batch_size=SAMPLES, num_workers=2, prefetch_factor=2, timeout=30)  # type: ignore[arg-type,unused-ignore]
    held = list(loader)
    wrong = sum(
        int((sample != number * SAMPLES + place).sum())
        for number, batch in enumerate(held)
        for place, sample in enumerate(batch)
    )
    moved = sum(batch.nbytes for batch in held)
    return {"mib": moved // MIB, "wrong": wrong, "shared": all(batch.is_shared() for batch in held)}


def evaluate(facts: Facts, _claims: Claims) -> Verdict:
    """Pass if all of it arrived; a full /dev/shm is recognised by its size and by known error texts."""
    trouble = _trouble(facts)
    if trouble and (facts.get("shm_mib", TOTAL_MIB) < TOTAL_MIB or any(text in trouble for text in TOO_SMALL)):
        size = f" ({facts['shm_mib']} MiB)" if "shm_mib" in facts else ""
        return failed(f"/dev/shm is too small{size}: {trouble}", EXPECTED, REMEDY, Owner.START)
    remedy = "if workers were killed, give the container more memory; else rebuild the image"
    if facts.get("crash"):
        return failed(trouble, EXPECTED, remedy, Owner.START)
    verdict = unmeasured(facts, EXPECTED, remedy, Owner.START)
    if verdict:
        return verdict
    observed = f"{facts['mib']} MiB through /dev/shm, {facts['wrong']} wrong values"
    if facts["wrong"] or facts["mib"] != TOTAL_MIB or not facts["shared"]:
        return failed(observed, EXPECTED, remedy, Owner.START)
    return passed(observed, EXPECTED)


def _trouble(facts: Facts) -> str:
    """The crash, or of a worker's long traceback the line that says what happened."""
    if facts.get("crash"):
        return f"killed by {facts['crash']}"
    lines = str(facts.get("error", "")).strip().splitlines() or [""]
    telling = [line for line in lines if any(text in line for text in TOO_SMALL)]
    return (telling or lines[-1:])[0].strip()


CHECKS: List[Check] = [
    Check(
        id="shm-dataloader",
        group="shm",
        level=Level.CPU,
        title="A DataLoader with 2 workers moves large batches",
        probe=probe,
        evaluate=evaluate,
        needs=("shm-size",),
        isolation=Isolation.TORCH,
        timeout=90.0,
        why="The size of /dev/shm alone proves little, so two workers move large batches through it.",
        repairs=(remedies.SHM,),
    ),
]
