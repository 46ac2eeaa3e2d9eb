"""The generators learn and write, repeat themselves, and what writes no text does not pass."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.verify.checks.test_train import judge
from tests.verify.suite import CLAIMS, NO_CLAIMS
from verify.checks.train import speed
from verify.checks.train.learning import evaluate
from verify.model import Owner, Status


@pytest.mark.parametrize(("sample", "status"), [("the news of the day", Status.PASS), ("eeeeeeee", Status.FAIL)])
def test_a_generator_has_to_write_text(sample: str, status: Status) -> None:
    """One letter over and over is none, whatever the loss."""
    verdict = judge(sample=sample)
    assert verdict.status is status
    assert sample in verdict.observed


def test_a_missing_package_is_a_skip_with_the_way_to_get_it() -> None:
    """transformers belongs to the image, not to every machine."""
    verdict = evaluate(Owner.IMAGE, {"absent": "transformers"}, NO_CLAIMS)
    assert (verdict.status, verdict.remedy) == (Status.SKIP, "uv pip install transformers")


SPEED = {"amp": "bf16", "capability": [8, 0], "fp32_rate": 100.0, "amp_rate": 500.0}


@pytest.mark.parametrize(
    ("changes", "status", "words"),
    [
        ({}, Status.PASS, "5.0 times"),
        ({"amp_rate": 90.0}, Status.FAIL, "0.9 times"),
        ({"amp_rate": 40.0, "capability": [6, 1]}, Status.PASS, "no tensor cores here, so the speed is not judged"),
        ({"amp_rate": 0.0}, Status.FAIL, "not finite"),
        ({"error": "RuntimeError: CUDA out of memory"}, Status.FAIL, "out of memory"),
    ],
)
def test_the_gain_of_mixed_precision_is_shown_and_judged(changes: dict[str, Any], status: Status, words: str) -> None:
    """Both speeds and their ratio; slower than fp32 on tensor cores is a fault of the machine."""
    verdict = speed.evaluate({**SPEED, **changes}, CLAIMS)
    assert verdict.status is status
    assert words in verdict.observed


@pytest.fixture(scope="module")
def lstm() -> Any:
    """The LSTM's whole run."""
    pytest.importorskip("torch")
    from verify.reference.recipes import LSTM_CHARACTERS
    from verify.reference.train import train

    return LSTM_CHARACTERS, train(LSTM_CHARACTERS, precision="fp32")


def test_the_lstm_learns_writes_and_measures(lstm: Any) -> None:
    """Loss, text, tokens, memory and the wait for data."""
    recipe, trace = lstm
    assert trace.final_loss() < recipe.bound - 0.2 < trace.loss[0] - 0.8
    assert len(set(trace.sample)) > 6
    assert trace.tokens_per_second > trace.samples_per_second
    assert trace.peak_memory_bytes > 1 << 20
    assert 0 < trace.loading_seconds < trace.seconds


def test_an_untrained_generator_misses_its_bound_and_the_seed_decides(lstm: Any) -> None:
    """With a learning rate of zero nothing is learnt; the same seed writes the same text."""
    from verify.reference.train import train

    recipe, trace = lstm
    still = train(replace(recipe, learning_rate=0.0, epochs=1), precision="fp32")
    assert still.final_loss() > recipe.bound
    assert train(recipe, precision="fp32").same_course(trace)


def test_accumulated_gradients_are_those_of_the_whole_batch() -> None:
    """Half as many steps as batches, and one step on two halves moves as one on the whole."""
    torch = pytest.importorskip("torch")
    from verify.reference.recipes import TRANSFORMER_REVERSAL
    from verify.reference.train import train

    halves = train(replace(TRANSFORMER_REVERSAL, epochs=1), precision="fp32")
    whole = train(replace(TRANSFORMER_REVERSAL, epochs=1, batch_size=64, accumulate=1), precision="fp32")
    assert halves.steps == whole.steps
    assert torch.allclose(torch.tensor(halves.loss), torch.tensor(whole.loss), atol=1e-2)


def test_gpt2_learns_and_writes() -> None:
    """Where transformers is installed."""
    pytest.importorskip("transformers")
    from verify.reference.recipes import GPT2_CHARACTERS
    from verify.reference.train import train

    trace = train(GPT2_CHARACTERS, precision="fp32")
    assert trace.final_loss() < GPT2_CHARACTERS.bound
    assert len(set(trace.sample)) > 6
