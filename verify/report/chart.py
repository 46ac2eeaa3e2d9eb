"""A loss curve as inline SVG, drawn in the page's own colours."""

from __future__ import annotations

import math
from html import escape
from typing import List, Sequence, Tuple

from verify.reference.trace import Trace

WIDTH, HEIGHT = 400, 210
LEFT, RIGHT, TOP, BOTTOM = 44, 8, 8, 38

Point = Tuple[float, float]


def loss_chart(trace: Trace) -> str:
    """Loss over steps with the bound it had to fall below; steps without a number leave a gap."""
    losses = trace.loss
    finite = [loss for loss in losses if math.isfinite(loss)]
    top = ticks(max([*finite, trace.bound]) * 1.02)[-1]
    last = max(len(losses) - 1, 1)

    def place(step: float, loss: float) -> Point:
        x = LEFT + step / last * (WIDTH - LEFT - RIGHT)
        return x, TOP + (1 - min(max(loss, 0.0), top) / top) * (HEIGHT - TOP - BOTTOM)

    label = f"Loss of {trace.name} over {len(losses)} steps, bound {trace.bound:g}"
    parts = [
        *(_horizontal(place(0, value)[1], f"{value:g}") for value in ticks(top)),
        *(_step(place(value, 0)[0], f"{value:g}") for value in ticks(last) if value <= last),
        _axis_names(),
        _bound(place(0, trace.bound)[1], trace.bound),
        *(_curve([place(step, loss) for step, loss in run]) for run in unbroken(losses)),
    ]
    body = "\n".join(parts)
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(label)}">\n{body}\n</svg>'


def ticks(top: float, most: int = 5) -> List[float]:
    """Round numbers from 0 to the first one that is not below ``top``, at most ``most`` steps apart."""
    if not (math.isfinite(top) and top > 0):
        return [0.0, 1.0]
    scale = 10.0 ** math.floor(math.log10(top / most))
    step = next(scale * factor for factor in (1, 2, 2.5, 5, 10, 20) if top <= scale * factor * most)
    return [round(number * step, 10) for number in range(math.ceil(round(top / step, 6)) + 1)]


def unbroken(losses: Sequence[float]) -> List[List[Tuple[int, float]]]:
    """Runs of neighbouring steps that have a number."""
    runs: List[List[Tuple[int, float]]] = [[]]
    for step, loss in enumerate(losses):
        if math.isfinite(loss):
            runs[-1].append((step, loss))
        else:
            runs.append([])
    return [run for run in runs if run]


def _horizontal(y: float, text: str) -> str:
    return (
        f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
        f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{text}</text>'
    )


def _step(x: float, text: str) -> str:
    base = HEIGHT - BOTTOM
    return (
        f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{base}" y2="{base + 4}"/>'
        f'<text x="{x:.1f}" y="{base + 16}" text-anchor="middle">{text}</text>'
    )


def _axis_names() -> str:
    middle = (LEFT + WIDTH - RIGHT) / 2
    upright = (TOP + HEIGHT - BOTTOM) / 2
    return (
        f'<text x="{middle:.1f}" y="{HEIGHT - 4}" text-anchor="middle">step</text>'
        f'<text x="10" y="{upright:.1f}" text-anchor="middle" '
        f'transform="rotate(-90 10 {upright:.1f})">loss</text>'
    )


def _bound(y: float, bound: float) -> str:
    return (
        f'<line class="bound" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
        f'<text class="bound-name" x="{WIDTH - RIGHT}" y="{y - 5:.1f}" text-anchor="end">bound {bound:g}</text>'
    )


def _curve(points: Sequence[Point]) -> str:
    if len(points) == 1:
        points = [points[0], points[0]]
    return f'<polyline class="curve" points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in points)}"/>'
