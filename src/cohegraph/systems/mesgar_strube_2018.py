r"""The flow of what relates neighbouring sentences (Mesgar and Strube, 2018).

An LSTM reads the whole document; its state after each word is what the sentence means there. What two neighbouring
sentences share is the pair of their states that is most alike:

.. math:: (u, v) = argmax_{u \in i, v \in i+1} h_u \cdot h_v, \qquad f_i = (h_u + h_v) / 2

How much of it goes on is the similarity of one shared state and the next,
:math:`d_i = ReLU(f_i \cdot f_{i+1}) / \sqrt{n}` for states of n dimensions. A convolution over :math:`d` finds
patterns of its change along the text; each filter's largest and mean value make the coherence vector, which is
classified.

Simplified: largest and mean value stand in for a layer over all places of a text of fixed length; similarities are
divided by the root of n rather than by n; no other features are joined.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import relu

from cohegraph.settings import Settings
from cohegraph.systems.neural import (
    Batch,
    ConvolutionModel,
    Network,
    Patterns,
    Reader,
    Recurrent,
    Verdict,
    owners,
    padded,
    piece_sums,
)


class _Flow(Network):
    def __init__(self, width: int, outputs: int, hidden: int, dropout: float, kernel: int) -> None:
        super().__init__()
        self.reader = Reader(width, hidden, dropout)
        self.document = Recurrent(hidden, hidden)
        self.patterns = Patterns(1, hidden, kernel)
        self.verdict = Verdict(2 * hidden, outputs, dropout)

    def forward(self, batch: Batch) -> Tensor:
        words = piece_sums(batch.sentences, batch.documents)
        states = self.document(self.reader(batch.tokens), words)
        flow, lengths = self.flow(states, batch)
        rows, real = padded(flow[:, None], lengths)
        outputs: Tensor = self.verdict(self.patterns(rows, real))
        return outputs

    def flow(self, states: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
        """The similarities of one shared state and the next, and how many of them each document has, at least one."""
        first, second = most_alike(states.detach(), batch)
        shared = (states.index_select(0, first) + states.index_select(0, second)) / 2
        pairs = batch.documents - 1
        owner = owners(pairs)
        goes_on = torch.nonzero(owner[1:] == owner[:-1])[:, 0]
        alike = relu((shared[goes_on] * shared[goes_on + 1]).sum(dim=1)) / shared.shape[1] ** 0.5
        # A document of one or two sentences has nothing that could go on: a single 0.
        lengths = (pairs - 1).clamp(min=1)
        flow = alike.new_zeros(int(lengths.sum()))
        return flow.masked_scatter((pairs > 1)[owners(lengths)], alike), lengths


def most_alike(states: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
    """The numbers of the two states that are most alike, for every two neighbouring sentences of a document."""
    ends = batch.sentences.cumsum(0).tolist()
    starts = [0, *ends[:-1]]
    owner = owners(batch.documents).tolist()
    first, second = [], []
    for one, other in pairwise(range(len(owner))):
        if owner[one] == owner[other]:
            alike = states[starts[one] : ends[one]] @ states[starts[other] : ends[other]].T
            row, column = divmod(int(alike.argmax()), alike.shape[1])
            first.append(starts[one] + row)
            second.append(starts[other] + column)
    return torch.tensor(first, dtype=torch.long), torch.tensor(second, dtype=torch.long)


@dataclass(frozen=True)
class NeuralLocalCoherence(ConvolutionModel):
    """What neighbouring sentences share, and the pattern of its change along the text."""

    name = "mesgar-strube-2018"
    title = "Mesgar & Strube (2018)"
    citation = "Mesgar and Strube (2018)"

    tokens: Literal["states", "words"] = "words"

    def fewest_sentences(self, settings: Settings) -> int:
        """Two pairs of neighbours."""
        return 3

    def network(self, width: int, outputs: int) -> Network:
        """The flow model."""
        return _Flow(width, outputs, self.hidden, self.dropout, self.kernel)
