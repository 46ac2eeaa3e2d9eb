"""What a training is made of, how far it is, and what it leaves."""

from __future__ import annotations

import argparse
import hashlib
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from verify.reference.recipes import Recipe
from verify.reference.train import Run


@dataclass(frozen=True)
class Plan:
    """What is trained: the recipe, what makes this training itself, and what else saves memory."""

    recipe: Recipe
    name: str
    settings: Mapping[str, Any]
    advice: str = ""
    compiled: bool = False


@dataclass
class Progress:
    """The progress of a training. All of it is saved, so that a resumed one continues as if never interrupted.

    ``start`` and ``best`` are held-out losses, before any step and the lowest since.
    """

    epoch: int = 0
    batch: int = 0
    losses: list[float] = field(default_factory=list)
    history: list[dict[str, float]] = field(default_factory=list)
    start: float = math.inf
    best: float = math.inf
    waited: int = 0
    ended: bool = False


@dataclass(frozen=True)
class Result:
    """A finished training: the model with its best weights (in ``run``), what judged it, and its course."""

    folder: Path
    run: Run
    held_out: Any
    progress: Progress
    seconds: float
    samples_per_second: float
    leads: bool


def fingerprint(data: Any) -> str:
    """A short name for data, the same for the same data."""
    return hashlib.sha256(repr(data).encode()).hexdigest()[:12]


def tuned(recipe: Recipe, task: Callable[[int], Any], options: argparse.Namespace) -> Recipe:
    """A recipe of the reference with data and model of this task, as the options want it."""
    names = ("epochs", "batch_size", "learning_rate", "accumulate")
    return replace(recipe, task=task, **{name: getattr(options, name) for name in names})


@dataclass
class Clock:
    """The time that steps take, and how much of it is waiting for data; judging does not count."""

    seconds: float = 0.0
    steps: int = 0
    began: float = 0.0
    loading: float = 0.0

    def start(self, run: Run) -> None:
        """From now on it counts."""
        self.began, self.loading = time.perf_counter(), run.loading

    def lap(self, run: Run) -> tuple[float, float]:
        """Seconds since the start, and the part of them spent waiting."""
        seconds = max(time.perf_counter() - self.began, 1e-9)
        self.seconds += seconds
        return seconds, (run.loading - self.loading) / seconds
