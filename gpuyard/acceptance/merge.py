"""One report out of what the suite found inside and what was seen from outside."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from verify.engine.verdict import exit_code, verdict_text
from verify.model import Finding
from verify.report.report import Report


def merge(report: Report, before: Sequence[Finding], after: Sequence[Finding], digest: str, seconds: float) -> Report:
    """The report with findings from outside around those from inside, judged as one.

    Digest, duration, required checks, counts and result are those of the whole; the verdict names
    the first broken link in this order.
    """
    findings = (*before, *report.findings, *after)
    outside = {f.check for f in (*before, *after) if f.required}
    return replace(
        report,
        seconds=round(seconds, 3),
        digest=digest,
        required=tuple(sorted({*report.required, *outside})),
        exit_code=exit_code(findings),
        verdict=verdict_text(findings),
        findings=findings,
    )
