"""Text by single characters: the suite's own titles as a corpus, and GPT-2 from a small configuration."""
# mypy: allow-subclassing-any

from __future__ import annotations

from functools import lru_cache, partial
from typing import Any, Callable, List, Sequence, Tuple

import torch
from torch import Tensor, nn

from verify.reference.data import Batch, Windows, split_titles
from verify.reference.titles import TITLES

SAMPLE_LENGTH = 40
CONTEXT = 32
"""Characters that a model sees at most before the next."""


@lru_cache(maxsize=1)
def alphabet() -> str:
    """Every character of the titles, and the line's end that stands between them."""
    return "".join(sorted({"\n", *"".join(title for title, _ in TITLES).lower()}))


def corpus(seed: int) -> Tuple[str, str]:
    """The text to learn from and the one to judge by."""
    learned, judged = split_titles(seed)
    first, second = ("\n".join(title for title, _ in part).lower() for part in (learned, judged))
    return first, second


class CharacterDataset(Windows):
    """Windows of the text, each one character longer than what the model reads."""

    def __init__(self, text: str, length: int, count: int, seed: int) -> None:
        numbers = {character: number for number, character in enumerate(alphabet())}
        super().__init__([numbers[character] for character in text], length + 1, count, seed)


def collate_characters(samples: Sequence[Tensor]) -> Batch:
    """Sequence first; the target of each place is the next character."""
    windows = torch.stack(list(samples), dim=1)
    return Batch((windows[:-1],), windows[1:])


def generate(model: Any, device: str, seed: int) -> str:
    """Text that the model writes, each character drawn from its own probabilities, at a fixed seed."""
    start = [alphabet().index("\n")]
    written = continued(model, device, start, SAMPLE_LENGTH, seed, partial(choose, temperature=0.7))
    return "".join(alphabet()[number] for number in written).strip()


def continued(
    model: Any, device: str, start: Sequence[int], length: int, seed: int, chances: Callable[[Tensor], Tensor]
) -> List[int]:
    """The start and as many numbers more, each drawn by the chances that are made of the model's scores."""
    generator = torch.Generator().manual_seed(seed)
    written = list(start)
    # As much context as a training window has; GPT-2 has no places for more.
    context = getattr(model, "context", CONTEXT)
    model.eval()
    with torch.no_grad():
        for _ in range(length):
            seen = torch.tensor(written[-context:], device=device).unsqueeze(1)
            drawn = torch.multinomial(chances(model(seen)[-1, 0].float().cpu()), 1, generator=generator)
            written.append(int(drawn))
    return written


def choose(scores: Tensor, temperature: float = 1.0, top_k: int = 0, top_p: float = 1.0) -> Tensor:
    """Chances from scores: flatter or sharper by temperature, of the best ``top_k`` alone where that is
    not 0, and of those the fewest that together have ``top_p`` of the chance."""
    chances = torch.softmax(scores / temperature, -1)
    ordered, places = chances.sort(descending=True)
    if top_k:
        ordered[top_k:] = 0.0
        ordered = ordered / ordered.sum()
    # The one that crosses the line still counts, so that one is always left.
    ordered[ordered.cumsum(0) - ordered >= top_p] = 0.0
    return torch.zeros_like(chances).scatter(0, places, ordered / ordered.sum())


class CausalModel(nn.Module):
    """A causal language model of the transformers package, with the sequence first as all models here have it."""

    generates = True

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model
        self.context = int(model.config.max_position_embeddings)

    def forward(self, sequence: Tensor) -> Tensor:
        scores: Tensor = self.model(sequence.t(), use_cache=False).logits
        return scores.transpose(0, 1)


def gpt2(characters: int, context: int = CONTEXT, width: int = 48, layers: int = 2, heads: int = 4) -> Any:
    """A fresh GPT-2 for an alphabet of that size. Raises ImportError where transformers is not installed."""
    from transformers import GPT2Config, GPT2LMHeadModel  # type: ignore[import-not-found,unused-ignore]

    sizes = {"n_positions": context, "n_embd": width, "n_layer": layers, "n_head": heads, "vocab_size": characters}
    no_dropout = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
    # Eager attention has a backward pass that is bit-exact on every device.
    config = GPT2Config(**sizes, **no_dropout, bos_token_id=0, eos_token_id=0, attn_implementation="eager")
    return CausalModel(GPT2LMHeadModel(config))
