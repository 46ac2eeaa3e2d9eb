"""The runner turns whatever a probe does into an answer."""

from __future__ import annotations

import os
import signal
import subprocess
import time

import pytest

from tests.verify.suite import CLAIMS, fake, gone, hang
from verify.engine.run import INTERRUPTED, run_checks
from verify.model import Check, Claims, Facts, Finding, Isolation, Owner, Status, Verdict

CHILD = Isolation.CHILD


def run_one(check: Check) -> Finding:
    return run_checks([check], {check.id}, CLAIMS)[0]


def die() -> Facts:
    os.kill(os.getpid(), signal.SIGBUS)
    return {"ok": True}


def boom() -> Facts:
    raise ValueError("no such thing")


@pytest.mark.parametrize("isolation", [Isolation.NONE, CHILD])
def test_facts_reach_the_evaluation(isolation: Isolation) -> None:
    """A probe's facts are judged the same in this process and in a child."""
    assert run_one(fake("a", isolation=isolation)).verdict.status is Status.PASS


def test_a_hang_is_unknown_and_ends_in_time() -> None:
    """A probe that never answers is killed at its timeout."""
    started = time.monotonic()
    finding = run_one(fake("a", hang, isolation=CHILD, timeout=0.5))
    assert finding.verdict.status is Status.UNKNOWN
    assert finding.verdict.observed == "timed out after 0.5 s"
    assert time.monotonic() - started < 20


def test_a_crash_is_not_the_end() -> None:
    """A probe killed by SIGBUS is named so, and the next check runs."""
    found = run_checks([fake("a", die, isolation=CHILD), fake("b")], set(), CLAIMS)
    assert found[0].verdict.observed == "the probe was killed by SIGBUS"
    assert [f.verdict.status for f in found] == [Status.UNKNOWN, Status.PASS]


def test_a_check_may_explain_a_crash_as_its_failure() -> None:
    """Where the evaluation knows the crash, its verdict is taken."""

    def evaluate(facts: Facts, _claims: Claims) -> Verdict:
        return Verdict(Status.FAIL, f"bus error ({facts['crash']})", owner=Owner.START)

    assert run_one(fake("a", die, isolation=CHILD, evaluate=evaluate)).verdict.status is Status.FAIL


@pytest.mark.parametrize("status", [Status.PASS, Status.SKIP])
def test_a_crash_never_reads_as_well(status: Status) -> None:
    """An evaluation that overlooks the crash cannot make a pass or a skip of it."""
    check = fake("a", die, isolation=CHILD, evaluate=lambda _facts, _claims: Verdict(status, "SIGBUS? fine"))
    assert run_one(check).verdict.status is Status.UNKNOWN


@pytest.mark.parametrize("isolation", [Isolation.NONE, CHILD])
def test_an_exception_is_unknown_with_its_traceback_apart(isolation: Isolation) -> None:
    """The table shows the last line; the traceback stands in error only."""
    finding = run_one(fake("a", boom, isolation=isolation))
    assert finding.verdict.observed == "the probe could not finish: ValueError: no such thing"
    assert "Traceback" in finding.error
    assert "Traceback" not in finding.verdict.observed


def test_an_evaluation_that_stumbles_is_unknown() -> None:
    """Facts of another shape than the evaluation expects do not end the run."""
    assert run_one(fake("a", evaluate=lambda facts, _claims: facts["none"])).verdict.status is Status.UNKNOWN


def test_a_probe_that_exits_is_unknown() -> None:
    """A library that ends the process gives no answer."""
    finding = run_one(fake("a", lambda: os._exit(7), isolation=CHILD))
    assert "ended with code 7" in finding.verdict.observed


def test_what_a_probe_prints_stays_off_stdout(capfd: pytest.CaptureFixture[str]) -> None:
    """Output of a probe would spoil JSON on stdout; of a failed one it is kept as error."""

    def loud() -> Facts:
        os.write(1, b"noise\n")
        raise RuntimeError("after noise")

    finding = run_one(fake("a", loud, isolation=CHILD))
    assert capfd.readouterr().out == ""
    assert "noise" in finding.error


def test_what_a_probe_started_is_gone() -> None:
    """A probe's own children end with it, also when they hold its pipe open."""

    def leave_child() -> Facts:
        return {"ok": True, "pid": subprocess.Popen(["sleep", "60"], close_fds=False).pid}

    finding = run_one(
        fake("a", leave_child, isolation=CHILD, evaluate=lambda f, _c: Verdict(Status.PASS, str(f["pid"])))
    )
    assert gone(int(finding.verdict.observed))


def test_a_failed_need_blocks_and_the_root_is_named() -> None:
    """a fails, b needs a, c needs b: both are blocked by a."""
    checks = [fake("a", lambda: {}), fake("b", needs=("a",)), fake("c", needs=("b",))]
    found = run_checks(checks, {"a", "b", "c"}, CLAIMS)
    assert [f.verdict.observed for f in found[1:]] == ["blocked by a", "blocked by a"]
    assert [f.verdict.status for f in found[1:]] == [Status.SKIP, Status.SKIP]


def test_a_skipped_need_passes_its_reason_on() -> None:
    """Without a GPU the checks behind say so too, instead of being blocked."""
    skip = fake("a", evaluate=lambda _facts, _claims: Verdict(Status.SKIP, "no GPU here"))
    found = run_checks([skip, fake("b", needs=("a",))], set(), CLAIMS)
    assert found[1].verdict.observed == "no GPU here"


def test_checks_of_one_probe_share_its_facts_but_not_its_failure() -> None:
    """It runs once for both; where it raised the first time it is tried again."""
    ran: list[str] = []

    def count() -> Facts:
        ran.append("x")
        if len(ran) == 1:
            raise ValueError("not yet")
        return {"ok": True}

    found = run_checks([fake("a", count), fake("b", count), fake("c", count)], set(), CLAIMS)
    assert [f.verdict.status for f in found] == [Status.UNKNOWN, Status.PASS, Status.PASS]
    assert len(ran) == 2


def test_a_hang_is_waited_for_once() -> None:
    """The second check of the probe has the same answer at once."""
    started = time.monotonic()
    found = run_checks([fake(name, hang, isolation=CHILD, timeout=3) for name in ("a", "b", "c")], set(), CLAIMS)
    assert [f.verdict.observed for f in found] == ["timed out after 3 s"] * 3
    assert time.monotonic() - started < 8


def test_an_interrupt_leaves_the_rest_unknown() -> None:
    """After Ctrl-C what was done is reported and what was not is not hidden."""

    def interrupt(number: int, _total: int, _check: Check) -> None:
        if number == 2:
            raise KeyboardInterrupt

    found = run_checks([fake("a"), fake("b"), fake("c")], set(), CLAIMS, interrupt)
    assert [f.verdict.observed == INTERRUPTED for f in found] == [False, True, True]
