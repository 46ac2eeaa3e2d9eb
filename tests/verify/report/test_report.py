"""One run, one set of numbers: the typed report, and every place that prints its counts and losses."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from gpuyard.publish.page import training
from tests.verify.report.sample import TRACE, finding, report
from tests.verify.suite import NO_CLAIMS
from verify.checks.train.learning import evaluate
from verify.model import Owner, Status, Verdict
from verify.reference.trace import Trace
from verify.report import html, junit, table
from verify.report.report import BadReport, Report

JUMPY: dict[str, Any] = {**TRACE, "loss": [0.7, *[0.02] * 7, 0.9], "steps": 9}
"""The last loss is far from the mean of the last steps, which the bound is held against."""


def test_a_report_survives_the_file() -> None:
    """Losses that were not finite included."""
    written = json.dumps(report().to_dict(), allow_nan=False)
    assert Report.from_dict(json.loads(written)).to_dict() == json.loads(written)


def test_counts_come_from_the_findings_whatever_the_file_says() -> None:
    """An edited sum is not repeated."""
    data = report().to_dict()
    data["counts"]["pass"] = 99
    assert Report.from_dict(data).counts == {"pass": 2, "fail": 1, "unknown": 1, "skip": 2}


def test_table_page_and_junit_show_the_same_counts() -> None:
    """And they add up to the findings."""
    made = report()
    assert made.counted == "2 pass (1 required), 1 fail, 1 unknown, 2 skip"
    assert made.counted in table.render(made, False, 300)
    shown = re.findall(r"</i>(\w+)</span> <b>(\d+)</b>", html.render(made))
    assert {name: int(number) for name, number in shown} == made.counts
    assert f'tests="{sum(made.counts.values())}" failures="{made.counts["fail"]}"' in junit.render(made)


def test_check_page_and_inspect_show_the_same_losses() -> None:
    """The final loss is the mean of the last steps everywhere, as the bound means it."""
    course = "loss 0.7 to 0.13 in 9 steps (bound 0.3)"
    run = {"asked": "bf16", "repeatable": True, "trace": JUMPY}
    assert course in evaluate(Owner.IMAGE, {"runs": [run]}, NO_CLAIMS).observed
    learned = Verdict(Status.PASS, "well", data={"training": [JUMPY]})
    assert course in html.render(report([finding("learns", learned)]))
    assert course in training(Trace.from_json(JUMPY))


BAD: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "another schema": (lambda r: r.update(schema="other/9"), "found other/9"),
    "a missing key": (lambda r: r.pop("host"), "'host' is missing"),
    "a finding without a status": (lambda r: r["findings"][0].pop("status"), "'status' is missing"),
    "an unknown status": (lambda r: r["findings"][0].update(status="ok"), "'ok'"),
    "findings that are not a list": (lambda r: r.update(findings=7), "int"),
    "a host that is a text": (lambda r: r.update(host="x"), "string indices"),
    "a loss in words": (lambda r: r["training"][0].update(loss=["low"]), "low"),
}


@pytest.mark.parametrize("fault", BAD)
def test_what_is_not_a_report_is_refused_in_one_line(fault: str) -> None:
    """Never with a traceback of another kind."""
    change, named = BAD[fault]
    data = report().to_dict()
    change(data)
    with pytest.raises(BadReport) as error:
        Report.from_dict(data)
    assert named in str(error.value)
    assert "\n" not in str(error.value)


def test_data_of_another_type_is_refused() -> None:
    """A list is valid JSON, too."""
    with pytest.raises(BadReport, match="found list"):
        Report.from_dict([])
