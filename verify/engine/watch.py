"""Checks a running machine at intervals and reports when a GPU is lost or comes back."""

from __future__ import annotations

import contextlib
import signal
import time
from types import FrameType
from typing import Callable, Iterator, List, Optional

from verify.engine.run import run_checks
from verify.engine.verdict import FAILED, NOT_RUN, PASSED, verdict_text
from verify.model import Check, Claims, Status

WATCHED = ("visible-devices", "device-nodes", "nvml")
"""They take milliseconds, and neither start CUDA nor use GPU memory."""


def watch(
    checks: List[Check],
    claims: Claims,
    interval: float,
    rounds: int = 1 << 62,
    tell: Callable[[str], None] = lambda text: print(text, flush=True),
) -> int:
    """One line at the start and at every change; ends with Ctrl-C and the exit code of the last look."""
    watched = [check for check in checks if check.id in WATCHED]
    before, code = "", PASSED
    with contextlib.suppress(KeyboardInterrupt), _interrupts() as heard:
        for number in range(rounds):
            if number:
                time.sleep(interval)
            seen, text = look(watched, claims)
            if heard:
                break
            code = seen
            if text != before:
                tell(f"{time.strftime('%H:%M:%S')} {text}")
                before = text
    return code


@contextlib.contextmanager
def _interrupts() -> Iterator[List[int]]:
    """Record each Ctrl-C and raise it, because a run of checks swallows it."""
    heard: List[int] = []

    def note(number: int, _frame: Optional[FrameType]) -> None:
        heard.append(number)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, note)
    try:
        yield heard
    finally:
        signal.signal(signal.SIGINT, before)


def look(watched: List[Check], claims: Claims) -> "tuple[int, str]":
    """The exit code and the line of one look."""
    findings = run_checks(watched, {check.id for check in watched}, claims)
    statuses = {finding.verdict.status for finding in findings}
    if Status.FAIL in statuses:
        return FAILED, verdict_text(findings)
    if Status.PASS in statuses:
        return PASSED, "ok: " + findings[-1].verdict.observed
    return NOT_RUN, findings[0].verdict.observed
