"""Gives each consequence the owner of its cause."""

from __future__ import annotations

from dataclasses import replace
from typing import Dict, FrozenSet, List, Mapping, Sequence

from verify.model import Check, Finding, Status


def trace(findings: Sequence[Finding], checks: Sequence[Check]) -> List[Finding]:
    """The findings, with the owner of its first cause on each that is blocked by a failure or explained by one.

    A failure that is explained gets the cause's remedy too, and ``caused_by`` in its data. A cause may stand later
    in the chain: a package that was swapped is found by ``lock`` after the check that it broke. A failure with
    ``explains`` False in its data is nobody else's cause.
    """
    explained = {check.id: check.explained_by for check in checks}
    failed = {f.check: f for f in findings if f.verdict.status is Status.FAIL}
    return [_settled(finding, explained, failed) for finding in findings]


def _settled(finding: Finding, explained: Mapping[str, Sequence[str]], failed: Dict[str, Finding]) -> Finding:
    verdict = finding.verdict
    blocker = str(verdict.data.get("blocked_by") or "")
    if blocker in failed:
        owner = failed[_root(blocker, explained, failed, frozenset())].verdict.owner
        return replace(finding, verdict=replace(verdict, owner=owner))
    root = _root(finding.check, explained, failed, frozenset())
    if finding.check not in failed or root == finding.check:
        return finding
    cause = failed[root].verdict
    traced = replace(
        verdict,
        observed=f"{verdict.observed} (caused by {root})",
        owner=cause.owner,
        remedy=cause.remedy,
        data={**verdict.data, "caused_by": root},
    )
    return replace(finding, verdict=traced)


def _root(check: str, explained: Mapping[str, Sequence[str]], failed: Dict[str, Finding], seen: FrozenSet[str]) -> str:
    """The first failure that the check's failure goes back to; the check itself where nothing explains it."""
    for cause in explained.get(check, ()):
        if (
            cause in failed
            and cause != check
            and cause not in seen
            and failed[cause].verdict.data.get("explains", True)
        ):
            return _root(cause, explained, failed, seen | {check})
    return check


def unrequired(findings: Sequence[Finding], named: FrozenSet[str]) -> List[Finding]:
    """The findings; a check that this hardware cannot do is required only if it was asked for by its id."""
    return [
        replace(f, required=False) if f.verdict.data.get("inapplicable") and f.check not in named else f
        for f in findings
    ]
