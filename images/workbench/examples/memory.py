"""Out of memory, with advice in words."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from examples.errors import ExampleError

SIGNS = ("can't allocate memory", "not enough memory", "Unable to allocate", "out of memory")


@contextmanager
def advised(batch_size: int, accumulate: int, more: str) -> Iterator[None]:
    """Turns the end of memory into what to do about it."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        raise ExampleError(advice(batch_size, accumulate, more)) from None


def is_out_of_memory(error: BaseException) -> bool:
    """Of the GPU or of the machine."""
    known = isinstance(error, (MemoryError, torch.OutOfMemoryError))
    return known or any(sign in str(error) for sign in SIGNS)


def advice(batch_size: int, accumulate: int, more: str) -> str:
    """The next smaller batch with the same course of training, and what else this example has."""
    if batch_size > 1:
        smaller = (
            f"--batch-size {batch_size // 2} --accumulate {accumulate * 2} makes the same steps of smaller batches"
        )
    else:
        smaller = "a batch of 1 is the smallest"
    return f"out of memory with batches of {batch_size}: {smaller}{'; ' + more if more else ''}"
