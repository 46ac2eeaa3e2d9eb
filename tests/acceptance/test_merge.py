"""One report from two sides, judged as one."""

from __future__ import annotations

import json

import pytest

from gpuyard.acceptance import suite
from gpuyard.acceptance.merge import merge
from tests.refusals import refused
from verify.engine import registry
from verify.model import Claims, Finding, Level, Owner, Status, Verdict
from verify.report.report import Report
from verify.report.results import build

P, F, S, U = Status.PASS, Status.FAIL, Status.SKIP, Status.UNKNOWN


def finding(name: str, status: Status, required: bool = True, where: str = "outside") -> Finding:
    """A finding of that status."""
    owner = Owner.IMAGE if status is F else None
    verdict = Verdict(status, f"seen by {name}", "all well", "do it", owner, {"n": 1})
    return Finding(name, "g", Level.CONTAINER, "t", verdict, required, 0.5, where)


def inside(*findings: Finding) -> Report:
    """A report as the suite writes it."""
    required = [f.check for f in findings if f.required]
    return build(findings, "2031-01-02T03:04:05Z", 1.0, ["verify"], Claims({}, {}), "default", required, 0, "")


@pytest.mark.parametrize(
    ("within", "without", "code"),
    [
        (P, P, 0),
        (P, F, 1),
        (F, P, 1),
        (P, S, 3),
        (U, P, 3),
        (U, F, 1),
        (F, S, 1),
    ],
)
def test_the_exit_code_is_that_of_the_whole(within: Status, without: Status, code: int) -> None:
    """A failure on either side is 1, and 1 beats the 3 of what could not run."""
    report = merge(inside(finding("a", within, where="inside")), [], [finding("b", without)], "sha256:1", 2.0)
    assert report.exit_code == code


def test_what_is_not_required_changes_no_exit_code() -> None:
    """An advisory failure inside stays one."""
    report = merge(inside(finding("a", F, required=False, where="inside")), [], [finding("b", P)], "d", 2.0)
    assert report.exit_code == 0


def test_the_verdict_names_the_first_broken_link_of_the_chain() -> None:
    """The image's content comes before the inside, the services after it."""
    report = merge(inside(finding("in", F, where="inside")), [finding("layers", F)], [finding("ssh", F)], "d", 2.0)
    assert report.verdict.startswith("The first broken link is layers")
    assert [entry.check for entry in report.findings] == ["layers", "in", "ssh"]
    assert [entry.where for entry in report.findings] == ["outside", "inside", "outside"]


def test_counts_digest_and_required_checks_are_those_of_the_whole() -> None:
    """Nothing of the inside report's own sums is left standing."""
    report = merge(inside(finding("a", P, where="inside")), [finding("b", S)], [finding("c", P)], "sha256:9", 2.0)
    assert report.counts == {"pass": 2, "fail": 0, "skip": 1, "unknown": 0}
    assert report.digest == "sha256:9"
    assert report.required == ("a", "b", "c")
    assert report.seconds == 2.0


def test_a_finding_survives_the_report_and_back() -> None:
    """What was written is what is judged."""
    report = inside(*(finding(status.value, status) for status in Status))
    assert Report.from_dict(json.loads(json.dumps(report.to_dict()))) == report


def test_without_names_all_fitting_checks_run() -> None:
    """An image without services is not asked for SSH, Jupyter or a health check."""
    every = {check.id for check in suite.choose([], [], ("jupyter", "ssh")).outside}
    runtime = {check.id for check in suite.choose([], [], ()).outside}
    assert every == {check.id for check in suite.CHECKS}
    assert every - runtime == {
        "services-ready",
        *(check.id for check in suite.CHECKS if check.group in ("ssh", "jupyter")),
    }


def test_a_name_is_sought_on_both_sides() -> None:
    """A group of one side leaves the other one out; a level stands on both."""
    ssh = suite.choose(["ssh"], [], ("jupyter", "ssh"))
    assert ssh.inside == ()
    assert {check.group for check in ssh.outside} == {"ssh", "start"}
    assert suite.choose(["shm"], ["gpu"], ("ssh",)).outside == ()
    assert suite.choose(["shm"], ["gpu"], ("ssh",)).require == ("gpu",)
    image = suite.choose(["image"], [], ())
    assert image.inside == ("image",)
    assert image.outside


def test_what_a_chosen_check_needs_runs_too() -> None:
    """A kernel means nothing where the token opens nothing."""
    chosen = [check.id for check in suite.choose(["jupyter-kernel"], [], ("jupyter", "ssh")).outside]
    assert chosen == ["services-ready", "jupyter-token", "jupyter-kernel"]


def test_an_unknown_name_is_refused_with_the_nearest() -> None:
    """Before anything starts, exit code 2."""
    with refused("check-unknown", "jupyter-kernel", code=2):
        suite.choose(["jupiter-kernel"], [], ("jupyter",))


def test_no_check_has_the_same_name_on_both_sides() -> None:
    """In one report each name stands once."""
    within = [check.id for check in registry.CHECKS]
    outside = [check.id for check in suite.CHECKS]
    assert len(set(within + outside)) == len(within + outside)
