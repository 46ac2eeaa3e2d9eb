"""What a training run leaves behind: plain numbers, no torch."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import Any, Dict, Mapping, Tuple

FINAL_STEPS = 8
"""How many steps at the end the final loss is the mean of, so that no single batch decides."""


@dataclass(frozen=True)
class Trace:
    """The course of one training run.

    ``precision`` is what the model's scores were seen in under autocast, not what was asked for.
    ``accuracy`` is measured on samples that were not trained on. ``loading_seconds`` is how long the
    training waited for its workers; ``sample`` is text that a trained generator wrote.
    """

    name: str
    device: str
    precision: str
    loss: Tuple[float, ...]
    bound: float
    steps: int
    seconds: float
    samples_per_second: float
    seed: int
    grads_finite: bool
    accuracy: float
    tokens_per_second: float = 0.0
    loading_seconds: float = 0.0
    peak_memory_bytes: int = 0
    sample: str = ""

    def first_loss(self) -> float:
        return self.loss[0] if self.loss else math.nan

    def final_loss(self) -> float:
        return mean_of_last(self.loss)

    def course(self) -> str:
        """How the loss fell, in the words that every table and page uses."""
        return f"loss {self.first_loss():.2g} to {self.final_loss():.2g} in {self.steps} steps (bound {self.bound:g})"

    def same_course(self, other: Trace) -> bool:
        """Whether both runs computed bit for bit the same; only clock and memory may differ."""
        return self._computed() == other._computed()

    def _computed(self) -> Trace:
        clock = {"seconds": 0.0, "samples_per_second": 0.0, "tokens_per_second": 0.0, "loading_seconds": 0.0}
        return replace(self, peak_memory_bytes=0, **clock)  # type: ignore[arg-type]

    def as_json(self) -> Dict[str, Any]:
        """Plain data for a report, with losses that are not finite as None."""
        data = asdict(self)
        data["loss"] = [loss if math.isfinite(loss) else None for loss in self.loss]
        data["seconds"] = round(self.seconds, 3)
        data["samples_per_second"] = round(self.samples_per_second, 1)
        data["tokens_per_second"] = round(self.tokens_per_second, 1)
        data["loading_seconds"] = round(self.loading_seconds, 3)
        return data

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Trace:
        """The trace in a report. Raises KeyError for a missing and TypeError for an unknown part."""
        loss = tuple(math.nan if loss is None else float(loss) for loss in data["loss"])
        return cls(**{**data, "loss": loss})


def mean_of_last(losses: Tuple[float, ...]) -> float:
    """The mean of the final steps; not a number when there was no step."""
    last = losses[-FINAL_STEPS:]
    return sum(last) / len(last) if last else math.nan
