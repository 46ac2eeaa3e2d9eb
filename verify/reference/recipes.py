"""The reference trainings as data: model, data sets and the bound that an untrained model misses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Tuple

from verify.reference.data import (
    Batch,
    ReversalDataset,
    TitleDataset,
    Vocabulary,
    collate_reversals,
    collate_titles,
    split_titles,
)
from verify.reference.models import SequenceReverser, TitleClassifier
from verify.reference.titles import CLASSES

Task = Tuple[Any, Any, Any]
"""A fresh model, the data set to train on, and the one to judge by."""


@dataclass(frozen=True)
class Recipe:
    """One reference training. ``bound`` is the final loss that a run must stay under."""

    name: str
    task: Callable[[int], Task]
    collate: Callable[[Any], Batch]
    epochs: int
    batch_size: int
    learning_rate: float
    bound: float


def _titles_task(seed: int) -> Task:
    train, held_out = split_titles(seed)
    vocabulary = Vocabulary(train)
    model = TitleClassifier(len(vocabulary), len(CLASSES))
    return model, TitleDataset(train, vocabulary), TitleDataset(held_out, vocabulary)


def _reversal_task(seed: int) -> Task:
    length, symbols = 8, 12
    model = SequenceReverser(symbols, length)
    train = ReversalDataset(1024, length, symbols, seed)
    return model, train, ReversalDataset(128, length, symbols, seed + 1)


RNN_TITLES = Recipe("rnn-titles", _titles_task, collate_titles, 14, 25, 2e-3, bound=0.3)
TRANSFORMER_REVERSAL = Recipe("transformer-reversal", _reversal_task, collate_reversals, 4, 64, 5e-3, bound=0.5)
