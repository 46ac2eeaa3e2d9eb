"""Shorthands for verdicts."""

from __future__ import annotations

from typing import Any

from verify.model import Claims, Owner, Status, Verdict

NOT_AN_IMAGE = "not inside a gpuyard image (no /etc/gpuyard/image.json), so there is no claim to compare"


def passed(observed: str, expected: str = "", **data: Any) -> Verdict:
    """A pass; ``observed`` says what was measured."""
    return Verdict(Status.PASS, observed, expected, data=data)


def failed(observed: str, expected: str, remedy: str, owner: Owner, **data: Any) -> Verdict:
    """A failure: who has to act, and what to do."""
    return Verdict(Status.FAIL, observed, expected, remedy, owner, data)


def skipped(reason: str, remedy: str = "") -> Verdict:
    """A skip: the check does not apply here."""
    return Verdict(Status.SKIP, reason, remedy=remedy)


def inapplicable(reason: str, remedy: str = "") -> Verdict:
    """A skip where this machine or environment has no such thing; required only if it was asked for by its id."""
    return Verdict(Status.SKIP, reason, remedy=remedy, data={"inapplicable": True})


def unknown(reason: str, remedy: str = "", **data: Any) -> Verdict:
    """The check could not find out."""
    return Verdict(Status.UNKNOWN, reason, remedy=remedy, data=data)


def inside(claims: Claims) -> bool:
    """Whether there are claims to compare with."""
    return bool(claims.image)


def listed(items: Any, most: int = 5) -> str:
    """The first few items, and how many more there are."""
    texts = [str(item) for item in items]
    more = f" and {len(texts) - most} more" if len(texts) > most else ""
    return ", ".join(texts[:most]) + more
