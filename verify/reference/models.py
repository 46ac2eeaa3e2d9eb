"""Small models in plain torch. Sequences come first: inputs are ``[sequence, batch, ...]``."""
# mypy: allow-subclassing-any

from __future__ import annotations

from typing import Optional

import torch
from torch import Tensor, nn


class SimpleRNN(nn.Module):
    """A tanh recurrence over ``[sequence, batch, input_size]``; gives ``[batch, output_size]``.

    The output is read from the mean of the hidden states over each sequence's own steps:
    ``lengths`` says how many those are, and without it all count.
    """

    def __init__(self, input_size: int, hidden_size: int, output_size: int) -> None:
        super().__init__()
        self.rnn = nn.RNN(input_size, hidden_size)
        self.output = nn.Linear(hidden_size, output_size)

    def forward(self, steps: Tensor, lengths: Optional[Tensor] = None) -> Tensor:
        states, _ = self.rnn(steps)
        if lengths is None:
            return self.output(states.mean(0))
        places = torch.arange(states.shape[0], device=states.device).unsqueeze(1)
        counted = (places < lengths).unsqueeze(2)
        return self.output((states * counted).sum(0) / lengths.unsqueeze(1))


class TitleClassifier(nn.Module):
    """Word ids ``[sequence, batch]`` and their lengths to one score per class."""

    def __init__(self, vocabulary: int, classes: int, embedding: int = 32, hidden: int = 48) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, embedding, padding_idx=0)
        self.recurrence = SimpleRNN(embedding, hidden, classes)
        # Most words occur once or twice: small first values and dropped features keep the
        # model from learning titles by heart.
        nn.init.normal_(self.embedding.weight, std=0.1)
        self.dropout = nn.Dropout(0.5)

    def forward(self, words: Tensor, lengths: Tensor) -> Tensor:
        return self.recurrence(self.dropout(self.embedding(words)), lengths)


class SimpleTransformerBlock(nn.Module):
    """One encoder block: self-attention, then a feed-forward net, each normalised and added.

    Takes and gives ``[sequence, batch, d_model]``. ``padding`` is ``[batch, sequence]``, true
    where a position must not be attended to.
    """

    def __init__(self, d_model: int, heads: int, feed_forward: int = 128, dropout: float = 0.0) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(d_model, heads, dropout=dropout)
        self.feed_forward = nn.Sequential(nn.Linear(d_model, feed_forward), nn.GELU(), nn.Linear(feed_forward, d_model))
        self.before_attention = nn.LayerNorm(d_model)
        self.before_feed_forward = nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, steps: Tensor, padding: Optional[Tensor] = None) -> Tensor:
        seen = self.before_attention(steps)
        # Asking for the weights keeps to plain softmax attention, whose backward pass is
        # bit-exact on every device; the fused kernels are not.
        mixed, _ = self.attention(seen, seen, seen, key_padding_mask=padding, need_weights=True)
        steps = steps + self.dropout(mixed)
        return steps + self.dropout(self.feed_forward(self.before_feed_forward(steps)))


class SequenceReverser(nn.Module):
    """Symbols ``[sequence, batch]`` to scores for the same sequence read backwards.

    Only attention moves information between positions here, so a low loss proves that it works.
    """

    def __init__(self, symbols: int, length: int, d_model: int = 32, heads: int = 4) -> None:
        super().__init__()
        self.symbols = nn.Embedding(symbols, d_model)
        self.positions = nn.Parameter(torch.randn(length, 1, d_model))
        self.block = SimpleTransformerBlock(d_model, heads, feed_forward=2 * d_model)
        self.output = nn.Linear(d_model, symbols)

    def forward(self, sequence: Tensor) -> Tensor:
        return self.output(self.block(self.symbols(sequence) + self.positions[: sequence.shape[0]]))


class CharacterGenerator(nn.Module):
    """Character numbers ``[sequence, batch]`` to scores for the next one at each place, by an LSTM."""

    generates = True

    def __init__(self, characters: int, embedding: int = 32, hidden: int = 96) -> None:
        super().__init__()
        self.embedding = nn.Embedding(characters, embedding)
        self.lstm = nn.LSTM(embedding, hidden)
        self.output = nn.Linear(hidden, characters)

    def forward(self, sequence: Tensor) -> Tensor:
        # oneDNN has no bf16 LSTM for training on many processors and raises instead of standing aside.
        with torch.backends.mkldnn.flags(enabled=False):
            states, _ = self.lstm(self.embedding(sequence))
        return self.output(states)
