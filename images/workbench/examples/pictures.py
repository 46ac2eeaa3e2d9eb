"""Pictures of a training, as PNG files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib

from examples.checkpoint import replacing
from examples.plans import Progress

# Files only: a training may have no screen, and a notebook shows the files.
matplotlib.use("Agg", force=False)
from matplotlib.figure import Figure


def curves(progress: Progress, file: Path) -> None:
    """The loss of each step, and held-out loss and accuracy of each epoch."""
    figure = Figure(figsize=(7, 4), layout="constrained")
    losses = figure.subplots()
    losses.plot(range(1, len(progress.losses) + 1), progress.losses, color="#9db8d2", label="loss of a step")
    per_epoch = len(progress.losses) / max(len(progress.history), 1)
    steps = [row["epoch"] * per_epoch for row in progress.history]
    losses.plot(steps, [row["held_out"] for row in progress.history], "o-", color="#1f5fa8", label="held-out loss")
    losses.set_xlabel("step")
    losses.set_ylabel("loss")
    losses.set_ylim(bottom=0)
    accuracy = losses.twinx()
    accuracy.plot(steps, [row["accuracy"] for row in progress.history], "s--", color="#b3541e", label="accuracy")
    accuracy.set_ylabel("held-out accuracy")
    accuracy.set_ylim(0, 1)
    figure.legend(loc="outside upper center", ncols=3)
    _save(figure, file)


def confusion(matrix: Sequence[Sequence[int]], classes: Sequence[str], file: Path) -> None:
    """Each class as a row, what it was taken for as columns, with the numbers written in."""
    figure = Figure(figsize=(1.5 + 1.2 * len(classes), 1.2 + 1.1 * len(classes)), layout="constrained")
    axes = figure.subplots()
    axes.imshow(matrix, cmap="Blues", vmin=0)
    half = max(max(row) for row in matrix) / 2
    for row, counts in enumerate(matrix):
        for column, count in enumerate(counts):
            axes.text(column, row, str(count), ha="center", va="center", color="white" if count > half else "black")
    axes.set_xticks(range(len(classes)), classes)
    axes.set_yticks(range(len(classes)), classes)
    axes.set_xlabel("taken for")
    axes.set_ylabel("class")
    _save(figure, file)


def _save(figure: Any, file: Path) -> None:
    with replacing(file) as opened:
        figure.savefig(opened, format="png", dpi=120)
