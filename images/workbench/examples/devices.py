"""The device to compute on, its precision, and what to do when its memory is full."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from examples.errors import ExampleError
from examples.parallel import World

SIGNS = ("can't allocate memory", "not enough memory", "Unable to allocate", "out of memory")


def choose_device(wanted: str) -> str:
    """The device to train on; never the CPU where a GPU was asked for."""
    kind = "cuda" if wanted == "auto" and torch.cuda.is_available() else wanted.replace("auto", "cpu")
    try:
        device = torch.device(kind)
    except RuntimeError:
        device = torch.device("meta")
    if device.type not in ("cpu", "cuda"):
        raise ExampleError(f"--device {wanted}: expected cpu, cuda, cuda:NUMBER or auto")
    if device.type == "cuda" and not torch.cuda.is_available():
        raise ExampleError(f"--device {wanted}: torch finds no GPU that it can use; verify --only gpu says why")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise ExampleError(f"--device {wanted}: there are {torch.cuda.device_count()} GPUs, counted from 0")
    return kind


def choose_precision(wanted: str, device: str) -> str:
    """The one asked for, or the fastest that this device computes itself."""
    if wanted != "auto":
        return wanted
    if device == "cpu":
        return "fp32"
    return "bf16" if torch.cuda.is_bf16_supported(including_emulation=False) else "fp16"


@contextmanager
def own_device(device: str, world: World) -> Iterator[str]:
    """The device of this process: of several on one node each has a GPU of its own."""
    if device == "cpu" or world.size == 1:
        yield device
        return
    if world.local_size > torch.cuda.device_count():
        raise ExampleError(
            f"{world.local_size} processes on a node with {torch.cuda.device_count()} GPU(s): "
            f"torchrun --nproc-per-node {torch.cuda.device_count()}"
        )
    torch.cuda.set_device(world.local_rank)
    yield f"cuda:{world.local_rank}"


@contextmanager
def advised(batch_size: int, accumulate: int, more: str) -> Iterator[None]:
    """Turns an out-of-memory error into advice."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        raise ExampleError(advice(batch_size, accumulate, more)) from None


def is_out_of_memory(error: BaseException) -> bool:
    """Whether the GPU or the machine ran out of memory."""
    known = isinstance(error, (MemoryError, torch.OutOfMemoryError))
    return known or any(sign in str(error) for sign in SIGNS)


def advice(batch_size: int, accumulate: int, more: str) -> str:
    """The next smaller batch that trains the same way, and this example's other ways to save memory."""
    if batch_size > 1:
        smaller = (
            f"--batch-size {batch_size // 2} --accumulate {accumulate * 2} makes the same steps from smaller batches"
        )
    else:
        smaller = "a batch of 1 is the smallest"
    return f"out of memory with batches of {batch_size}: {smaller}{'; ' + more if more else ''}"
