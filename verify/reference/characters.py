"""Text by single characters: the suite's own titles as a corpus, and GPT-2 from a small configuration."""
# mypy: allow-subclassing-any

from __future__ import annotations

from functools import lru_cache
from typing import Any, Sequence, Tuple

import torch
from torch import Tensor, nn
from torch.utils.data import Dataset

from verify.reference.data import Batch, split_titles
from verify.reference.titles import TITLES

SAMPLE_LENGTH = 40


@lru_cache(maxsize=1)
def alphabet() -> str:
    """Every character of the titles, and the line's end that stands between them."""
    return "".join(sorted({"\n", *"".join(title for title, _ in TITLES).lower()}))


def corpus(seed: int) -> Tuple[str, str]:
    """The text to learn from and the one to judge by."""
    learned, judged = split_titles(seed)
    first, second = ("\n".join(title for title, _ in part).lower() for part in (learned, judged))
    return first, second


class CharacterDataset(Dataset):
    """Windows of the text, each one character longer than what the model reads."""

    def __init__(self, text: str, length: int, count: int, seed: int) -> None:
        numbers = {character: number for number, character in enumerate(alphabet())}
        self._text = torch.tensor([numbers[character] for character in text])
        generator = torch.Generator().manual_seed(seed)
        self._starts = torch.randint(len(text) - length - 1, (count,), generator=generator)
        self._length = length + 1

    def __len__(self) -> int:
        return len(self._starts)

    def __getitem__(self, index: int) -> Tensor:
        start = int(self._starts[index])
        return self._text[start : start + self._length]


def collate_characters(samples: Sequence[Tensor]) -> Batch:
    """Sequence first; the target of each place is the next character."""
    windows = torch.stack(list(samples), dim=1)
    return Batch((windows[:-1],), windows[1:])


def generate(model: Any, device: str, seed: int) -> str:
    """Text that the model writes, each character drawn from its own probabilities, at a fixed seed."""
    generator = torch.Generator().manual_seed(seed)
    written = [alphabet().index("\n")]
    model.eval()
    with torch.no_grad():
        for _ in range(SAMPLE_LENGTH):
            # As much context as a training window has; GPT-2 has no places for more.
            scores = model(torch.tensor([[number] for number in written[-32:]], device=device))[-1, 0]
            chances = torch.softmax(scores.float().cpu() / 0.7, -1)
            written.append(int(torch.multinomial(chances, 1, generator=generator)))
    return "".join(alphabet()[number] for number in written).strip()


class _Gpt2(nn.Module):
    """GPT-2 of the transformers package, with the sequence first as all models here have it."""

    generates = True

    def __init__(self, characters: int) -> None:
        super().__init__()
        from transformers import GPT2Config, GPT2LMHeadModel  # type: ignore[import-not-found,unused-ignore]

        sizes = {"n_positions": 32, "n_embd": 48, "n_layer": 2, "n_head": 4, "vocab_size": characters}
        no_dropout = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
        # Eager attention has a backward pass that is bit-exact on every device.
        config = GPT2Config(**sizes, **no_dropout, bos_token_id=0, eos_token_id=0, attn_implementation="eager")
        self.model = GPT2LMHeadModel(config)

    def forward(self, sequence: Tensor) -> Tensor:
        scores: Tensor = self.model(sequence.t(), use_cache=False).logits
        return scores.transpose(0, 1)


def gpt2(characters: int) -> Any:
    """A fresh GPT-2 for an alphabet of that size. Raises ImportError where transformers is not installed."""
    return _Gpt2(characters)
