r"""Centering and hierarchical segments (Jeon and Strube, 2020, EMNLP): attention guided by a discourse structure.

- **Centres.** Attention over the tokens of sentence i, :math:`a_t = softmax_t(u \cdot \tanh(W h_t))`, ranks its
  forward-looking centres, the ``centres`` tokens with the highest weights; the first of them is the preferred centre
  :math:`Cp_i`. The backward-looking centre :math:`Cb_i` is the forward-looking centre of sentence i-1 that is most like
  the mean of sentence i. The sentence's vector is :math:`s_i = \sum_t a_t h_t`.
- **Segments.** A stack holds the sentences that are still open. For each sentence, those on top are closed until one is
  found whose preferred centre goes on, that is :math:`\cos(Cp_j, Cb_i)` is at least ``threshold``; the sentence is then
  placed beneath it, or begins a new segment where none is left.
- **Structure-guided attention.** A transformer layer over sentence vectors, to each of which a vector for its depth in
  the tree is added (deeper than 7 counts as 7); a sentence sees itself, the sentences above it in the tree and those
  below it. The mean of the outputs is classified.

Simplified: a learnt attention ranks centres, where the authors' code takes the encoder's own and bars punctuation; one
comparison places a sentence, where theirs joins several sentences to a segment by comparing first backward-looking
centres with each other and then with preferred ones; one layer instead of four; the encoder is not trained along.
"""

from dataclasses import dataclass
from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import normalize

from cohegraph.systems import pieces
from cohegraph.systems.dong_2017 import Attention
from cohegraph.systems.neural import Batch, Network, SequenceModel, Verdict, check_divides

# Sentences deeper in the tree count as this deep.
DEEPEST = 7


def parents(preferred: Tensor, backward: Tensor, threshold: float) -> list[int]:
    """The sentence that each sentence is placed beneath, -1 for none.

    Args:
        preferred: The preferred centre of every sentence at length 1, (sentences, width).
        backward: The backward-looking centres likewise; that of the first sentence is not used.
        threshold: How alike centres must be to go on.
    """
    alike = (preferred @ backward.T).tolist()
    above: list[int] = []
    stack: list[int] = []
    for sentence in range(len(preferred)):
        while stack and alike[stack[-1]][sentence] < threshold:
            stack.pop()
        above.append(stack[-1] if stack else -1)
        stack.append(sentence)
    return above


def depths(above: list[int]) -> list[int]:
    """How many sentences stand above each in the tree, DEEPEST at most."""
    found: list[int] = []
    for parent in above:
        found.append(0 if parent < 0 else min(found[parent] + 1, DEEPEST))
    return found


def related(above: list[int]) -> Tensor:
    """Which sentence sees which, (sentences, sentences): itself, those above it in the tree, and those below."""
    sees = torch.eye(len(above), dtype=torch.bool)
    for sentence, parent in enumerate(above):
        if parent >= 0:
            sees[sentence] |= sees[parent]
    return sees | sees.T


class _Centering(Network):
    def __init__(self, system: "CenteringModel", width: int, outputs: int) -> None:
        super().__init__(system, width)
        self.centres, self.threshold, self.heads = system.centres, system.threshold, system.heads
        hidden, dropout = system.hidden, system.dropout
        self.attention = Attention(hidden)
        self.depth = nn.Embedding(DEEPEST + 1, hidden)
        self.layer = nn.TransformerEncoderLayer(hidden, self.heads, 2 * hidden, dropout, batch_first=True)
        self.verdict = Verdict(hidden, outputs, dropout)

    def forward(self, batch: Batch) -> Tensor:
        words = self.reader(batch.tokens)
        weights = self.attention.weights(words, batch.sentences)
        sentences = pieces.sums(weights[:, None] * words, batch.sentences)
        sees, depth = self.structure(weights.detach(), batch)
        rows, real = pieces.padded(sentences + self.depth(depth), batch.documents)
        hidden = self.layer(rows, src_mask=~sees.repeat_interleave(self.heads, 0))
        return self.verdict(pieces.means(hidden[real], batch.documents))

    def structure(self, weights: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
        """Which sentence sees which, (documents, longest, longest), and how deep each is, (all sentences,).

        Padding sees itself.
        """
        unit = normalize(batch.tokens, dim=1)
        tokens, ranks = (torch.split(items, batch.sentences.tolist()) for items in (unit, weights))
        forward = [
            words[rank.topk(min(self.centres, len(rank))).indices] for words, rank in zip(tokens, ranks, strict=True)
        ]
        means = pieces.means(batch.tokens, batch.sentences)
        longest = int(batch.documents.max())
        sees = torch.eye(longest, dtype=torch.bool).repeat(len(batch.documents), 1, 1)
        first, deep = 0, []
        for number, length in enumerate(batch.documents.tolist()):
            centres = forward[first : first + length]
            backward = [centres[0][0]]
            for before, now in zip(centres[:-1], means[first + 1 : first + length], strict=True):
                backward.append(before[int((before @ now).argmax())])
            preferred = torch.stack([one[0] for one in centres])
            above = parents(preferred, torch.stack(backward), self.threshold)
            sees[number, :length, :length] = related(above)
            deep += depths(above)
            first += length
        return sees, torch.tensor(deep)


@dataclass(frozen=True)
class CenteringModel(SequenceModel):
    """Centres of sentences, the tree of segments they make, and attention along it.

    Args:
        centres: How many forward-looking centres a sentence has.
        threshold: How alike two centres must be to be one that goes on (cosine of the token vectors).
        heads: Of the attention between sentences; divides ``hidden``.
    """

    name = "jeon-strube-2020-centering"
    title = "Jeon & Strube (2020), centering"
    citation = "Jeon and Strube (2020), EMNLP"
    least_sentences = 2
    network_class = _Centering

    centres: Annotated[int, Field(ge=1)] = 3
    threshold: Annotated[float, Field(ge=-1, le=1)] = 0.5
    heads: Annotated[int, Field(ge=1)] = 4

    def __post_init__(self) -> None:
        """Check what single values do not show."""
        super().__post_init__()
        check_divides(self.heads, self.hidden)
