"""Data sets for the reference models, and how single samples become padded batches."""
# mypy: allow-subclassing-any

from __future__ import annotations

import random
from typing import Dict, Iterable, List, NamedTuple, Sequence, Tuple

import torch
from torch import Tensor
from torch.utils.data import Dataset

from verify.reference.titles import TITLES

PADDING = 0
UNKNOWN = 1
Title = Tuple[str, int]


class Batch(NamedTuple):
    """One training step's data: the model's arguments and the targets its scores must meet."""

    inputs: Tuple[Tensor, ...]
    targets: Tensor

    def to(self, device: str) -> Batch:
        return Batch(tuple(tensor.to(device) for tensor in self.inputs), self.targets.to(device))


def split_titles(seed: int, held_out: int = 40, titles: Sequence[Title] = TITLES) -> Tuple[List[Title], List[Title]]:
    """The titles to learn from and the ones to judge by: the same split for the same seed."""
    shuffled = list(titles)
    random.Random(seed).shuffle(shuffled)
    return shuffled[held_out:], shuffled[:held_out]


class Vocabulary:
    """Numbers for words, in the order of the alphabet; words it was not built from are UNKNOWN."""

    def __init__(self, titles: Iterable[Title]) -> None:
        words = sorted({word for title, _ in titles for word in title.lower().split()})
        self._numbers: Dict[str, int] = {word: number for number, word in enumerate(words, UNKNOWN + 1)}

    def __len__(self) -> int:
        return len(self._numbers) + UNKNOWN + 1

    def encode(self, title: str) -> List[int]:
        return [self._numbers.get(word, UNKNOWN) for word in title.lower().split()]


class TitleDataset(Dataset):
    """Titles as word numbers, each with its class."""

    def __init__(self, titles: Sequence[Title], vocabulary: Vocabulary) -> None:
        self._samples = [(vocabulary.encode(title), label) for title, label in titles]

    def __len__(self) -> int:
        return len(self._samples)

    def __getitem__(self, index: int) -> Tuple[List[int], int]:
        return self._samples[index]


def collate_titles(samples: Sequence[Tuple[List[int], int]]) -> Batch:
    """Pad the titles at their end to the longest one, sequence first."""
    words = torch.nn.utils.rnn.pad_sequence([torch.tensor(numbers) for numbers, _ in samples], padding_value=PADDING)
    lengths = torch.tensor([len(numbers) for numbers, _ in samples])
    return Batch((words, lengths), torch.tensor([label for _, label in samples]))


class Windows(Dataset):
    """Windows of a long sequence, at places that the seed decides."""

    def __init__(self, numbers: Sequence[int], length: int, count: int, seed: int) -> None:
        self._numbers = torch.tensor(numbers)
        generator = torch.Generator().manual_seed(seed)
        self._starts = torch.randint(len(numbers) - length, (count,), generator=generator)
        self._length = length

    def __len__(self) -> int:
        return len(self._starts)

    def __getitem__(self, index: int) -> Tensor:
        start = int(self._starts[index])
        return self._numbers[start : start + self._length]


class ReversalDataset(Dataset):
    """Random sequences of symbols, each with its own reverse as the target."""

    def __init__(self, count: int, length: int, symbols: int, seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)
        self._sequences = torch.randint(symbols, (count, length), generator=generator)

    def __len__(self) -> int:
        return len(self._sequences)

    def __getitem__(self, index: int) -> Tensor:
        return self._sequences[index]


def collate_reversals(samples: Sequence[Tensor]) -> Batch:
    """Stack the sequences side by side, sequence first."""
    sequences = torch.stack(list(samples), dim=1)
    return Batch((sequences,), sequences.flip(0))
