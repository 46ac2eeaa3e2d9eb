"""Reports for the renderers' tests, made by the suite's own builder from findings that are written here."""

from __future__ import annotations

from collections.abc import Sequence

from verify.model import Claims, Finding, Level, Owner, Status, Verdict
from verify.report.report import Report
from verify.report.results import build

HOSTILE = "<script>alert('x')</script> \"quoted\" & \x1b[31mred\x00"
TRACE = {
    "name": "rnn-titles",
    "device": "cpu",
    "precision": "bf16",
    "loss": [0.7, None, 0.4, 0.1, *[0.05] * 6],
    "bound": 0.3,
    "steps": 10,
    "seconds": 1.5,
    "samples_per_second": 100.0,
    "seed": 7,
    "grads_finite": True,
    "accuracy": 0.8,
}


def finding(check: str, verdict: Verdict, level: Level = Level.CPU, required: bool = False) -> Finding:
    """A finding of a check that does not exist."""
    return Finding(check, "fake", level, f"Title of {check}", verdict, required, 0.25)


FINDINGS = (
    finding("late-gpu", Verdict(Status.SKIP, "no GPU was given"), Level.GPU),
    finding("later-gpu", Verdict(Status.SKIP, "no GPU was given"), Level.GPU),
    finding("versions", Verdict(Status.PASS, "all as claimed"), Level.IMAGE, required=True),
    finding("slow", Verdict(Status.UNKNOWN, "timed out after 20 s", remedy="run it alone"), required=True),
    finding("learns", Verdict(Status.PASS, "loss fell", data={"training": [TRACE]})),
    finding(
        "shm-size",
        Verdict(Status.FAIL, "64 MiB", "at least 1 GiB", "start with --shm-size=8g", Owner.START),
        Level.CONTAINER,
        required=True,
    ),
)


def report(findings: Sequence[Finding] = FINDINGS, exit_code: int = 1) -> Report:
    """A report as ``verify`` makes it."""
    claims = Claims({"image": "workbench", "line": "9.9", "os": "none-1", "versions": {"torch": "9.9.9"}}, {})
    required = [found.check for found in findings if found.required]
    return build(
        findings,
        started="2031-01-02T03:04:05Z",
        seconds=12.5,
        command=["verify"],
        claims=claims,
        profile_name="default",
        required=required,
        exit_code=exit_code,
        verdict="The first broken link is shm-size: start with --shm-size=8g.",
    )
