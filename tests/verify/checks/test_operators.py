"""Wrong values, lossy checkpoints and silent errors fail; the real operators pass."""

from __future__ import annotations

from typing import Any

import pytest

from tests.verify.suite import CLAIMS
from verify.checks.compute import operators
from verify.model import Owner, Status

torch = pytest.importorskip("torch")


def judged(facts: Any) -> Any:
    return operators.evaluate(Owner.HOST, facts, CLAIMS)


def test_the_real_operators_are_right_on_the_cpu() -> None:
    """Every operator in both formats, values and gradients."""
    facts = operators.probe_cpu()
    verdict = judged(facts)
    assert verdict.status is Status.PASS, verdict.observed
    assert set(facts["devices"]["cpu"]) == {"conv2d", "lstm", "attention"}
    assert min(facts["devices"]["cpu"]["lstm"].values()) > 0


def test_a_wrong_convolution_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """One part in a thousand is more than fp32 rounds."""
    right = torch.nn.functional.conv2d

    def wrong(inputs: Any, *rest: Any, **named: Any) -> Any:
        return right(inputs, *rest, **named) * (1.001 if inputs.dtype.itemsize == 4 else 1)

    monkeypatch.setattr(torch.nn.functional, "conv2d", wrong)
    verdict = judged(operators.probe_cpu())
    assert verdict.status is Status.FAIL
    assert "conv2d fp32 off by" in verdict.observed


def test_a_wrong_gradient_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The values are right, what comes back is not."""
    right = torch.nn.functional.scaled_dot_product_attention

    class Lossy(torch.autograd.Function):  # type: ignore[misc,name-defined,unused-ignore]
        @staticmethod
        def forward(_context: Any, values: Any) -> Any:
            return values.clone()

        @staticmethod
        def backward(_context: Any, gradient: Any) -> Any:  # type: ignore[override,unused-ignore]
            return gradient * (1.1 if gradient.dtype.itemsize < 8 else 1)

    def changed(*given: Any, **named: Any) -> Any:
        return Lossy.apply(right(*given, **named))

    monkeypatch.setattr(torch.nn.functional, "scaled_dot_product_attention", changed)
    assert "attention" in judged(operators.probe_cpu()).observed


@pytest.mark.parametrize("facts", [{"devices": {}}, {"error": "RuntimeError: cuDNN error"}])
def test_nothing_measured_is_no_pass(facts: Any) -> None:
    """No operator, or an error."""
    assert judged(facts).status is Status.FAIL


def test_the_real_checkpoint_keeps_every_bit() -> None:
    """Model and optimizer, and the same again from the same seed."""
    verdict = operators.evaluate_checkpoint(operators.probe_checkpoint("cpu"), CLAIMS)
    assert verdict.status is Status.PASS, verdict.observed


def test_a_lossy_checkpoint_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A loader that changes one bit."""
    right = torch.load

    def lossy(*given: Any, **named: Any) -> Any:
        state = right(*given, **named)
        next(iter(state["model"].values())).view(-1)[0] += 1e-6
        return state

    monkeypatch.setattr(torch, "load", lossy)
    assert (
        "loaded checkpoint differs" in operators.evaluate_checkpoint(operators.probe_checkpoint("cpu"), CLAIMS).observed
    )


def test_a_run_that_does_not_repeat_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the seed the second run takes another course."""
    monkeypatch.setattr(torch, "manual_seed", lambda _seed: None)
    assert "second run" in operators.evaluate_checkpoint(operators.probe_checkpoint("cpu"), CLAIMS).observed


@pytest.mark.parametrize(
    ("raised", "status"),
    [("CUDA error: device-side assert triggered", Status.PASS), ("", Status.FAIL), ("other", Status.FAIL)],
)
def test_an_error_has_to_be_raised_and_to_name_cuda(raised: str, status: Status) -> None:
    """Silence is the worst answer."""
    assert operators.evaluate_cuda_error({"raised": raised}, CLAIMS).status is status
