r"""Convolution and LSTM with attention (Dong, Zhang and Yang, 2017), made for essays.

A convolution over ``kernel`` neighbouring words, attention over the words of a sentence; an LSTM over the sentences,
attention over its states; the result is classified. Attention is

.. math:: m_t = \tanh(W x_t + b), \qquad a_t = softmax_t(u \cdot m_t), \qquad o = \sum_t a_t x_t

Simplified: the original predicts a score between 0 and 1; here, as in the paper's tables, levels are classified.
There is no second, character-wise input.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from cohegraph.systems import pieces
from cohegraph.systems.neural import Batch, ConvolutionModel, Network, Tokens, Verdict


class Attention(nn.Module):
    """Attention pooling over the items of each piece."""

    __call__: Callable[..., Tensor]

    def __init__(self, dimensions: int) -> None:
        super().__init__()
        self.inner = nn.Linear(dimensions, dimensions)
        self.outer = nn.Linear(dimensions, 1, bias=False)

    def weights(self, items: Tensor, lengths: Tensor) -> Tensor:
        """How much each item counts, (items,); those of a piece sum to 1."""
        return pieces.softmax(self.outer(torch.tanh(self.inner(items)))[:, 0], lengths)

    def forward(self, items: Tensor, lengths: Tensor) -> Tensor:
        """The weighted sum of each piece, (pieces, dimensions)."""
        return pieces.sums(self.weights(items, lengths)[:, None] * items, lengths)


class _AttentionNetwork(Network):
    def __init__(self, system: "AttentionNetwork", width: int, outputs: int) -> None:
        super().__init__(system, width)
        hidden, kernel = system.hidden, system.kernel
        self.words = nn.Conv1d(hidden, hidden, kernel, padding=kernel // 2)
        self.of_words = Attention(hidden)
        self.sentences = pieces.Recurrent(hidden, hidden)
        self.of_sentences = Attention(hidden)
        self.verdict = Verdict(hidden, outputs, system.dropout)

    def forward(self, batch: Batch) -> Tensor:
        words = torch.relu(self.convolved(self.reader(batch.tokens), batch.sentences))
        sentences = self.of_words(words, batch.sentences)
        states = self.sentences(sentences, batch.documents)
        return self.verdict(self.of_sentences(states, batch.documents))

    def convolved(self, words: Tensor, lengths: Tensor) -> Tensor:
        """The convolution over each sentence by itself: all sentences in one row, with zeros enough between them."""
        gap = self.words.kernel_size[0] // 2
        place = torch.arange(len(words)) + gap * pieces.owners(lengths)
        row = words.new_zeros(len(words) + gap * len(lengths), words.shape[1]).index_copy(0, place, words)
        found: Tensor = self.words(row.T[None])[0].T
        return found[place]


@dataclass(frozen=True)
class AttentionNetwork(ConvolutionModel):
    """Convolution and attention over words, LSTM and attention over sentences."""

    name = "dong-2017"
    title = "Dong et al. (2017)"
    citation = "Dong, Zhang and Yang (2017)"
    network_class = _AttentionNetwork

    tokens: Tokens = "words"
