"""The reference models learn, repeat themselves, and broken training does not pass for learning."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from verify.reference.data import (  # noqa: E402
    PADDING,
    UNKNOWN,
    Vocabulary,
    collate_reversals,
    collate_titles,
    split_titles,
)
from verify.reference.models import SimpleRNN, SimpleTransformerBlock  # noqa: E402
from verify.reference.recipes import RNN_TITLES, TRANSFORMER_REVERSAL, Recipe  # noqa: E402
from verify.reference.trace import Trace  # noqa: E402
from verify.reference.train import train  # noqa: E402

RECIPES = {recipe.name: recipe for recipe in (RNN_TITLES, TRANSFORMER_REVERSAL)}


@pytest.fixture(scope="module", params=RECIPES)
def recipe(request: pytest.FixtureRequest) -> Recipe:
    return RECIPES[str(request.param)]


@pytest.fixture(scope="module")
def trace(recipe: Recipe) -> Trace:
    return train(recipe)


def test_a_run_learns_under_autocast(trace: Trace, recipe: Recipe) -> None:
    """The loss falls far below the bound, and unseen samples are better than guessed."""
    assert trace.final_loss() < recipe.bound / 3
    assert trace.accuracy > 0.65
    assert trace.precision == "bf16"
    assert trace.grads_finite


def test_the_same_seed_gives_the_same_trace(trace: Trace, recipe: Recipe) -> None:
    """Bit for bit, whatever was computed in between."""
    torch.randn(100)
    assert train(recipe).same_course(trace)


def test_another_seed_gives_another_trace(trace: Trace, recipe: Recipe) -> None:
    """The seed reaches the run."""
    other = train(replace(recipe, epochs=1), seed=8)
    assert other.loss[0] != trace.loss[0]


def test_an_untrained_model_misses_the_bound(recipe: Recipe) -> None:
    """With a learning rate of zero the loss stays where it was."""
    still = train(replace(recipe, learning_rate=0.0, epochs=1))
    assert still.final_loss() > 1.5 * recipe.bound


def corrupt(recipe: Recipe, hook: Callable[[Any], Any]) -> Recipe:
    """The recipe with a model whose first parameter's gradients go through ``hook``."""

    def task(seed: int) -> Any:
        model, samples, held_out = recipe.task(seed)
        next(model.parameters()).register_hook(hook)
        return model, samples, held_out

    return replace(recipe, task=task, epochs=1)


def test_a_gradient_that_is_no_number_is_seen(recipe: Recipe) -> None:
    """One bad gradient in one parameter is enough."""
    broken = corrupt(recipe, lambda gradient: gradient.fill_(float("nan")))
    assert not train(broken).grads_finite


def test_full_precision_is_reported_as_such(recipe: Recipe) -> None:
    """The precision in the trace is the one that was seen."""
    assert train(replace(recipe, epochs=1), precision="fp32").precision == "fp32"


def test_scaled_losses_in_fp16_learn_as_well(recipe: Recipe) -> None:
    """The way of a GPU without bf16, walked on the CPU: gradients are measured after unscaling."""
    scaled = train(recipe, precision="fp16")
    assert scaled.precision == "fp16"
    assert scaled.grads_finite
    assert scaled.final_loss() < recipe.bound


def test_settings_of_torch_are_put_back(recipe: Recipe) -> None:
    """A run leaves threads and determinism as they were."""
    before = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
    train(replace(recipe, epochs=1))
    assert (torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()) == before


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without a GPU")
def test_a_gpu_that_is_not_there_is_an_error_and_not_the_cpu() -> None:
    """No quiet fallback."""
    with pytest.raises((RuntimeError, AssertionError)):
        train(RNN_TITLES, device="cuda:0", precision="fp16")


def test_padding_does_not_change_a_titles_score() -> None:
    """What stands after a sequence's end is not read."""
    torch.manual_seed(0)
    model = SimpleRNN(4, 8, 2)
    steps = torch.randn(5, 1, 4)
    longer = torch.cat([steps, torch.randn(3, 1, 4)])
    assert torch.allclose(model(steps), model(longer, torch.tensor([5])))


def test_a_masked_position_is_not_attended_to() -> None:
    """Changing it changes no other position's output."""
    torch.manual_seed(0)
    block = SimpleTransformerBlock(8, 2)
    steps = torch.randn(4, 1, 8)
    padding = torch.tensor([[False, False, False, True]])
    changed = steps.clone()
    changed[3] += 1.0
    assert torch.equal(block(steps, padding)[:3], block(changed, padding)[:3])
    assert not torch.equal(block(steps)[:3], block(changed)[:3])


def test_collating_pads_titles_at_the_end() -> None:
    """Sequence first, lengths kept."""
    batch = collate_titles([([5, 6, 7], 1), ([8], 0)])
    words, lengths = batch.inputs
    assert words.tolist() == [[5, 8], [6, PADDING], [7, PADDING]]
    assert (lengths.tolist(), batch.targets.tolist()) == ([3, 1], [1, 0])


def test_a_reversals_target_is_the_sequence_backwards() -> None:
    """Per column."""
    batch = collate_reversals([torch.tensor([1, 2, 3]), torch.tensor([4, 5, 6])])
    assert batch.targets.tolist() == [[3, 6], [2, 5], [1, 4]]


def test_the_split_keeps_judged_titles_out_of_training() -> None:
    """No title on both sides, and words that only the judged ones have are unknown."""
    learned, judged = split_titles(7)
    assert not set(learned) & set(judged)
    assert Vocabulary([("one two", 0)]).encode("one three") == [2, UNKNOWN]
