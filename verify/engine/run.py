"""Runs checks in the order of the chain and turns what their probes saw into findings."""

from __future__ import annotations

import contextlib
import time
from dataclasses import replace
from functools import partial
from typing import Any, Callable, Dict, Iterator, List, Optional, Set

from verify.checks.image.installed import probe_installed, probe_packages
from verify.engine.causes import trace
from verify.engine.isolate import Outcome, run_forked, run_here
from verify.engine.owners import settle_owners
from verify.engine.registry import all_needs
from verify.engine.torchhost import TorchHost
from verify.model import Check, Claims, Facts, Finding, Isolation, Probe, Status, Verdict

Tell = Callable[[int, int, Check], None]
"""Called before each check with its number, the number of checks, and the check."""

LOOK_SECONDS = 30.0
INTERRUPTED = "not run: interrupted before its turn"


def quiet(_number: int, _total: int, _check: Check) -> None:
    """No-op callback."""


def run_checks(checks: List[Check], required: Set[str], claims: Claims, tell: Tell = quiet) -> List[Finding]:
    """One finding per check, in order; after an interrupt the remaining checks are unknown."""
    found: Dict[str, Finding] = {}
    seen: Dict[Probe, Outcome] = {}
    with contextlib.suppress(KeyboardInterrupt), _host(checks) as host:
        for number, check in enumerate(checks, start=1):
            tell(number, len(checks), check)
            found[check.id] = _run_one(check, check.id in required, claims, found, partial(_probe, host, seen))
    for check in checks:
        if check.id not in found:
            rest = Verdict(Status.UNKNOWN, INTERRUPTED, remedy="verify --only " + check.id)
            found[check.id] = _finding(check, rest, check.id in required)
    findings = settle_owners([found[check.id] for check in checks], claims, partial(_installed, seen))
    return trace(findings, checks)


def _installed(seen: Dict[Probe, Outcome]) -> Optional[Facts]:
    """What is installed, by the probe of a check that ran, or by asking now."""
    ran = (seen[probe].facts for probe in (probe_packages, probe_installed) if probe in seen)
    return next((facts for facts in ran if facts), None) or run_forked(probe_installed, LOOK_SECONDS).facts


@contextlib.contextmanager
def _host(checks: List[Check]) -> Iterator[Optional[TorchHost]]:
    """The process with torch, started at once so that it imports while the small checks run."""
    wanted = [check for check in checks if check.isolation is Isolation.TORCH]
    host = TorchHost(wanted) if wanted else None
    try:
        yield host
    finally:
        if host:
            host.close()


def _run_one(
    check: Check, required: bool, claims: Claims, found: Dict[str, Finding], ask: Callable[[Check], Outcome]
) -> Finding:
    blocked = blocker(check, found)
    if blocked:
        return _finding(check, blocked, required)
    started = time.monotonic()
    outcome = ask(check)
    verdict = judge(check, outcome, claims)
    error = "" if verdict.status in (Status.PASS, Status.SKIP) else _error(outcome)
    finding = _finding(check, verdict, required, error)
    return replace(finding, seconds=round(time.monotonic() - started, 3))


def _probe(host: Optional[TorchHost], seen: Dict[Probe, Outcome], check: Check) -> Outcome:
    """The outcome of the check's probe. Checks with the same probe share its facts or its hang; an error is retried."""
    before = seen.get(check.probe)
    if before is None or not (before.facts is not None or before.timed_out):
        seen[check.probe] = _run_probe(host, check)
    return seen[check.probe]


def _run_probe(host: Optional[TorchHost], check: Check) -> Outcome:
    if check.isolation is Isolation.NONE:
        return run_here(check.probe)
    if check.isolation is Isolation.TORCH and host:
        return host.ask(check)
    return run_forked(check.probe, check.timeout)


def blocker(check: Check, found: Dict[str, Finding]) -> Optional[Verdict]:
    """The verdict of a check whose needs did not pass: the first of them decides."""
    for need in all_needs(check):
        finding = found.get(need)
        if finding is None or finding.verdict.status is Status.PASS:
            continue
        root: str = finding.verdict.data.get("blocked_by") or need
        if finding.verdict.status is Status.SKIP and root == need:
            return replace(finding.verdict, expected="")
        return Verdict(
            Status.SKIP,
            f"blocked by {root}",
            f"{root} passes",
            remedy=f"repair {root} first: verify explain {root}",
            data={"blocked_by": root},
        )
    return None


def judge(check: Check, outcome: Outcome, claims: Claims) -> Verdict:
    """The check's verdict on the facts; unknown without facts."""
    again = f"run it alone: verify --only {check.id}"
    if outcome.timed_out:
        return Verdict(Status.UNKNOWN, f"timed out after {check.timeout:g} s", remedy=again)
    if outcome.error:
        last = outcome.error.strip().splitlines()[-1]
        return Verdict(Status.UNKNOWN, f"the probe could not finish: {last}", remedy=again)
    if outcome.crash:
        return _judge_crash(check, outcome.crash, claims, again)
    return _evaluate(check, outcome.facts or {}, claims, again)


def _judge_crash(check: Check, crash: str, claims: Claims, again: str) -> Verdict:
    """A check may turn a crash into a failure, never into a pass or a skip."""
    died = Verdict(Status.UNKNOWN, f"the probe was killed by {crash}", remedy=again, data={"crash": crash})
    verdict = _evaluate(check, {"crash": crash}, claims, again)
    return verdict if verdict.status is Status.FAIL and crash in verdict.observed else died


def _evaluate(check: Check, facts: Dict[str, Any], claims: Claims, again: str) -> Verdict:
    try:
        return check.evaluate(facts, claims)
    except Exception as error:
        text = f"the facts could not be judged: {type(error).__name__}: {error}"
        return Verdict(Status.UNKNOWN, text, remedy=again, data={"facts": facts})


def _error(outcome: Outcome) -> str:
    return "\n".join(part for part in (outcome.error.strip(), outcome.output) if part)


def _finding(check: Check, verdict: Verdict, required: bool, error: str = "") -> Finding:
    return Finding(
        check=check.id,
        group=check.group,
        level=check.level,
        title=check.title,
        verdict=verdict,
        required=required,
        seconds=0.0,
        error=error,
    )
