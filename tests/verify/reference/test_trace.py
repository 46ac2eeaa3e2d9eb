"""A trace is judged and written without torch."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest

from verify.reference.trace import FINAL_STEPS, Trace, mean_of_last

TRACE = Trace("x", "cpu", "bf16", (0.7, 0.1), 0.3, 2, 1.0, 9.0, 7, True, 0.8)


def test_only_the_clock_may_differ_between_two_runs_of_the_same_course() -> None:
    """One changed bit of one loss is another course."""
    assert TRACE.same_course(replace(TRACE, seconds=2.0, samples_per_second=4.0))
    assert not TRACE.same_course(replace(TRACE, loss=(0.7, math.nextafter(0.1, 1.0))))


def test_a_loss_that_is_no_number_is_written_as_null() -> None:
    """The JSON stays strict."""
    data = replace(TRACE, loss=(math.nan, math.inf, 0.5)).as_json()
    assert json.loads(json.dumps(data, allow_nan=False))["loss"] == [None, None, 0.5]


def test_the_final_loss_is_the_mean_of_the_last_steps() -> None:
    """Earlier steps do not count, and without steps there is no number."""
    assert mean_of_last((100.0, *[0.5] * FINAL_STEPS)) == pytest.approx(0.5)
    assert math.isnan(mean_of_last(()))
