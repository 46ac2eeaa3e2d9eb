"""A consequence has the owner of its cause, wherever in the chain the cause stands."""

from __future__ import annotations

from tests.verify.suite import CLAIMS, fake
from verify.engine.causes import unrequired
from verify.engine.registry import CHECKS
from verify.engine.run import run_checks
from verify.engine.verdict import verdict_text
from verify.model import Check, Claims, Facts, Finding, Owner, Status, Verdict


def broken(check_id: str, owner: Owner, **changes: object) -> Check:
    """A check that fails with that owner and a remedy of its own."""

    def evaluate(_facts: Facts, _claims: Claims) -> Verdict:
        return Verdict(Status.FAIL, f"{check_id} is torn", "whole", f"mend {check_id}", owner)

    return fake(check_id, evaluate=evaluate, **changes)


def run(*checks: Check) -> dict[str, Finding]:
    """The findings by check, all of them required."""
    return {f.check: f for f in run_checks(list(checks), {check.id for check in checks}, CLAIMS)}


def test_a_swap_that_is_found_later_decides_the_owner() -> None:
    """numpy-bridge blames the image, until lock has found that somebody put another NumPy there."""
    found = run(broken("bridge", Owner.IMAGE, explained_by=("lock",)), broken("lock", Owner.START))
    assert found["bridge"].verdict.owner is Owner.START
    assert found["bridge"].verdict.remedy == "mend lock"
    assert found["bridge"].verdict.observed == "bridge is torn (caused by lock)"
    assert found["bridge"].verdict.data["caused_by"] == "lock"
    assert verdict_text(list(found.values())).startswith("The first broken link is lock: ")


def test_without_the_cause_the_checks_own_owner_stands() -> None:
    """lock passes: the image was built wrong."""
    found = run(broken("bridge", Owner.IMAGE, explained_by=("lock",)), fake("lock"))
    assert (found["bridge"].verdict.owner, found["bridge"].verdict.remedy) == (Owner.IMAGE, "mend bridge")


def test_what_is_blocked_has_the_owner_of_what_blocks_it() -> None:
    """Through several steps, up to a cause that blocks nothing itself."""
    found = run(
        broken("path", Owner.IMAGE),
        broken("libcuda", Owner.START, explained_by=("path",)),
        fake("init", needs=("libcuda",)),
        fake("torch", needs=("init",)),
    )
    assert [found[name].verdict.status for name in ("init", "torch")] == [Status.SKIP, Status.SKIP]
    assert {finding.verdict.owner for finding in found.values()} == {Owner.IMAGE}


def test_a_failure_may_explain_nothing() -> None:
    """Without the capability 'utility' NVML is missing, and cuInit has reasons of its own."""
    own = Verdict(Status.FAIL, "no NVML", "NVML", "grant utility", Owner.START, {"explains": False})
    nvml = fake("nvml", evaluate=lambda _facts, _claims: own)
    found = run(nvml, broken("init", Owner.HOST, explained_by=("nvml",)))
    assert found["init"].verdict.owner is Owner.HOST


def test_causes_that_explain_each_other_end() -> None:
    """Two checks may name one another."""
    found = run(broken("a", Owner.IMAGE, explained_by=("b",)), broken("b", Owner.HOST, explained_by=("a",)))
    assert found["a"].verdict.owner in (Owner.IMAGE, Owner.HOST)


def test_every_cause_is_a_check() -> None:
    """A name without a check would explain nothing."""
    ids = {check.id for check in CHECKS}
    named = {cause for check in CHECKS for cause in check.explained_by}
    assert {"lock", "loader-path", "gpu-health"} <= named <= ids


def test_what_makes_no_sense_here_is_required_by_name_only() -> None:
    """A GPU that triton does not support does not make the whole run end with 3."""
    none = fake("x", evaluate=lambda _facts, _claims: Verdict(Status.SKIP, "too old", data={"inapplicable": True}))
    findings = list(run(none).values())
    assert [f.required for f in unrequired(findings, frozenset())] == [False]
    assert [f.required for f in unrequired(findings, frozenset({"x"}))] == [True]
    assert [f.required for f in unrequired(list(run(fake("y")).values()), frozenset())] == [True]
