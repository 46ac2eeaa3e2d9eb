"""The GPU's health as NVML reports it: memory errors, rows to be remapped, a clock held down."""

from __future__ import annotations

from typing import Any, List, Mapping, Optional

from verify.model import Check, Claims, Facts, Isolation, Level, Owner, Verdict
from verify.probes.gpu_signs import any_sign, gpu_signs, no_gpu
from verify.probes.libraries import SLOW_LOOKS, SLOW_PAUSE, ask_health
from verify.verdicts import failed, passed, unknown

HELD_DOWN = {0x8: "a hardware slowdown", 0x40: "heat", 0x80: "the power brake"}
"""NVML's bits of reasons for a lower clock that mean trouble; a power cap set by an administrator does not."""
EXPECTED = "no uncorrected memory error, no row remapping pending or failed, clocks not held down for seconds"
RESET = "on the host: end what runs on the GPU, nvidia-smi --gpu-reset -i INDEX, or restart"
REPLACE = "take the GPU out of use and have it replaced: dcgmi diag -r 3, then the vendor"
COOL = "check fans, air flow and power supply: nvidia-smi -q -d PERFORMANCE,TEMPERATURE,POWER"


def probe() -> Facts:
    """Ask NVML for counters and the reasons of a lower clock; nothing is started on the GPU."""
    signs = gpu_signs()
    return {**signs, **(ask_health() if any_sign(signs) else {})}


def evaluate(facts: Facts, _claims: Claims) -> Verdict:
    """Pass if no GPU reports a fault; what a GPU does not count (no ECC) is not held against it."""
    if not any_sign(facts):
        return no_gpu(facts)
    if not facts.get("devices"):
        return unknown("NVML names no GPU to ask", "verify --only nvml")
    for device in facts["devices"]:
        fault = _fault(device)
        if fault:
            text, remedy = fault
            return failed(f"GPU {device['index']}: {text}", EXPECTED, remedy, Owner.HOST, devices=facts["devices"])
    counted = sum(device["ecc"] is not None for device in facts["devices"])
    text = f"{len(facts['devices'])} GPUs without a fault, {counted} of them count memory errors"
    brief = [f"GPU {d['index']}: {_held(d['slow_once'])}" for d in facts["devices"] if _held(d.get("slow_once"))]
    note = f"; the clock was held down for a moment ({'; '.join(brief)})" if brief else ""
    return passed(text + note, EXPECTED)


def _fault(device: Mapping[str, Any]) -> Any:
    remapped = device["remapped"] or {}
    if remapped.get("failed"):
        return "remapping a bad memory row failed", REPLACE
    if remapped.get("pending"):
        return "a memory row waits to be remapped", RESET
    if device["ecc"]:
        return f"{device['ecc']} uncorrected memory errors since the driver was loaded", RESET
    held = _held(device["slow"])
    return (f"its clock was held down by {held} for {SLOW_LOOKS * SLOW_PAUSE:g} s", COOL) if held else None


def _held(bits: Optional[int]) -> str:
    return ", ".join(name for bit, name in HELD_DOWN.items() if (bits or 0) & bit)


CHECKS: List[Check] = [
    Check(
        id="gpu-health",
        group="driver",
        level=Level.GPU,
        title="The GPUs report no fault",
        probe=probe,
        evaluate=evaluate,
        needs=("nvml",),
        isolation=Isolation.CHILD,
        why=(
            "A GPU with memory errors or a throttled clock computes, wrongly or slowly, and says so to nobody but NVML."
        ),
        repairs=(
            "on the host: sudo nvidia-smi --gpu-reset -i INDEX, or restart it",
            "on the host: dcgmi diag -r 3; if it fails, have the GPU replaced",
        ),
    ),
]
