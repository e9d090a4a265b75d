r"""The discriminative clique model (Li and Jurafsky, 2017; after Li and Hovy, 2014).

An LSTM reads each sentence, and its last state is the sentence's vector :math:`s_i`. A clique is a sentence with its
neighbours, ``reach`` on either side, and is classified by itself:

.. math:: q_i = \tanh(W [s_{i-1}; s_i; s_{i+1}] + b), \qquad p_i = softmax(U q_i + c)

The probabilities of a document are the mean of those of its cliques; every clique is trained on the document's
level, in the way in which Lai and Tetreault (2018) use the model for levels.

Simplified: the original learns to tell cliques of a text from cliques with a sentence of another text in the middle;
here levels are given, and no negative examples are made. Beyond the first and last sentence stand zeros.
"""

from dataclasses import dataclass
from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import nll_loss

from cohegraph.learning.objectives import Objective, Targets
from cohegraph.systems import pieces
from cohegraph.systems.neural import Batch, Network, SequenceModel, Tokens, Verdict


class _Cliques(Network):
    def __init__(self, system: "CliqueModel", width: int, outputs: int) -> None:
        super().__init__(system, width)
        self.reach, hidden = system.reach, system.hidden
        self.sentence = pieces.Recurrent(hidden, hidden)
        self.clique = nn.Linear((2 * self.reach + 1) * hidden, hidden)
        self.verdict = Verdict(hidden, outputs, system.dropout)

    def forward(self, batch: Batch) -> Tensor:
        """The outputs of every clique, (all sentences, outputs)."""
        sentences = self.sentence.last(self.reader(batch.tokens), batch.sentences)
        return self.verdict(torch.tanh(self.clique(self.neighbourhoods(sentences, batch.documents))))

    def neighbourhoods(self, sentences: Tensor, documents: Tensor) -> Tensor:
        """Each sentence's vector between those of its neighbours in the same document."""
        rows, real = pieces.padded(sentences, documents)
        around = nn.functional.pad(rows, (0, 0, self.reach, self.reach))
        longest = rows.shape[1]
        return torch.cat([around[:, place : place + longest] for place in range(2 * self.reach + 1)], dim=2)[real]

    def outputs(self, batch: Batch) -> Tensor:
        found = self(batch)
        if found.shape[1] == 1:
            return pieces.means(found, batch.documents)
        shares = pieces.means(found.softmax(dim=1), batch.documents)
        # A share of 0 has no logarithm with a gradient.
        return shares.clamp(min=torch.finfo(shares.dtype).tiny).log().masked_fill(~self.verdict.seen, -torch.inf)

    def loss(self, batch: Batch, targets: Targets, objective: Objective) -> Tensor:
        """Where levels are learnt, the mean over documents of the mean over cliques: long documents count no more."""
        if objective.kind != "levels":
            return super().loss(batch, targets, objective)
        owner, classes = pieces.owners(batch.documents), torch.from_numpy(targets.values)
        losses = nll_loss(self(batch).log_softmax(dim=1), classes[owner], reduction="none")
        of_documents = pieces.means(losses, batch.documents)
        weights = torch.from_numpy(targets.all_weights).to(losses.dtype)
        return (of_documents * weights).sum() / weights.sum()


@dataclass(frozen=True)
class CliqueModel(SequenceModel):
    """Sentences by an LSTM; cliques of neighbouring sentences classified, and averaged.

    Args:
        reach: How many sentences on either side belong to a clique.
    """

    name = "li-jurafsky-2017"
    title = "Li & Jurafsky (2017)"
    citation = "Li and Jurafsky (2017)"
    least_sentences = 2
    network_class = _Cliques

    tokens: Tokens = "words"
    reach: Annotated[int, Field(ge=0, le=20)] = 1
