"""One report out of what the suite found inside and what was seen from outside."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from verify.engine.verdict import exit_code, verdict_text
from verify.model import Finding, Level, Owner, Status, Verdict
from verify.report.results import finding_dict


def parse(entry: dict[str, Any]) -> Finding:
    """A finding out of a report. Raises KeyError or ValueError for what is no finding."""
    verdict = Verdict(
        Status(entry["status"]),
        entry["observed"],
        entry.get("expected", ""),
        entry.get("remedy", ""),
        Owner(entry["owner"]) if entry.get("owner") else None,
        dict(entry.get("data") or {}),
    )
    return Finding(
        check=entry["check"],
        group=entry["group"],
        level=Level(entry["level"]),
        title=entry["title"],
        verdict=verdict,
        required=entry["required"],
        seconds=entry["seconds"],
        where=entry["where"],
        error=entry.get("error", ""),
    )


def merge(
    report: dict[str, Any], before: Sequence[Finding], after: Sequence[Finding], digest: str, seconds: float
) -> dict[str, Any]:
    """The report with findings from outside around those from inside, judged as one.

    Digest, duration, required checks, counts and result are those of the whole; the verdict names
    the first broken link in this order.
    """
    findings = [*before, *map(parse, report["findings"]), *after]
    outside = [*before, *after]
    profile = dict(report["profile"])
    profile["required"] = sorted({*profile["required"], *(f.check for f in outside if f.required)})
    entries = [*map(finding_dict, before), *report["findings"], *map(finding_dict, after)]
    return {
        **report,
        "seconds": round(seconds, 3),
        "digest": digest,
        "profile": profile,
        "result": {"exit_code": exit_code(findings), "verdict": verdict_text(findings)},
        "counts": {status.value: sum(f.verdict.status is status for f in findings) for status in Status},
        "findings": entries,
    }
