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

from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor
from torch.nn.functional import relu

from cohegraph.systems import pieces
from cohegraph.systems.neural import Batch, ConvolutionModel, Network, Patterns, Tokens, Verdict


class _Flow(Network):
    def __init__(self, system: "NeuralLocalCoherence", width: int, outputs: int) -> None:
        super().__init__(system, width)
        self.document = pieces.Recurrent(system.hidden, system.hidden)
        self.patterns = Patterns(1, system.hidden, system.kernel)
        self.verdict = Verdict(2 * system.hidden, outputs, system.dropout)

    def forward(self, batch: Batch) -> Tensor:
        words = pieces.sums(batch.sentences, batch.documents)
        states = self.document(self.reader(batch.tokens), words)
        flow, lengths = self.flow(states, batch)
        rows, real = pieces.padded(flow[:, None], lengths)
        return self.verdict(self.patterns(rows, real))

    def flow(self, states: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
        """The similarities of one shared state and the next, and how many of them each document has, at least one."""
        first, second = most_alike(states.detach(), batch)
        shared = (states.index_select(0, first) + states.index_select(0, second)) / 2
        pairs = batch.documents - 1
        owner = pieces.owners(pairs)
        goes_on = torch.nonzero(owner[1:] == owner[:-1])[:, 0]
        alike = relu((shared[goes_on] * shared[goes_on + 1]).sum(dim=1)) / shared.shape[1] ** 0.5
        # A document of one or two sentences has nothing that could go on: a single 0.
        lengths = (pairs - 1).clamp(min=1)
        flow = alike.new_zeros(int(lengths.sum()))
        return flow.masked_scatter((pairs > 1)[pieces.owners(lengths)], alike), lengths


def most_alike(states: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
    """The numbers of the two states that are most alike, for every two neighbouring sentences of a document."""
    ends = batch.sentences.cumsum(0).tolist()
    starts = [0, *ends[:-1]]
    owner = pieces.owners(batch.documents).tolist()
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
    least_sentences = 3
    network_class = _Flow

    tokens: Tokens = "words"
