"""Exit codes and the paragraph that explains them."""

from __future__ import annotations

import pytest

from tests.verify.report.sample import TRACE
from tests.verify.suite import CLAIMS, finding
from verify.engine.verdict import exit_code, verdict_text
from verify.model import Level, Owner, Status
from verify.report.results import build

P, F, S, U = Status.PASS, Status.FAIL, Status.SKIP, Status.UNKNOWN


@pytest.mark.parametrize(
    ("statuses", "code"),
    [([P, P], 0), ([P, F], 1), ([P, S], 3), ([P, U], 3), ([S, F, U], 1), ([], 0)],
)
def test_only_a_pass_counts_and_one_beats_three(statuses: list[Status], code: int) -> None:
    """A skip or unknown on a required check is exit 3, a failure exit 1."""
    assert exit_code([finding(f"c{n}", status) for n, status in enumerate(statuses)]) == code


@pytest.mark.parametrize("status", [F, S, U])
def test_what_is_not_required_decides_nothing(status: Status) -> None:
    """A check that nobody required changes no exit code."""
    assert exit_code([finding("a", P), finding("b", status, required=False)]) == 0


def test_the_first_broken_link_is_told_whole() -> None:
    """What, how it was seen, whose it is, what to do; the other failures by name."""
    first = finding("a", F, observed="it is torn", expected="a chain", remedy="mend it", owner=Owner.HOST)
    words = verdict_text([finding("z", F, required=False), first, finding("b", F)])
    assert words == (
        "The first broken link is a: it is torn. Expected: a chain. Whose it is: host. "
        "What to do: mend it. Also failing: z, b."
    )


def test_a_missing_gpu_is_said_beside_another_reason() -> None:
    """Both reasons for exit 3 stand in the verdict; what is merely blocked does not."""
    found = [
        finding("hung", U, observed="timed out after 1 s"),
        finding("behind", S, data={"blocked_by": "hung"}),
        finding("cuda", S, level=Level.GPU, observed="no GPU was given", data={"no_gpu": True}),
    ]
    words = verdict_text(found)
    assert "hung: timed out after 1 s." in words
    assert "No GPU was given to this container" in words
    assert "Not proven: hung." in words


def test_a_gpu_check_that_was_skipped_for_another_reason_says_that_reason() -> None:
    """One GPU where two are needed is not a missing GPU."""
    words = verdict_text([finding("nccl-all-gpus", S, level=Level.MULTI_GPU, observed="1 GPU: two are needed")])
    assert "nccl-all-gpus: 1 GPU: two are needed." in words
    assert "No GPU was given" not in words


def test_every_reason_of_a_skip_is_counted_apart() -> None:
    """Two without a package, one without a second GPU."""
    skips = [("a", "no package"), ("b", "no package"), ("c", "1 GPU")]
    found = [finding("x", P), *(finding(name, S, required=False, observed=why) for name, why in skips)]
    assert verdict_text(found) == "The required check passed. Not checked here: 2 (no package); 1 (1 GPU)."


def test_advice_stands_beside_a_pass() -> None:
    """A run that passed still says what is not right."""
    words = verdict_text([finding("a", P), finding("shm", F, required=False, remedy="--shm-size=8g")])
    assert words.startswith("The required check passed.")
    assert "Not required, but not right: shm" in words
    assert "--shm-size=8g" in words


def test_the_report_counts_and_collects_the_trainings() -> None:
    """Traces leave the findings' data and stand once, in the report's own list."""
    trained = finding("train", P, data={"training": TRACE, "more": 1})
    report = build([trained, finding("b", S)], "2026-11-30T00:00:00Z", 1.0, ["verify"], CLAIMS, "cpu", {"b"}, 3, "w")
    assert report.counts == {"pass": 1, "fail": 0, "skip": 1, "unknown": 0}
    assert [trace.name for trace in report.training] == ["rnn-titles"]
    assert report.to_dict()["findings"][0]["data"] == {"more": 1}
    assert (report.profile, report.required) == ("cpu", ("b",))
    assert report.image
    assert report.image["versions"]["torch"] == "9.9.9+cu998"
