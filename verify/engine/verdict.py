"""The verdict: what is broken first, what was seen, who has to act, what to do."""

from __future__ import annotations

from collections import Counter
from typing import Sequence

from verify.model import Finding, Status

PASSED, FAILED, USAGE, NOT_RUN = 0, 1, 2, 3

NO_GPU = (
    "No GPU was given to this container: a required check needs one. "
    "Start it with a GPU: docker run --gpus all IMAGE verify "
    "(compose: deploy.resources.reservations.devices; the host needs the NVIDIA driver and the "
    "NVIDIA Container Toolkit). To check only what needs no GPU: verify --profile cpu."
)


def exit_code(findings: Sequence[Finding]) -> int:
    """0 when every required check passed, 1 when one failed, 3 when one could not run; 1 beats 3."""
    statuses = {f.verdict.status for f in findings if f.required}
    if Status.FAIL in statuses:
        return FAILED
    return NOT_RUN if statuses & {Status.SKIP, Status.UNKNOWN} else PASSED


def verdict_text(findings: Sequence[Finding]) -> str:
    """One paragraph in plain English."""
    code = exit_code(findings)
    if code == FAILED:
        return _failed(findings)
    if code == NOT_RUN:
        return _not_run(findings) + _advice(findings)
    return _passed(findings) + _advice(findings)


def _failed(findings: Sequence[Finding]) -> str:
    """The first broken required link that no other explains in full, the other broken ones by name."""
    broken = [f for f in findings if f.verdict.status is Status.FAIL]
    required = [f for f in broken if f.required]
    first = next((f for f in required if not f.verdict.data.get("caused_by")), required[0])
    others = ", ".join(f.check for f in broken if f is not first)
    more = f" Also failing: {others}." if others else ""
    return f"The first broken link is {first.check}: {_why(first)}{more}"


def _why(finding: Finding) -> str:
    verdict = finding.verdict
    parts = [f"{_sentence(verdict.observed)}"]
    if verdict.expected:
        parts.append(f"Expected: {_sentence(verdict.expected)}")
    if verdict.owner:
        parts.append(f"Whose it is: {verdict.owner.value}.")
    if verdict.remedy:
        parts.append(f"What to do: {_sentence(verdict.remedy)}")
    return " ".join(parts)


def _sentence(text: str) -> str:
    text = text.strip()
    return text if text.endswith((".", "!", "?", ":")) else text + "."


def _not_run(findings: Sequence[Finding]) -> str:
    """The first required check that could not run and, where that is the reason, that there is no GPU."""
    silent = [f for f in findings if f.required and f.verdict.status in (Status.SKIP, Status.UNKNOWN)]
    plain = [f for f in silent if not f.verdict.data.get("blocked_by")]
    gpu = [f for f in plain if f.verdict.data.get("no_gpu")]
    others = [f for f in plain if f not in gpu] or ([] if gpu else silent)
    parts = []
    if others:
        first = others[0]
        status = "was skipped" if first.verdict.status is Status.SKIP else "gave no answer"
        names = ", ".join(f.check for f in others)
        parts.append(f"A required check {status}: {first.check}: {_why(first)} Not proven: {names}.")
    if gpu:
        parts.append(f"{NO_GPU} Seen: {_sentence(gpu[0].verdict.observed)}")
    return " ".join(parts)


def _passed(findings: Sequence[Finding]) -> str:
    required = [f for f in findings if f.required]
    outside = sum(f.where == "outside" for f in required)
    sides = f" ({len(required) - outside} inside the container, {outside} from outside)" if outside else ""
    text = "The required check passed" if len(required) == 1 else f"All {len(required)} required checks passed"
    text += f"{sides}."
    reasons = Counter(f.verdict.observed for f in findings if f.verdict.status is Status.SKIP)
    if reasons:
        text += " Not checked here: " + "; ".join(f"{count} ({reason})" for reason, count in reasons.items()) + "."
    return text


def _advice(findings: Sequence[Finding]) -> str:
    """What failed without being required: the first in full, the others by name."""
    broken = [f for f in findings if f.verdict.status is Status.FAIL]
    if not broken:
        return ""
    others = ", ".join(f.check for f in broken[1:])
    more = f" Also failing: {others}." if others else ""
    return f" Not required, but not right: {broken[0].check}: {_why(broken[0])}{more}"
