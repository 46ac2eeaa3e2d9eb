"""The batches are the same for any number of processes, and from any place in an epoch."""

from __future__ import annotations

import argparse
import itertools
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from examples.batches import Batches, Loader, mixed  # noqa: E402
from examples.errors import ExampleError  # noqa: E402
from examples.parallel import World  # noqa: E402

from verify.reference.data import Batch  # noqa: E402


def batches(rank: int = 0, size: int = 1, **options: int) -> Batches:
    """Of 103 samples, ten in a batch, two batches in a step."""
    chosen = {"batch_size": 10, "accumulate": 2, "seed": 7, "epochs": 3, **options}
    return Batches(103, argparse.Namespace(**chosen), World(rank, size))


@pytest.mark.parametrize("size", [2, 3, 7])
def test_processes_share_the_batches_of_one(size: int) -> None:
    """Together they see each of its samples once, and their weights add up to their number."""
    shares = [list(batches(rank, size)) for rank in range(size)]
    joined = [sorted(itertools.chain(*parts)) for parts in zip(*shares, strict=True)]
    assert joined == [sorted(batch) for batch in batches()]
    assert sum(batches(rank, size).share for rank in range(size)) == pytest.approx(size)


def test_a_pass_can_begin_anywhere() -> None:
    """At a batch of an epoch, as if it had come from the start."""
    whole, later = list(batches()), batches()
    later.place(1, 4)
    assert list(later) == whole[14:]
    assert len(later) == len(whole) - 14 == 16


def test_each_epoch_has_an_order_of_its_own_that_the_seed_decides() -> None:
    """Ten whole batches, and no sample twice in an epoch."""
    first, second = list(batches())[:10], list(batches())[10:20]
    assert len({number for batch in first for number in batch}) == 100
    assert first != second
    assert list(batches(seed=8))[:10] != first
    assert len({mixed(seed, number) for seed in range(30) for number in range(30)}) == 900


def test_too_many_processes_for_a_batch_are_refused() -> None:
    """With the batch that would do."""
    with pytest.raises(ExampleError, match="--batch-size 11"):
        batches(0, 11)


def test_workers_hand_over_what_was_collated() -> None:
    """Through a pipe, in order, as tensors that may be written to."""

    def collate(samples: list[int]) -> Batch:
        return Batch((torch.tensor(samples),), torch.tensor(samples) + 1)

    made: list[Any] = list(Loader(range(103), batches(), collate, 2))
    assert [batch.inputs[0].tolist() for batch in made] == list(batches())
    assert torch.equal(made[0].targets.add_(1), made[0].inputs[0] + 2)
