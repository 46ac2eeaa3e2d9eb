"""The report as text for a terminal."""

from __future__ import annotations

import textwrap
from typing import Iterator, List

from verify.model import Finding
from verify.report.report import Report
from verify.report.view import (
    Section,
    first_broken,
    needs_words,
    required_by,
    same_skip,
    sections,
)

COLORS = {"pass": "32", "fail": "1;31", "unknown": "33", "skip": "2"}
WORDS = {"pass": "pass", "fail": "FAIL", "unknown": "UNKNOWN", "skip": "skip"}
NARROWEST = 60
STATUS_WIDTH = 9


def render(report: Report, color: bool, width: int) -> str:
    """The verdict, one line per check (wrapped to ``width``), remedies under failures, then the counts."""
    width = max(width, NARROWEST)
    longest = max([len(row.check) for row in report.findings] or [0])
    lines = [*_wrap(report.verdict, width), ""]
    lines += [line for section in sections(report) for line in _section(section, longest, color, width)]
    return "\n".join([*lines, *_wrap(_counts(report), width)])


def _section(section: Section, longest: int, color: bool, width: int) -> Iterator[str]:
    yield _paint(section.level, "1", color)
    for index, row in enumerate(section.rows):
        other = same_skip(section.rows, index)
        seen = f"as {other}" if other else row.verdict.observed
        yield from _row(row, seen, longest, color, width)
    yield ""


def _row(row: Finding, seen: str, longest: int, color: bool, width: int) -> Iterator[str]:
    status = row.verdict.status.value
    mark = "*" if row.required else " "
    indent = STATUS_WIDTH + 3 + longest + 2
    # A terminal too narrow for a column beside the name gets the text below it.
    if width - indent < NARROWEST // 2:
        indent = STATUS_WIDTH + 3
    texts = _wrap(seen, width - indent)
    head = f"  {WORDS[status]:{STATUS_WIDTH - 2}} {mark} {row.check:{longest}}  "
    if indent < len(head):
        yield _paint(head.rstrip(), COLORS[status], color)
    else:
        yield _paint(head, COLORS[status], color) + texts.pop(0)
    body = [*texts, *(_advice(row, width - indent) if needs_words(row) else [])]
    yield from (" " * indent + text for text in body)


def _advice(row: Finding, width: int) -> List[str]:
    verdict = row.verdict
    owner = f" ({verdict.owner.value})" if verdict.owner else ""
    named = (("expected: ", verdict.expected), (f"to do{owner}: ", verdict.remedy))
    return [line for name, text in named if text for line in _wrap(name + text, width)]


def _wrap(text: str, width: int) -> List[str]:
    """Lines of at most ``width``; flags and names are not broken at their hyphens."""
    return textwrap.wrap(_printable(text), width, break_on_hyphens=False) or [""]


def _printable(text: str) -> str:
    """Text that cannot move the cursor or change colours: what a probe saw may hold anything."""
    return "".join(sign if sign.isprintable() else " " for sign in text)


def _counts(report: Report) -> str:
    broken = first_broken(report)
    first = f" (first broken link: {broken.check}; see the top)" if broken and report.exit_code else ""
    by = required_by(report)
    return f"exit {report.exit_code}{first}: {report.counted} in {report.seconds:.1f} s; * = required by {by}"


def _paint(text: str, code: str, color: bool) -> str:
    return f"\033[{code}m{text}\033[0m" if color else text
