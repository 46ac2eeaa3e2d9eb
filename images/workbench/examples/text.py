"""Text as numbers: by single characters, or by a pretrained model's own tokeniser; windows of it by datasets."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import datasets
import torch

from examples.errors import ExampleError
from verify.reference.characters import CausalModel


class Codec(Protocol):
    """Text to numbers and back."""

    def encode(self, text: str) -> list[int]:
        """The text's numbers."""

    def decode(self, numbers: Sequence[int]) -> str:
        """The numbers' text."""

    def __len__(self) -> int:
        """How many different numbers there are."""


class Characters:
    """Each character that occurs is a number, and so is the end of a line."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._alphabet = "".join(sorted({"\n", *"".join(lines)}))
        self._numbers = {character: number for number, character in enumerate(self._alphabet)}

    def __len__(self) -> int:
        return len(self._alphabet)

    def encode(self, text: str) -> list[int]:
        unknown = sorted(set(text) - self._numbers.keys())
        if unknown:
            raise ExampleError(
                f"--prompt has {''.join(unknown)!r}, which the text does not: it knows {self._alphabet!r}"
            )
        return [self._numbers[character] for character in text]

    def decode(self, numbers: Sequence[int]) -> str:
        return "".join(self._alphabet[number] for number in numbers)


class Tokens:
    """A tokeniser of transformers."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer

    def __len__(self) -> int:
        return len(self._tokenizer)

    def encode(self, text: str) -> list[int]:
        numbers: list[int] = self._tokenizer.encode(text, add_special_tokens=False) if text else []
        return numbers

    def decode(self, numbers: Sequence[int]) -> str:
        return str(self._tokenizer.decode(list(numbers)))


def pretrained(name: str) -> tuple[Callable[[int], Any], Codec]:
    """What makes a fresh copy of that causal model, with a context of some length, and its tokeniser."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    sys.stderr.write(f"generate: loading {name}; where no hub answers this takes a minute to fail\n")

    def load(context: int) -> Any:
        loaded = CausalModel(_from_hub(AutoModelForCausalLM, name))
        loaded.context = min(context, loaded.context)
        return loaded

    return load, Tokens(_from_hub(AutoTokenizer, name))


def _from_hub(kind: Any, name: str) -> Any:
    try:
        return kind.from_pretrained(name)
    except (OSError, ValueError, KeyError, ImportError) as error:
        said = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise ExampleError(
            f"--pretrained {name}: {said[:200]} Expected a folder that save_pretrained wrote, or a name on a hub that "
            "this machine reaches (HF_ENDPOINT names a mirror, HF_TOKEN logs in)"
        ) from None


class _Rows(torch.utils.data.Dataset):  # type: ignore[misc]
    """Windows that lie in memory as one tensor."""

    def __init__(self, rows: Sequence[Sequence[int]]) -> None:
        self._rows = torch.tensor(rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: int) -> torch.Tensor:
        return self._rows[index]


def windows(lines: Sequence[str], codec: Codec, context: int) -> Any:
    """All text, cut into windows of one symbol more than the context."""
    datasets.disable_progress_bars()

    def encode(rows: dict[str, list[str]]) -> dict[str, list[list[int]]]:
        return {"numbers": [codec.encode(line + "\n") for line in rows["line"]]}

    def cut(rows: dict[str, list[list[int]]]) -> dict[str, list[list[int]]]:
        numbers = [number for row in rows["numbers"] for number in row]
        starts = range(0, len(numbers) - context, context)
        return {"window": [numbers[start : start + context + 1] for start in starts]}

    whole = datasets.Dataset.from_dict({"line": list(lines)})
    options = {"batched": True, "batch_size": None, "keep_in_memory": True}
    encoded = whole.map(encode, remove_columns=["line"], new_fingerprint="encoded", **options)
    made = encoded.map(cut, remove_columns=["numbers"], new_fingerprint="cut", **options)
    if not len(made):
        raise ExampleError(
            f"{len(lines)} line(s) make no window of --context {context}: give more text or a shorter one"
        )
    return _Rows(made["window"][:])
