"""The reference trainings as data: model, data sets and the bound that an untrained model misses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Tuple

from verify.reference.characters import CharacterDataset, alphabet, collate_characters, corpus, gpt2
from verify.reference.data import (
    Batch,
    ReversalDataset,
    TitleDataset,
    Vocabulary,
    collate_reversals,
    collate_titles,
    split_titles,
)
from verify.reference.models import CharacterGenerator, SequenceReverser, TitleClassifier
from verify.reference.titles import CLASSES

Task = Tuple[Any, Any, Any]
"""A fresh model, the data set to train on, and the one to judge by."""


@dataclass(frozen=True)
class Recipe:
    """One reference training. ``bound`` is the final loss that a run must stay under.

    Gradients of ``accumulate`` batches make one step. A model that generates text is asked for some.
    ``on_cpu`` is the precision there: processors without bf16 imitate it at a tenth of the speed.
    """

    name: str
    task: Callable[[int], Task]
    collate: Callable[[Any], Batch]
    epochs: int
    batch_size: int
    learning_rate: float
    bound: float
    accumulate: int = 1
    on_cpu: str = "bf16"


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


def _characters_task(build: Callable[[int], Any], length: int, count: int) -> Callable[[int], Task]:
    def task(seed: int) -> Task:
        learned, judged = corpus(seed)
        return (
            build(len(alphabet())),
            CharacterDataset(learned, length, count, seed),
            CharacterDataset(judged, length, 32, seed + 1),
        )

    return task


_LSTM_TASK = _characters_task(CharacterGenerator, 32, 1024)
_GPT2_TASK = _characters_task(gpt2, 32, 1024)

RNN_TITLES = Recipe("rnn-titles", _titles_task, collate_titles, 5, 25, 4e-3, bound=0.3)
TRANSFORMER_REVERSAL = Recipe(
    "transformer-reversal", _reversal_task, collate_reversals, 4, 32, 5e-3, bound=0.5, accumulate=2
)
LSTM_CHARACTERS = Recipe("lstm-characters", _LSTM_TASK, collate_characters, 2, 32, 1e-2, bound=2.6, on_cpu="fp32")
GPT2_CHARACTERS = Recipe(
    "gpt2-characters", _GPT2_TASK, collate_characters, 2, 16, 5e-3, bound=2.9, accumulate=2, on_cpu="fp32"
)
