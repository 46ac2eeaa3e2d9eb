"""Which samples make a batch: the same for any number of processes, from any place in an epoch."""
# mypy: allow-subclassing-any

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from torch.utils.data import DataLoader, Sampler

from examples.errors import ExampleError
from examples.parallel import World
from verify.reference.data import Batch


class Batches(Sampler):
    """This process's share of each batch of all epochs, in orders that the seed and the epochs decide.

    Samples that would make a smaller last batch, and batches that would make a smaller last step, are
    left out of that epoch.
    """

    def __init__(self, count: int, options: argparse.Namespace, world: World) -> None:
        size, accumulate = int(options.batch_size), int(options.accumulate)
        if size < world.size:
            raise ExampleError(
                f"a batch of {size} is too small to share by {world.size}: give --batch-size {world.size}"
            )
        if count < size * accumulate:
            raise ExampleError(
                f"{count} samples to learn from make no step of {accumulate} batch(es) of {size}: "
                "give more data, a smaller --batch-size or less to --accumulate"
            )
        self.per_epoch: int = count // size // accumulate * accumulate
        self._count, self._size, self._seed = count, size, int(options.seed)
        self._epochs = int(options.epochs)
        self._world = world
        self._epoch, self._start = 0, 0

    def place(self, epoch: int, batch: int) -> None:
        """Where the next pass begins."""
        self._epoch, self._start = epoch, batch

    def __len__(self) -> int:
        return max(0, (self._epochs - self._epoch) * self.per_epoch - self._start)

    def __iter__(self) -> Iterator[list[int]]:
        # One pass over all epochs: the workers make the next epoch's batches while this one is judged.
        start = self._start
        for epoch in range(self._epoch, self._epochs):
            generator = torch.Generator().manual_seed(mixed(self._seed, epoch))
            order = torch.randperm(self._count, generator=generator).tolist()
            for number in range(start, self.per_epoch):
                batch = order[number * self._size : (number + 1) * self._size]
                yield batch[self._world.rank :: self._world.size]
            start = 0

    @property
    def share(self) -> float:
        """The weight of this process's mean loss, so that the mean over all processes is the batch's."""
        own = len(range(self._world.rank, self._size, self._world.size))
        return own * self._world.size / self._size


def mixed(*numbers: int) -> int:
    """One seed from several numbers, far from that of their neighbours."""
    seed = 0
    for number in numbers:
        seed = (seed * 6364136223846793005 + number + 1442695040888963407) % 2**63
    return seed


class Loader:
    """Batches made by worker processes.

    They come as arrays through a pipe: for batches as small as these, shared memory and its file
    descriptors would cost more time than the step (three times as much for 25 titles).
    """

    def __init__(self, samples: Any, batches: Batches, collate: Callable[[Any], Batch], workers: int) -> None:
        self._loader = DataLoader(
            samples,
            batch_sampler=batches,
            collate_fn=partial(_as_arrays, collate),
            num_workers=workers,
            # Small batches are cheap to keep, and the step does not wait when a worker loses its processor for a while.
            prefetch_factor=8 if workers else None,
            worker_init_fn=_own_process_group,
            # Without one of its own it would draw from the generator of the model's dropout.
            generator=torch.Generator(),
            timeout=60 if workers else 0,
        )

    def __iter__(self) -> Iterator[Batch]:
        """The workers begin at once, before the first batch is asked for."""
        return map(_as_tensors, self._loader)


def _as_arrays(collate: Callable[[Any], Batch], samples: Any) -> tuple[tuple[Any, ...], Any]:
    batch = collate(samples)
    return tuple(tensor.numpy() for tensor in batch.inputs), batch.targets.numpy()


def _as_tensors(made: tuple[tuple[Any, ...], Any]) -> Batch:
    inputs, targets = made
    return Batch(tuple(torch.from_numpy(array) for array in inputs), torch.from_numpy(targets))


def _own_process_group(_worker: int) -> None:
    """A signal to the whole process group is for the training, which ends its workers itself."""
    os.setpgid(0, 0)
