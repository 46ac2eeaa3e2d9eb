"""One owner for one cause: what follows from a package that somebody swapped is theirs, not the image's."""

from __future__ import annotations

from dataclasses import replace
from typing import Callable, List, Optional

from verify.checks.image.packages import differing, installed_later, repair
from verify.model import Claims, Facts, Finding, Owner, Status

OF_PACKAGES = frozenset({"packages", "torch", "libraries", "compute", "compile", "distributed", "train"})
"""Groups whose checks exercise the installed packages, so that a swapped one can be the cause of their failures."""
Look = Callable[[], Optional[Facts]]
"""What is installed (``packages.probe_installed``); asked for only where a failure needs it."""


def settle_owners(findings: List[Finding], claims: Claims, look: Look) -> List[Finding]:
    """The findings, with failures of the image's packages given to whoever changed locked packages later."""
    suspects = {f.check for f in findings if _blames_image(f)}
    facts = look() if suspects and claims.image.get("packages") else None
    if not facts:
        return findings
    later = installed_later(facts, claims)
    swapped = {name: version for name, version in differing(facts, claims).items() if name in later}
    if not swapped:
        return findings
    remedy = repair(swapped)
    return [
        replace(f, verdict=replace(f.verdict, owner=Owner.START, remedy=remedy)) if f.check in suspects else f
        for f in findings
    ]


def _blames_image(finding: Finding) -> bool:
    verdict = finding.verdict
    return finding.group in OF_PACKAGES and verdict.status is Status.FAIL and verdict.owner is Owner.IMAGE
