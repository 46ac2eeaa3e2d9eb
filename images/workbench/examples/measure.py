"""What each way to save memory costs and saves, measured on this machine: one process each, one table."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from examples.devices import choose_device, is_out_of_memory
from verify.engine.isolate import run_forked
from verify.reference.data import Batch
from verify.reference.models import SequenceReverser
from verify.reference.recipes import TRANSFORMER_REVERSAL
from verify.reference.train import Run, begin, device_type, steps

SYMBOLS = 256
LIMIT = 240.0
"""Seconds for one choice, with compiling."""


@dataclass(frozen=True)
class Choice:
    """One way to make the same step."""

    name: str
    precision: str = "fp32"
    accumulate: int = 1
    fused: bool = False
    recompute: bool = False
    compiled: bool = False


CHOICES = (
    Choice("fp32"),
    Choice("fp32, 4 batches of a quarter", accumulate=4),
    Choice("fp32, recompute", recompute=True),
    Choice("fp32, fused attention", fused=True),
    Choice("bf16", "bf16"),
    Choice("fp16 with scaled losses", "fp16"),
    Choice("fp32, compiled", compiled=True),
    Choice("bf16, fused, recompute", "bf16", fused=True, recompute=True),
)


def measure(
    chosen: argparse.Namespace, sizes: Mapping[str, Any], choices: Sequence[Choice] = CHOICES
) -> list[dict[str, Any]]:
    """Prints the table row by row, and returns its rows."""
    device = choose_device(chosen.device)
    chosen.measure_batch = chosen.measure_batch or (8 if device == "cpu" else 32)
    batch, length = chosen.measure_batch, chosen.measure_length
    print(f"one step on {batch} sequences of {length} symbols, {sizes}, {device}, {chosen.threads} thread(s)")
    print(f"{'choice':<30} {'peak memory':>12} {'tokens/s':>10} {'memory':>8} {'speed':>7}")
    rows: list[dict[str, Any]] = []
    for choice in choices:
        if batch < choice.accumulate:
            continue
        rows.append({"choice": choice.name, **_row(choice, chosen, dict(sizes), device)})
        print(_line(rows[-1], rows[0]), flush=True)
    return rows


def _line(row: Mapping[str, Any], first: Mapping[str, Any]) -> str:
    if "said" in row:
        return f"{row['choice']:<30} {row['said']}"
    compared = ""
    if "said" not in first:
        memory, speed = row["bytes"] / first["bytes"], row["tokens_per_second"] / first["tokens_per_second"]
        compared = f" {memory:>7.2f}x {speed:>6.2f}x"
    return f"{row['choice']:<30} {row['bytes'] / 2**20:>8.0f} MiB {row['tokens_per_second']:>10.0f}{compared}"


def _row(choice: Choice, chosen: argparse.Namespace, sizes: dict[str, Any], device: str) -> dict[str, Any]:
    # A process each: what one choice has allocated, compiled or broken is none of the next one's.
    outcome = run_forked(partial(_measure, choice, chosen, sizes, device), LIMIT)
    if outcome.facts is not None:
        return dict(outcome.facts)
    if outcome.timed_out:
        return {"said": f"not done within {LIMIT:g} s"}
    if outcome.crash:
        return {"said": f"killed by {outcome.crash}: it needs more memory than this machine or container has"}
    return {"said": (outcome.error.strip().splitlines() or ["failed"])[-1][:100]}


def _measure(choice: Choice, chosen: argparse.Namespace, sizes: dict[str, Any], device: str) -> dict[str, Any]:
    try:
        return _run(choice, chosen, sizes, device)
    except (RuntimeError, MemoryError) as error:
        if is_out_of_memory(error):
            return {"said": "out of memory"}
        raise


def _run(choice: Choice, chosen: argparse.Namespace, sizes: dict[str, Any], device: str) -> dict[str, Any]:
    torch.manual_seed(chosen.seed)
    torch.set_num_threads(chosen.threads)
    model = SequenceReverser(SYMBOLS, chosen.measure_length, **sizes, fused=choice.fused, recompute=choice.recompute)
    run = begin(replace(TRANSFORMER_REVERSAL, accumulate=choice.accumulate), model, device, choice.precision)
    if choice.compiled:
        run.model = torch.compile(run.model)
    sequence = torch.randint(SYMBOLS, (chosen.measure_length, chosen.measure_batch // choice.accumulate))
    batches = [Batch((sequence,), sequence.flip(0))] * choice.accumulate
    before = forget_peak(device)
    seconds = _step(run, batches, device)
    # What a first step compiles and sets up counts for memory, not for speed, unless one is all there is time for.
    if seconds < 4 * chosen.measure_seconds or choice.compiled:
        taken = [_step(run, batches, device)]
        while sum(taken) < chosen.measure_seconds:
            taken.append(_step(run, batches, device))
        seconds = sum(taken) / len(taken)
    return {"bytes": peak(device) - before, "tokens_per_second": sequence.numel() * choice.accumulate / seconds}


def _step(run: Run, batches: list[Batch], device: str) -> float:
    began = time.perf_counter()
    for _ in steps(run, batches):
        _wait(device)
    return time.perf_counter() - began


def _wait(device: str) -> None:
    if device_type(device) == "cuda":
        torch.cuda.synchronize()


def forget_peak(device: str) -> int:
    """Resets the peak; returns what is held now, in bytes."""
    if device_type(device) == "cuda":
        torch.cuda.reset_peak_memory_stats()
        return int(torch.cuda.memory_allocated())
    Path("/proc/self/clear_refs").write_text("5")
    return _status("VmRSS")


def peak(device: str) -> int:
    """The most bytes held since then."""
    return int(torch.cuda.max_memory_allocated()) if device_type(device) == "cuda" else _status("VmHWM")


def _status(name: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"/proc/self/status of {sys.platform} has no {name}")
