"""The terminal table says status, value and remedy of each check within the terminal's width."""

from __future__ import annotations

import re

import pytest

from tests.verify.report.sample import HOSTILE, finding, report
from verify.model import Status, Verdict
from verify.report import table


def lines(width: int = 100, color: bool = False) -> list[str]:
    return table.render(report(), color, width).splitlines()


def test_levels_stand_in_the_order_of_the_chain() -> None:
    """The image comes first, whatever the order of the findings."""
    text = lines(width=200)
    heads = [line for line in text if line and not line.startswith((" ", "The", "exit"))]
    assert heads == ["image", "container", "cpu", "gpu"]


def test_a_failure_is_followed_by_expectation_and_remedy_with_its_owner() -> None:
    """The three lines stand together."""
    text = lines()
    place = next(number for number, line in enumerate(text) if "FAIL" in line)
    assert re.fullmatch(r"  FAIL    \* shm-size +64 MiB", text[place])
    assert text[place + 1].strip() == "expected: at least 1 GiB"
    assert text[place + 2].strip() == "to do (container start): start with --shm-size=8g"


def test_a_pass_shows_what_was_measured_and_no_remedy() -> None:
    """One line is all."""
    assert [line for line in lines() if "versions" in line] == ["  pass    * versions   all as claimed"]


def test_the_same_reason_for_a_skip_is_given_once() -> None:
    """The second skip refers to the first by name."""
    text = lines()
    assert sum("no GPU was given" in line for line in text) == 1
    assert any(line.endswith("later-gpu  as late-gpu") for line in text)


def test_it_opens_with_the_verdict_and_ends_with_the_counts() -> None:
    """The first paragraph is the answer; the last line names the broken link again."""
    assert lines()[0].startswith("The first broken link is shm-size")
    assert lines(width=200)[-1].startswith(
        "exit 1 (first broken link: shm-size; see the top): 2 pass (1 required), 1 fail, 1 unknown, 2 skip in 12.5 s"
    )


@pytest.mark.parametrize("width", [20, 60, 80, 200])
def test_no_line_is_wider_than_the_terminal_and_no_flag_is_torn(width: int) -> None:
    """Down to 60 columns, below which a terminal has to scroll."""
    text = lines(width)
    assert max(map(len, text)) <= max(width, 60)
    assert any("--shm-size=8g" in line for line in text)


def test_colours_only_where_asked() -> None:
    """Plain output holds no escape, coloured output the same words."""
    plain, painted = "\n".join(lines()), "\n".join(lines(color=True))
    assert "\x1b" not in plain
    assert re.sub(r"\x1b\[[\d;]*m", "", painted) == plain != painted


def test_what_a_probe_saw_cannot_steer_the_terminal() -> None:
    """Control characters in observed text are gone."""
    text = table.render(report([finding("bad", Verdict(Status.PASS, HOSTILE))]), False, 100)
    assert "\x1b" not in text
    assert "\x00" not in text


def test_a_report_without_findings_is_rendered() -> None:
    """Verdict and counts alone."""
    assert table.render(report([], exit_code=3), True, 80).startswith("The first")
