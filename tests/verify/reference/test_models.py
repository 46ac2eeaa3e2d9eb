"""The parts that examples choose among: cells, hidden states, encoders that save memory, ways to draw a next one."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from verify.reference.characters import choose, continued  # noqa: E402
from verify.reference.models import CELLS, SequenceReverser, SimpleRNN, TitleClassifier  # noqa: E402


@pytest.mark.parametrize("cell", CELLS)
def test_every_cell_has_gradients_also_under_bf16(cell: str) -> None:
    """An LSTM too, for which oneDNN has no bf16 on many processors."""
    model = TitleClassifier(10, 2, cell=cell)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        scores = model(torch.randint(10, (5, 3)), torch.tensor([5, 3, 1]))
    scores.float().sum().backward()
    assert all(bool(torch.isfinite(parameter.grad).all()) for parameter in model.parameters())


def test_a_batch_starts_from_the_hidden_state_it_is_given() -> None:
    """Zeros of its own size without one."""
    torch.manual_seed(0)
    model, steps = SimpleRNN(4, 8, 2), torch.randn(5, 3, 4)
    assert torch.equal(model(steps), model(steps, hidden=torch.zeros(1, 3, 8)))
    assert not torch.allclose(model(steps), model(steps, hidden=torch.ones(1, 3, 8)))


@pytest.mark.parametrize("option", ["fused", "recompute"])
def test_saving_memory_changes_no_gradient(option: str) -> None:
    """Fused attention and recomputed activations give the plain encoder's gradients."""
    sequence, found = torch.randint(12, (8, 4)), []
    for options in ({}, {option: True}):
        torch.manual_seed(0)
        model = SequenceReverser(12, 8, layers=2, **options)
        model(sequence).square().sum().backward()
        found.append([parameter.grad for parameter in model.parameters()])
    assert all(torch.allclose(one, other, atol=1e-4) for one, other in zip(*found, strict=True))


SCORES = torch.tensor([0.0, 3.0, 1.0, 2.0])


def test_only_the_best_few_are_left_by_top_k() -> None:
    """Their chances add up to one."""
    chances = choose(SCORES, top_k=2)
    assert chances.nonzero().flatten().tolist() == [1, 3]
    assert float(chances.sum()) == pytest.approx(1.0)


def test_the_fewest_that_have_the_chance_are_left_by_top_p() -> None:
    """One at least."""
    assert choose(SCORES, top_p=1e-9).nonzero().flatten().tolist() == [1]
    assert choose(SCORES, top_p=0.7).nonzero().flatten().tolist() == [1, 3]


def test_a_low_temperature_sharpens() -> None:
    """And without any choice the chances are softmax's."""
    assert float(choose(SCORES, temperature=0.1)[1]) > 0.99
    assert torch.allclose(choose(SCORES), torch.softmax(SCORES, -1))


def test_writing_goes_on_from_the_start_and_sees_a_window_of_it() -> None:
    """The model is given what was written last, as long as its context at most."""
    seen = []

    class Next(torch.nn.Module):  # type: ignore[misc,name-defined]  # torch is imported where it is there
        context = 3

        def forward(self, sequence: Any) -> Any:
            seen.append(sequence[:, 0].tolist())
            return torch.nn.functional.one_hot((sequence + 1) % 10, 10).float() * 100

    assert continued(Next(), "cpu", [4, 5], 4, 7, choose) == [4, 5, 6, 7, 8, 9]
    assert seen[-1] == [6, 7, 8]
