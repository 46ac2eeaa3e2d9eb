"""How a report is read, whatever it is rendered to: order, groups, the broken link, the outcome."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Dict, List, Optional, Sequence, Tuple

from verify.model import Finding, Level, Status
from verify.report.report import Report

OUTCOMES = {0: "passed", 1: "failed", 2: "not run", 3: "not proven"}


@dataclass(frozen=True)
class Section:
    """The findings of one level, in the order of the report."""

    level: str
    rows: Tuple[Finding, ...]

    def count(self, status: str) -> int:
        return sum(row.verdict.status.value == status for row in self.rows)

    def status(self) -> str:
        """The worst status that counts: fail, unknown, a required check that was skipped, else pass."""
        present = {row.verdict.status.value for row in self.rows}
        for status in ("fail", "unknown"):
            if status in present:
                return status
        unproven = any(row.verdict.status is Status.SKIP and row.required for row in self.rows)
        return "skip" if unproven or "pass" not in present else "pass"


def sections(report: Report) -> List[Section]:
    """The levels that have findings, from the image outwards."""
    by_level: Dict[Level, List[Finding]] = {level: [] for level in Level}
    for row in report.findings:
        by_level[row.level].append(row)
    return [Section(level.value, tuple(rows)) for level, rows in by_level.items() if rows]


def first_broken(report: Report) -> Optional[Finding]:
    """The first failure of the chain: a required one if there is one."""
    failures = [row for section in sections(report) for row in section.rows if row.verdict.status is Status.FAIL]
    required = [row for row in failures if row.required]
    return next(iter(required or failures), None)


def outcome(report: Report) -> str:
    """The exit code in words."""
    return OUTCOMES.get(report.exit_code, "failed")


def required_by(report: Report) -> str:
    """What makes the marked checks required: a profile, or the names after --only."""
    return "--only, and what those checks need" if report.profile == "only" else f"profile {report.profile}"


def needs_words(row: Finding) -> bool:
    """Whether expectation and remedy are shown beside what was observed."""
    status = row.verdict.status
    return status in (Status.FAIL, Status.UNKNOWN) or (status is Status.SKIP and row.required)


def same_skip(rows: Sequence[Finding], index: int) -> str:
    """The check above that was skipped for the same reason, or empty."""
    row = rows[index]
    if row.verdict.status is not Status.SKIP:
        return ""
    alike = (above for above in rows[:index] if above.verdict.status is Status.SKIP)
    return next((above.check for above in alike if above.verdict.observed == row.verdict.observed), "")


def image_name(report: Report) -> str:
    """Which image this is about, as far as the report knows."""
    image = report.image or {}
    name = " ".join(str(image[key]) for key in ("image", "line") if image.get(key))
    return name or "no gpuyard image"
