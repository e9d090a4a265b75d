r"""Incremental lexical coherence (Jeon and Strube, 2020, COLING): a text is understood sentence by sentence.

The focus of a sentence is what stands out of it in the light of what came before. With token vectors :math:`h_t`
and the running centroid :math:`c_{i-1}` of all earlier foci,

.. math:: a_t = softmax_t(h_t \cdot \tanh(W c_{i-1}) + u \cdot h_t), \qquad f_i = \sum_t a_t h_t,
          \qquad c_i = c_{i-1} + (f_i - c_{i-1}) / i

How far the focus is from the centroid, :math:`d_i = 1 - \cos(f_i, c_{i-1})`, and how that changes, :math:`\delta_i
= d_i - d_{i-1}`, go through a convolution along the text; each filter's largest and mean value, beside the last
centroid, are classified. The first sentence has nothing before it: :math:`d_1 = 0`.

Simplified: the focus by learnt attention, the running centroid and the change of distance follow the idea of
reading sentence by sentence; the authors' released code takes mean-pooled sentences and the centroid of the whole
document, and one filter with pooling to a fixed length. The encoder is not trained along.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import cosine_similarity

from cohegraph.systems import pieces
from cohegraph.systems.neural import Batch, ConvolutionModel, Network, Patterns, Verdict


@dataclass(frozen=True)
class Course:
    """How a text was read. Shapes: ``distances`` (all sentences,), ``centroids`` (documents, hidden)."""

    distances: Tensor
    centroids: Tensor


class _Incremental(Network):
    def __init__(self, system: "IncrementalModel", width: int, outputs: int) -> None:
        super().__init__(system, width)
        hidden = system.hidden
        self.context = nn.Linear(hidden, hidden, bias=False)
        self.salience = nn.Linear(hidden, 1, bias=False)
        self.patterns = Patterns(2, hidden, system.kernel)
        self.verdict = Verdict(3 * hidden, outputs, system.dropout)

    def forward(self, batch: Batch) -> Tensor:
        course = self.course(self.reader(batch.tokens), batch)
        rows, real = pieces.padded(course.distances[:, None], batch.documents)
        change = torch.diff(rows, dim=1, prepend=rows[:, :1]) * real[:, :, None]
        found = self.patterns(torch.cat([rows, change], dim=2), real)
        return self.verdict(torch.cat([course.centroids, found], dim=1))

    def course(self, tokens: Tensor, batch: Batch) -> Course:
        """Read all documents at once, their first sentences first."""
        place = torch.cat([torch.arange(length) for length in batch.documents.tolist()])
        document = pieces.owners(batch.documents)
        in_step = torch.argsort(place[pieces.owners(batch.sentences)], stable=True)
        tokens_in_step = batch.sentences.new_zeros(int(place.max()) + 1).index_add(0, place, batch.sentences)
        salience = self.salience(tokens)[:, 0]
        centroids = tokens.new_zeros(len(batch.documents), tokens.shape[1])
        distances, read = [], []
        for number, rows in enumerate(torch.split(in_step, tokens_in_step.tolist())):
            sentences = torch.nonzero(place == number)[:, 0]
            who, lengths = document[sentences], batch.sentences[sentences]
            before = centroids[who]
            words = tokens[rows]
            question = torch.tanh(self.context(before))[pieces.owners(lengths)]
            weights = pieces.softmax((words * question).sum(dim=1) + salience[rows], lengths)
            focus = pieces.sums(weights[:, None] * words, lengths)
            far = 1 - cosine_similarity(focus, before, dim=1) if number else focus.new_zeros(len(focus))
            distances.append(far)
            read.append(sentences)
            centroids = centroids.index_copy(0, who, before + (focus - before) / (number + 1))
        order = torch.argsort(torch.cat(read))
        return Course(torch.cat(distances)[order], centroids)


@dataclass(frozen=True)
class IncrementalModel(ConvolutionModel):
    """The focus of each sentence, and how far it is from all that was read before."""

    name = "jeon-strube-2020-incremental"
    title = "Jeon & Strube (2020), incremental"
    citation = "Jeon and Strube (2020), COLING"
    least_sentences = 2
    network_class = _Incremental
