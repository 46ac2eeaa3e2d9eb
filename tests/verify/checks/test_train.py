"""The training checks pass only on runs that learned, and say what else they saw."""

from __future__ import annotations

from typing import Any

import pytest

from tests.verify.suite import NO_CLAIMS
from verify.checks.train.learning import CHECKS, evaluate, probe_cpu
from verify.model import Owner, Status, Verdict

TRACE: dict[str, Any] = {
    "name": "rnn-titles",
    "device": "cpu",
    "precision": "bf16",
    "loss": [0.7, 0.6, *[0.1] * 8],
    "bound": 0.3,
    "steps": 10,
    "seconds": 1.0,
    "samples_per_second": 100.0,
    "seed": 7,
    "grads_finite": True,
    "accuracy": 0.8,
}


def judge(asked: str = "bf16", repeatable: bool = True, **changes: Any) -> Verdict:
    run = {"asked": asked, "repeatable": repeatable, "trace": {**TRACE, **changes}}
    return evaluate(Owner.IMAGE, {"runs": [run]}, NO_CLAIMS)


def test_a_run_that_learned_passes_and_hands_over_its_trace() -> None:
    """The report's curve comes from here, and the numbers are shown on a pass too."""
    verdict = judge()
    assert verdict.status is Status.PASS
    assert verdict.data["training"] == [TRACE]
    assert "loss 0.7 to 0.1 in 10 steps (bound 0.3)" in verdict.observed


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"loss": [0.7] * 10}, "not below 0.3"),
        ({"loss": [0.7, *[None] * 9]}, "the loss ended at nan"),
        ({"loss": []}, "the loss ended at nan"),
        ({"loss": [0.1] * 10}, "proves nothing"),
        ({"grads_finite": False}, "a gradient was not finite"),
        ({"precision": "fp32"}, "autocast was not used"),
        ({"repeatable": False}, "gave other losses"),
    ],
)
def test_a_run_with_a_fault_fails_with_its_name(changes: dict[str, Any], words: str) -> None:
    """One fault alone is enough, the trace is kept, and someone has to act."""
    verdict = judge(**changes)
    assert verdict.status is Status.FAIL
    assert words in verdict.observed
    assert verdict.data["training"]
    assert verdict.remedy
    assert verdict.owner is Owner.IMAGE


def test_mixed_precision_is_shown_against_fp32_where_both_ran() -> None:
    """As on a GPU: three precisions, two ratios; one precision alone has none."""
    rates = {"fp32": 100.0, "fp16": 130.0, "bf16": 150.0}
    runs = [
        {"asked": name, "repeatable": True, "trace": {**TRACE, "precision": name, "samples_per_second": rate}}
        for name, rate in rates.items()
    ]
    observed = evaluate(Owner.HOST, {"runs": runs}, NO_CLAIMS).observed
    assert observed.endswith("fp16 at 1.3 times fp32's speed; bf16 at 1.5 times fp32's speed")
    assert "fp32's speed" not in judge().observed


def test_an_error_of_the_training_is_a_failure() -> None:
    """What broke is the thing that was checked."""
    verdict = evaluate(Owner.HOST, {"error": "RuntimeError: CUDA error: no kernel image is available"}, NO_CLAIMS)
    assert (verdict.status, verdict.owner) == (Status.FAIL, Owner.IMAGE)


def test_no_run_at_all_is_no_pass() -> None:
    """An empty list proves nothing."""
    assert evaluate(Owner.HOST, {"runs": []}, NO_CLAIMS).status is Status.FAIL


def test_gpu_trainings_are_skipped_without_a_sign_of_a_gpu() -> None:
    """With the reason, and never as a pass."""
    for check in CHECKS:
        if check.id.endswith("-gpu"):
            verdict = check.evaluate({"no_gpu": True, "nodes": [], "libraries": []}, NO_CLAIMS)
            assert verdict.status is Status.SKIP
            assert "no GPU" in verdict.observed


def test_the_probe_trains_twice_and_its_facts_pass() -> None:
    """The real thing, end to end."""
    pytest.importorskip("torch")
    facts = probe_cpu("RNN_TITLES")
    assert [run["repeatable"] for run in facts["runs"]] == [True]
    assert evaluate(Owner.IMAGE, facts, NO_CLAIMS).status is Status.PASS


def test_a_training_that_cannot_start_is_a_fact() -> None:
    """An unknown recipe stands for anything that raises."""
    pytest.importorskip("torch")
    assert probe_cpu("NO_SUCH_RECIPE")["error"].startswith("AttributeError")
