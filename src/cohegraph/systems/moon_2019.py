r"""The unified model (Moon et al., 2019): grammar, relations of neighbours, and document-wide patterns.

- Sentence grammar: a bidirectional LSTM reads each sentence; its two last states are the sentence's vector
  :math:`s_i`.
- Relations: a bilinear layer sees each pair of neighbours, :math:`r_i = s_i^T B s_{i+1} + b`, in as many dimensions
  as ``relations`` says.
- Document-wide patterns: ``layers`` lightweight convolutions over the sentence vectors, each with one kernel,
  normalised by softmax, for each of ``heads`` groups of dimensions, followed by a linear layer, ReLU and a sum with
  what went in; the mean over the document is :math:`g`.

Each pair is joined with the document-wide vector, :math:`[r_i; g]`; their mean is classified.

Simplified: the original also trains the LSTM as a language model, joins each relation with the next pair's, and ranks
documents by the sum of the pairs' scores; here levels are classified.
"""

from dataclasses import dataclass
from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import conv1d

from cohegraph.systems import pieces
from cohegraph.systems.neural import Batch, ConvolutionModel, Network, Verdict, check_divides
from cohegraph.systems.system import not_valid


class LightweightConvolution(nn.Module):
    """A depthwise convolution whose kernels are shared by the dimensions of a head and sum to 1."""

    def __init__(self, dimensions: int, heads: int, kernel: int) -> None:
        super().__init__()
        self.kernels = nn.Parameter(torch.empty(heads, 1, kernel).normal_(std=kernel**-0.5))
        self.repeats = dimensions // heads

    def forward(self, rows: Tensor) -> Tensor:
        """From and to (documents, sentences, dimensions)."""
        kernels = self.kernels.softmax(dim=2).repeat_interleave(self.repeats, dim=0)
        side = kernels.shape[2] // 2
        return conv1d(rows.transpose(1, 2), kernels, padding=side, groups=len(kernels)).transpose(1, 2)


def neighbours(documents: Tensor) -> tuple[Tensor, Tensor]:
    """The numbers of all pairs of neighbouring sentences; the sentence of a document that has but one is its own."""
    owner = pieces.owners(documents)
    number = torch.arange(len(owner))
    is_last = torch.cat([owner[1:] != owner[:-1], torch.ones(1, dtype=torch.bool)])
    kept = ~is_last | (documents[owner] == 1)
    return number[kept], torch.where(is_last, number, number + 1)[kept]


class _Unified(Network):
    def __init__(self, system: "UnifiedModel", width: int, outputs: int) -> None:
        super().__init__(system, width)
        hidden, relations, layers = system.hidden, system.relations, system.layers
        self.sentence = pieces.Recurrent(hidden, hidden // 2, both_ways=True)
        self.relation = nn.Bilinear(hidden, hidden, relations)
        self.wide = nn.ModuleList(LightweightConvolution(hidden, system.heads, system.kernel) for _ in range(layers))
        self.mixed = nn.ModuleList(nn.Linear(hidden, hidden) for _ in range(layers))
        self.verdict = Verdict(relations + hidden, outputs, system.dropout)

    def forward(self, batch: Batch) -> Tensor:
        sentences = self.sentence.last(self.reader(batch.tokens), batch.sentences)
        rows, real = pieces.padded(sentences, batch.documents)
        for convolution, mixed in zip(self.wide, self.mixed, strict=True):
            # What stands behind a document stays nothing, or the next layer would see it.
            rows = (rows + torch.relu(mixed(convolution(rows)))) * real[:, :, None]
        wide = pieces.means(rows[real], batch.documents)
        first, second = neighbours(batch.documents)
        related = self.relation(sentences[first], sentences[second])
        local = pieces.means(related, (batch.documents - 1).clamp(min=1))
        return self.verdict(torch.cat([local, wide], dim=1))


@dataclass(frozen=True)
class UnifiedModel(ConvolutionModel):
    """Sentence grammar, relations of neighbouring sentences and document-wide patterns, joined.

    Args:
        relations: Dimensions of the bilinear layer.
        layers: Lightweight convolutions, one after the other.
        heads: Groups of dimensions with a kernel each; divides ``hidden``.
    """

    name = "moon-2019"
    title = "Moon et al. (2019)"
    citation = "Moon, Mohiuddin, Joty and Xu (2019)"
    least_sentences = 2
    network_class = _Unified

    relations: Annotated[int, Field(ge=1, le=256)] = 16
    layers: Annotated[int, Field(ge=1, le=20)] = 2
    heads: Annotated[int, Field(ge=1)] = 8

    def __post_init__(self) -> None:
        """Check what single values do not show."""
        super().__post_init__()
        check_divides(self.heads, self.hidden)
        if self.hidden % 2:
            raise not_valid("hidden", self.hidden, "it must be even, a half for each direction")
