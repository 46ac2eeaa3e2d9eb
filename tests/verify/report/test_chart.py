"""The scale of a loss curve is made of round numbers and holds every value."""

from __future__ import annotations

import itertools
import math

import pytest

from tests.verify.report.sample import TRACE
from verify.reference.trace import Trace
from verify.report.chart import loss_chart, ticks, unbroken


@pytest.mark.parametrize("top", [1e-6, 0.07, 0.3, 0.74, 1, 2.84, 99, 100, 12345])
def test_ticks_start_at_zero_and_reach_the_top_in_few_equal_steps(top: float) -> None:
    """At most five steps, the last one not far above the top."""
    values = ticks(top)
    gaps = [after - before for before, after in itertools.pairwise(values)]
    assert values[0] == 0
    assert top <= values[-1] * (1 + 1e-9) <= top * 2
    assert len(values) <= 6
    assert max(gaps) == pytest.approx(min(gaps))


@pytest.mark.parametrize("top", [0.0, -1.0, math.inf, math.nan])
def test_a_top_that_is_no_scale_still_gives_one(top: float) -> None:
    """From 0 to 1."""
    assert ticks(top) == [0.0, 1.0]


def test_missing_losses_cut_the_curve() -> None:
    """Each run of neighbours is one piece."""
    assert unbroken([1.0, math.nan, math.inf, 0.5, 0.4]) == [[(0, 1.0)], [(3, 0.5), (4, 0.4)]]


def test_a_trace_without_any_loss_is_drawn_without_a_curve() -> None:
    """The bound and the axes alone."""
    assert "polyline" not in loss_chart(Trace.from_json({**TRACE, "loss": []}))
