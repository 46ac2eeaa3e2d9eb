"""How a report is read, whatever it is rendered to: order, groups, the broken link, the outcome."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from verify.model import Level

Report = Mapping[str, Any]
Row = Mapping[str, Any]

STATUSES: Tuple[str, ...] = ("pass", "fail", "unknown", "skip")
OUTCOMES = {0: "passed", 1: "failed", 2: "not run", 3: "not proven"}


@dataclass(frozen=True)
class Section:
    """The findings of one level, in the order of the report."""

    level: str
    rows: Tuple[Row, ...]

    def count(self, status: str) -> int:
        return sum(row["status"] == status for row in self.rows)

    def status(self) -> str:
        """The worst that counts: a failure, a doubt, a required check that was skipped, else pass."""
        present = {row["status"] for row in self.rows}
        for status in ("fail", "unknown"):
            if status in present:
                return status
        unproven = any(row["status"] == "skip" and row["required"] for row in self.rows)
        return "skip" if unproven or "pass" not in present else "pass"


def sections(report: Report) -> List[Section]:
    """The levels that have findings, from the image outwards; unknown levels come last."""
    by_level: Dict[str, List[Row]] = {level.value: [] for level in Level}
    for row in report["findings"]:
        by_level.setdefault(row["level"], []).append(row)
    return [Section(level, tuple(rows)) for level, rows in by_level.items() if rows]


def first_broken(report: Report) -> Optional[Row]:
    """The first failure of the chain: a required one if there is one."""
    failures = [row for section in sections(report) for row in section.rows if row["status"] == "fail"]
    required = [row for row in failures if row["required"]]
    return next(iter(required or failures), None)


def outcome(report: Report) -> str:
    """The exit code in words."""
    return OUTCOMES.get(report["result"]["exit_code"], "failed")


def required_by(report: Report) -> str:
    """What makes the marked checks required: a profile, or the names that this run was given."""
    name = report["profile"]["name"]
    return "--only: named there, or needed by what is" if name == "only" else f"profile {name}"


def needs_words(row: Row) -> bool:
    """Whether expectation and remedy belong beside what was observed."""
    return row["status"] in ("fail", "unknown") or (row["status"] == "skip" and row["required"])


def same_skip(rows: Sequence[Row], index: int) -> str:
    """The check above that was skipped for the very same reason; empty when there is none."""
    row = rows[index]
    if row["status"] != "skip":
        return ""
    alike = (above for above in rows[:index] if above["status"] == "skip")
    return next((str(above["check"]) for above in alike if above["observed"] == row["observed"]), "")


def image_name(report: Report) -> str:
    """Which image this is about, as far as the report knows."""
    image = report["image"] or {}
    name = " ".join(str(image[key]) for key in ("image", "line") if image.get(key))
    return name or "no gpuyard image"
