"""Small models in plain torch. Sequences come first: inputs are ``[sequence, batch, ...]``."""
# mypy: allow-subclassing-any

from __future__ import annotations

import contextlib
from typing import Any, Mapping, Optional, Type

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

CELLS: Mapping[str, Type[nn.Module]] = {"rnn": nn.RNN, "lstm": nn.LSTM, "gru": nn.GRU}


class SimpleRNN(nn.Module):
    """A recurrence over ``[sequence, batch, input_size]``; gives ``[batch, output_size]``.

    The output is read from the mean of the hidden states over each sequence's own steps:
    ``lengths`` says how many those are, and without it all count. Every batch starts from a hidden
    state of its own size: ``hidden``, or zeros.
    """

    def __init__(self, input_size: int, hidden_size: int, output_size: int, cell: str = "rnn") -> None:
        super().__init__()
        self.rnn = CELLS[cell](input_size, hidden_size)
        self.output = nn.Linear(hidden_size, output_size)

    def forward(self, steps: Tensor, lengths: Optional[Tensor] = None, hidden: Any = None) -> Tensor:
        states = recur(self.rnn, steps, hidden)
        if lengths is None:
            return self.output(states.mean(0))
        places = torch.arange(states.shape[0], device=states.device).unsqueeze(1)
        counted = (places < lengths).unsqueeze(2)
        return self.output((states * counted).sum(0) / lengths.unsqueeze(1))


def recur(layer: Any, steps: Tensor, hidden: Any = None) -> Tensor:
    """The states of a recurrent layer at every step."""
    # oneDNN has no bf16 LSTM for training on many processors and raises instead of standing aside.
    plain = isinstance(layer, nn.LSTM) and torch.is_autocast_enabled(steps.device.type)
    with torch.backends.mkldnn.flags(enabled=False) if plain else contextlib.nullcontext():
        states: Tensor = layer(steps, hidden)[0]
    return states


class TitleClassifier(nn.Module):
    """Word ids ``[sequence, batch]`` and their lengths to one score per class."""

    def __init__(
        self,
        vocabulary: int,
        classes: int,
        embedding: int = 32,
        hidden: int = 48,
        cell: str = "rnn",
        dropout: float = 0.5,
    ) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, embedding, padding_idx=0)
        self.recurrence = SimpleRNN(embedding, hidden, classes, cell)
        # Most words occur once or twice: small first values and dropped features keep the
        # model from learning titles by heart.
        nn.init.normal_(self.embedding.weight, std=0.1)
        self.dropout = nn.Dropout(dropout)

    def forward(self, words: Tensor, lengths: Tensor) -> Tensor:
        return self.recurrence(self.dropout(self.embedding(words)), lengths)


class SimpleTransformerBlock(nn.Module):
    """One encoder block: self-attention, then a feed-forward net, each normalised and added.

    Takes and gives ``[sequence, batch, d_model]``. ``padding`` is ``[batch, sequence]``, true
    where a position must not be attended to. ``fused`` attention never holds all its weights in
    memory at once; its backward pass may differ in the last bits from run to run.
    """

    def __init__(
        self, d_model: int, heads: int, feed_forward: int = 128, dropout: float = 0.0, fused: bool = False
    ) -> None:
        super().__init__()
        self.fused = fused
        self.attention = nn.MultiheadAttention(d_model, heads, dropout=dropout)
        self.feed_forward = nn.Sequential(nn.Linear(d_model, feed_forward), nn.GELU(), nn.Linear(feed_forward, d_model))
        self.before_attention = nn.LayerNorm(d_model)
        self.before_feed_forward = nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, steps: Tensor, padding: Optional[Tensor] = None) -> Tensor:
        seen = self.before_attention(steps)
        # Asking for the weights keeps to plain softmax attention, whose backward pass is
        # bit-exact on every device; the fused kernels are not.
        mixed, _ = self.attention(seen, seen, seen, key_padding_mask=padding, need_weights=not self.fused)
        steps = steps + self.dropout(mixed)
        return steps + self.dropout(self.feed_forward(self.before_feed_forward(steps)))


class SequenceReverser(nn.Module):
    """Symbols ``[sequence, batch]`` to scores for the same sequence read backwards.

    Only attention moves information between positions here, so a low loss proves that it works.
    With ``recompute`` a block's activations are not kept for the backward pass but computed again.
    """

    def __init__(
        self,
        symbols: int,
        length: int,
        d_model: int = 32,
        heads: int = 4,
        layers: int = 1,
        fused: bool = False,
        recompute: bool = False,
    ) -> None:
        super().__init__()
        self.recompute = recompute
        self.symbols = nn.Embedding(symbols, d_model)
        self.positions = nn.Parameter(torch.randn(length, 1, d_model))
        blocks = [SimpleTransformerBlock(d_model, heads, 2 * d_model, fused=fused) for _ in range(layers)]
        self.blocks = nn.ModuleList(blocks)
        self.output = nn.Linear(d_model, symbols)

    def forward(self, sequence: Tensor) -> Tensor:
        steps = self.symbols(sequence) + self.positions[: sequence.shape[0]]
        for block in self.blocks:
            again = self.recompute and self.training
            steps = checkpoint(block, steps, use_reentrant=False) if again else block(steps)
        return self.output(steps)


class CharacterGenerator(nn.Module):
    """Character numbers ``[sequence, batch]`` to scores for the next one at each place, by an LSTM."""

    generates = True

    def __init__(self, characters: int, embedding: int = 32, hidden: int = 96) -> None:
        super().__init__()
        self.embedding = nn.Embedding(characters, embedding)
        self.lstm = nn.LSTM(embedding, hidden)
        self.output = nn.Linear(hidden, characters)

    def forward(self, sequence: Tensor) -> Tensor:
        return self.output(recur(self.lstm, self.embedding(sequence)))
