"""What a level and a report amount to, whatever they are rendered to."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.verify.report.sample import FINDINGS, finding, report
from verify.model import Level, Owner, Status, Verdict
from verify.report.view import first_broken, image_name, outcome, sections

FAILED = Verdict(Status.FAIL, "seen", "wanted", "do it", Owner.HOST)


@pytest.mark.parametrize(
    ("statuses", "required", "expected"),
    [
        ("pass skip", False, "pass"),
        ("pass skip", True, "skip"),
        ("skip skip", False, "skip"),
        ("pass unknown", False, "unknown"),
        ("unknown fail pass", False, "fail"),
    ],
)
def test_a_level_is_as_good_as_its_worst_check(statuses: str, required: bool, expected: str) -> None:
    """And a required skip is not a pass."""
    rows = [
        finding(f"c{number}", Verdict(Status(status), "seen"), required=required)
        for number, status in enumerate(statuses.split())
    ]
    (section,) = sections(report(rows))
    assert section.status() == expected


def test_a_required_failure_is_the_broken_link_before_one_that_is_not() -> None:
    """Though the other comes earlier in the chain."""
    early = finding("early", FAILED, Level.IMAGE)
    late = finding("late", FAILED, Level.GPU, required=True)
    for rows, expected in (([early, late], "late"), ([early], "early")):
        broken = first_broken(report(rows))
        assert broken is not None
        assert broken.check == expected


def test_without_a_failure_no_link_is_broken() -> None:
    """An unknown is not a failure."""
    kept = [found for found in FINDINGS if found.verdict.status is not Status.FAIL]
    assert first_broken(report(kept)) is None


@pytest.mark.parametrize(("code", "word"), [(0, "passed"), (1, "failed"), (3, "not proven")])
def test_the_exit_code_has_a_word(code: int, word: str) -> None:
    """One each."""
    assert outcome(report(exit_code=code)) == word


def test_a_run_outside_an_image_says_so() -> None:
    """Instead of an empty name."""
    outside = replace(report(), image=None)
    assert image_name(outside) == "no gpuyard image"
    assert image_name(report()) == "workbench 9.9"
