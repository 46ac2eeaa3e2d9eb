"""The JUnit file parses, and no doubt in it looks like a pass."""

from __future__ import annotations

from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from tests.verify.report.sample import HOSTILE, finding, report
from verify.model import Owner, Status, Verdict
from verify.report import junit


def cases(text: str) -> dict[str, Element]:
    return {str(case.get("name")): case for case in ElementTree.fromstring(text).iter("testcase")}


def test_each_status_has_its_element() -> None:
    """Failure, error, skipped, and nothing for a pass."""
    found = cases(junit.render(report()))
    assert found["shm-size"].find("failure") is not None
    assert found["slow"].find("error") is not None
    assert found["late-gpu"].find("skipped") is not None
    assert [child.tag for child in found["versions"]] == ["system-out"]


def test_a_failure_carries_value_owner_and_remedy() -> None:
    """Everything that is needed to act stands in it."""
    failure = cases(junit.render(report()))["shm-size"].find("failure")
    assert failure is not None
    assert (failure.get("message"), failure.get("type")) == ("64 MiB", "container start")
    assert "To do: start with --shm-size=8g" in str(failure.text)


def test_the_counts_agree_with_the_cases() -> None:
    """Totals and suites add up."""
    root = ElementTree.fromstring(junit.render(report()))
    totals = [root.get(name) for name in ("tests", "failures", "errors", "skipped")]
    assert totals == ["6", "1", "1", "2"]
    assert sum(int(suite.get("tests", "0")) for suite in root.iter("testsuite")) == 6


def test_a_skip_of_a_required_check_is_an_error() -> None:
    """A CI server must not show green where nothing was proven."""
    skip = finding("gpu", Verdict(Status.SKIP, "no GPU"), required=True)
    assert cases(junit.render(report([skip])))["gpu"].find("error") is not None


def test_any_observed_text_gives_valid_xml() -> None:
    """Markup is escaped and characters that XML forbids are replaced."""
    bad = finding("bad", Verdict(Status.FAIL, HOSTILE, "x", "y", Owner.HOST))
    failure = cases(junit.render(report([bad])))["bad"].find("failure")
    assert failure is not None
    assert str(failure.get("message")).startswith("<script>alert('x')</script>")
    assert "\x00" not in str(failure.get("message"))
