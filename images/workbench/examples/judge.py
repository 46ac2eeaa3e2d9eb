"""How good a model is on what it was not trained on."""

from __future__ import annotations

from typing import Any

import torch

from examples.parallel import World
from verify.reference.train import Run, loss_of, scores_of


def judged(run: Run, held_out: Any, size: int, world: World) -> tuple[float, float]:
    """Mean loss and accuracy, each process judging its part; the same numbers in all of them."""
    sums = [0.0, 0.0, 0.0, 0.0]
    own = range(world.rank, len(held_out), world.size)
    run.model.eval()
    with torch.no_grad():
        for start in range(0, len(own), size):
            chosen = [held_out[index] for index in own[start : start + size]]
            found = _judge_batch(run, chosen)
            sums = [one + other for one, other in zip(sums, found, strict=True)]
    loss, rows, right, count = world.total(sums)
    return loss / rows, right / count


def _judge_batch(run: Run, chosen: list[Any]) -> list[float]:
    batch = run.recipe.collate(chosen).to(run.device)
    right = scores_of(run, batch).argmax(-1) == batch.targets
    return [float(loss_of(run, batch)) * len(chosen), float(len(chosen)), float(right.sum()), float(right.numel())]
