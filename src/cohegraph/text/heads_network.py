"""The network of heads on the frozen states of a reader, and what it takes.

A sentence is what the reader found in it, the encoder's vector of it, and its place. One transformer layer lets the
sentences of a text look at each other. Small heads follow: for every boundary, for every sentence, for every two
sentences, and for the whole. The weakest boundary between two sentences counts in their relation. The score of a text
adds up the whole, and mean and minimum over boundaries and over sentences; CoUDA (Zhu et al. 2023) adds up the whole
and the mean over boundaries. Scores compare versions of one text; on their own they have no scale.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn import functional

from cohegraph.text.reader import FIGURES, Reading

Floats = npt.NDArray[np.float32]

# Places that are told apart, counted from the beginning and from the end of a text, and distances between sentences.
_PLACES, _DISTANCES = 64, 8
# Sentences on either side of a boundary whose vectors are compared.
_NEAR = 3
_OF_BOUNDARY, _OF_SENTENCE, _OF_DOCUMENT = 5, 4, 3
# How much the figures of a document count in its score before training: the lower the loss, the better.
_DOCUMENT_AT_FIRST = (-5.0, 1.0, 0.0)
_ATTENTION_HEADS = 4


@dataclass(frozen=True)
class HeadsShape:
    """The figures of heads.

    Args:
        states: The names of the reader's states that they take, such as ``mean-18``.
        state_width: The length of a state.
        vector_width: The length of the encoder's vectors.
        hidden: Hidden units.
        related: Numbers by which two sentences are compared.
        gains: The same for gains; 0 for heads that do not say them.
    """

    states: tuple[str, ...]
    state_width: int
    vector_width: int
    hidden: int = 160
    related: int = 64
    gains: int = 0

    @property
    def is_possible(self) -> bool:
        """Whether all figures are numbers that a network can have."""
        figures = (self.state_width, self.vector_width, self.hidden, self.related)
        is_possible = all(type(one) is int and one > 0 for one in figures) and self.hidden % _ATTENTION_HEADS == 0
        return is_possible and type(self.gains) is int and self.gains >= 0


@dataclass(frozen=True)
class Texts:
    """Texts side by side, those with fewer sentences filled up.

    Shapes, with B texts and S sentences: ``states`` (B, S, states times width), ``figures`` (B, S, figures),
    ``vectors`` (B, S, vector width), of length 1, ``document`` (B, figures), ``real`` (B, S): which of the rows are
    sentences.
    """

    states: Tensor
    figures: Tensor
    vectors: Tensor
    document: Tensor
    real: Tensor

    @classmethod
    def of(cls, sentences: Sequence[Sentences]) -> Texts:
        """One or more texts."""
        longest = max(map(len, sentences))

        def filled(arrays: Sequence[npt.NDArray[np.floating]]) -> Tensor:
            rows = np.zeros((len(arrays), longest, arrays[0].shape[1]), dtype=arrays[0].dtype)
            for row, array in zip(rows, arrays, strict=True):
                row[: len(array)] = array
            return torch.from_numpy(rows)

        lengths = torch.tensor([len(one) for one in sentences])
        return cls(
            states=filled([one.states for one in sentences]),
            figures=filled([one.figures for one in sentences]),
            vectors=filled([one.vectors for one in sentences]),
            document=torch.from_numpy(np.stack([one.document for one in sentences])),
            real=torch.arange(longest) < lengths[:, None],
        )


@dataclass(frozen=True)
class Sentences:
    """What heads take of the sentences of one text; see `Texts`."""

    states: npt.NDArray[np.floating]
    figures: Floats
    vectors: npt.NDArray[np.floating]

    @classmethod
    def of(cls, reading: Reading, vectors: Floats) -> Sentences:
        """Of a text that was read, and its sentences encoded."""
        lengths = np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
        figures = np.column_stack([reading.losses, np.log1p(reading.tokens)]).astype(np.float32)
        # Not -1: a text without sentences has no width to compute.
        states = reading.states.reshape(len(reading.states), prod(reading.states.shape[1:]))
        return cls(states, figures, vectors / lengths)

    def __len__(self) -> int:
        return len(self.states)

    def first(self, sentences: int) -> Sentences:
        """The same of the first sentences alone: a reader knows nothing of what follows."""
        return self.part(0, sentences)

    def part(self, begin: int, end: int) -> Sentences:
        """The same of some sentences in a row."""
        return Sentences(self.states[begin:end], self.figures[begin:end], self.vectors[begin:end])

    @property
    def document(self) -> Floats:
        """Mean loss and mean expected loss of a token, and how many tokens there are (log)."""
        tokens = np.expm1(self.figures[:, -1])
        total = max(float(tokens.sum()), 1.0)
        means = [float(tokens @ self.figures[:, FIGURES.index(name)]) / total for name in ("loss", "expected_loss")]
        return np.array([*means, np.log(total)], dtype=np.float32)


@dataclass(frozen=True)
class Outputs:
    """What heads say, as log-odds.

    Shapes: ``boundaries`` (B, S - 1): that a boundary holds; ``belonging`` (B, S): that a sentence belongs; ``related``
    (B, S, S): that two sentences are from the same text; ``scores`` (B,); ``gains`` (B, S, S), in nats: how much
    easier a sentence is to foresee after an earlier one, or None.
    """

    boundaries: Tensor
    belonging: Tensor
    related: Tensor
    scores: Tensor
    gains: Tensor | None = None


class GainsHead(nn.Module):
    """Predicts gains.

    The sentences of other heads have looked at each other; the reader's states and figures of a sentence say more of
    what it has in common with one other sentence, and how hard it is to foresee alone.

    Args:
        shape: The figures of the heads.
        dropout: The share of the numbers that is left out in a step.
    """

    mean: Tensor
    scale: Tensor

    def __init__(self, shape: HeadsShape, dropout: float = 0.5) -> None:
        super().__init__()
        # Of the gains to learn.
        self.register_buffer("mean", torch.zeros(()))
        self.register_buffer("scale", torch.ones(()))
        self.states = nn.Linear(len(shape.states) * shape.state_width, shape.hidden)
        size = 2 * shape.hidden + len(FIGURES) + 1
        self.source, self.target = (nn.Linear(size, shape.gains, bias=False) for _ in range(2))
        self.of_source, self.of_target = nn.Linear(size, 1), nn.Linear(size, 1, bias=False)
        self.distance, self.cosine = nn.Embedding(_DISTANCES, 1), nn.Parameter(torch.tensor(1.0))
        nn.init.zeros_(self.distance.weight)
        self.drop = nn.Dropout(dropout)

    def forward(self, sentences: Tensor, states: Tensor, figures: Tensor, cosines: Tensor) -> Tensor:
        """The gain of every later sentence after every earlier one, (B, S, S), in nats.

        Args:
            sentences: What other heads take, (B, S, hidden).
            states: The reader's states, standardised, (B, S, states times width).
            figures: The reader's figures, standardised, (B, S, figures).
            cosines: The cosines of the encoder's vectors, (B, S, S).
        """
        own = functional.gelu(self.states(self.drop(states)))
        mixed = self.drop(torch.cat([sentences, own, figures], dim=-1))
        source, target = self.source(mixed), self.target(mixed)
        place = torch.arange(mixed.shape[1])
        distance = (place - place[:, None]).clamp(0, _DISTANCES - 1)
        standard: Tensor = (
            source @ target.transpose(1, 2) / source.shape[-1] ** 0.5
            + self.of_source(mixed)
            + self.of_target(mixed).transpose(1, 2)
            + self.cosine * cosines
            + self.distance(distance).squeeze(-1)
        )
        return self.mean + self.scale * standard


class HeadsNetwork(nn.Module):
    """The network of the heads."""

    mean: Tensor
    scale: Tensor

    def __init__(self, shape: HeadsShape, dropout: float = 0.2) -> None:
        super().__init__()
        hidden, figures = shape.hidden, len(FIGURES) + 1
        self.shape = shape
        states = len(shape.states) * shape.state_width
        # Inputs are standardised: states, figures and figures of the document, one after the other.
        self.register_buffer("mean", torch.zeros(states + figures + _OF_DOCUMENT))
        self.register_buffer("scale", torch.ones(states + figures + _OF_DOCUMENT))
        self.states = nn.Linear(states, hidden)
        self.figures = nn.Linear(figures + _OF_SENTENCE, hidden)
        self.vectors = nn.Linear(shape.vector_width, hidden)
        self.from_start, self.from_end = nn.Embedding(_PLACES, hidden), nn.Embedding(_PLACES, hidden)
        for places in (self.from_start, self.from_end):
            nn.init.normal_(places.weight, std=0.02)
        self.norm = nn.LayerNorm(hidden)
        self.together = nn.TransformerEncoderLayer(
            hidden, _ATTENTION_HEADS, 2 * hidden, dropout, batch_first=True, norm_first=True
        )
        self.boundary = nn.Sequential(nn.Linear(4 * hidden + _OF_BOUNDARY, hidden), nn.GELU(), nn.Linear(hidden, 1))
        self.belonging = nn.Linear(hidden, 1)
        self.source, self.target = (nn.Linear(hidden, shape.related, bias=False) for _ in range(2))
        self.distance, self.cosine = nn.Embedding(_DISTANCES, 1), nn.Parameter(torch.tensor(2.0))
        self.whole = nn.Sequential(nn.Linear(2 * hidden, hidden), nn.GELU(), nn.Linear(hidden, 1))
        self.document = nn.Linear(_OF_DOCUMENT, 1)
        with torch.no_grad():
            self.document.weight.copy_(torch.tensor([_DOCUMENT_AT_FIRST]))
        # How much mean and least count, of boundaries and of sentences.
        self.parts = nn.Parameter(torch.full((2, 2), 0.5))
        # How much the weakest boundary between two sentences counts in their relation.
        self.between = nn.Parameter(torch.tensor(0.5))
        self.drop = nn.Dropout(dropout)
        self.gains = GainsHead(shape) if shape.gains else None

    def weighing(self) -> list[nn.Parameter]:
        """The few parameters that weigh parts of the score, and of the relation, against each other."""
        return [self.parts, self.between, self.cosine, *self.document.parameters()]

    def forward(self, texts: Texts) -> Outputs:
        """What the heads say of texts."""
        real, near = texts.real, texts.vectors
        sizes = [texts.states.shape[-1], texts.figures.shape[-1], _OF_DOCUMENT]
        standard = [
            (part.to(mean.dtype) - mean) / scale
            for part, mean, scale in zip(
                (texts.states, texts.figures, texts.document),
                self.mean.split(sizes),
                self.scale.split(sizes),
                strict=True,
            )
        ]
        vectors = near.to(self.mean.dtype)
        cosines = vectors @ vectors.transpose(1, 2)
        of_sentences = _of_sentences(cosines, real)
        states = self._sentences(standard[0], torch.cat([standard[1], of_sentences], dim=-1), vectors, real)
        left, right = states[:, :-1], states[:, 1:]
        pairs = self.drop(torch.cat([left, right, left * right, (left - right).abs()], dim=-1))
        boundaries = self.boundary(torch.cat([pairs, _of_boundaries(vectors, real)], dim=-1)).squeeze(-1)
        belonging = self.belonging(self.drop(states)).squeeze(-1)
        place = torch.arange(real.shape[1])
        distance = (place - place[:, None]).clamp(0, _DISTANCES - 1)
        related = (
            self.source(self.drop(states)) @ self.target(self.drop(states)).transpose(1, 2) / self.shape.related**0.5
            + self.cosine * cosines
            + self.distance(distance).squeeze(-1)
        )
        related = related + self.between * _least_between(boundaries)
        mean, most = _mean(states, real), states.masked_fill(~real[..., None], -torch.inf).amax(dim=1)
        scores = (
            self.whole(self.drop(torch.cat([mean, most], dim=-1))).squeeze(-1)
            + _summed(boundaries, real[:, 1:], self.parts[0])
            + _summed(belonging, real, self.parts[1])
            + self.document(standard[2]).squeeze(-1)
        )
        gains = None if self.gains is None else self.gains(states, standard[0], standard[1], cosines)
        return Outputs(boundaries, belonging, related, scores, gains)

    def _sentences(self, states: Tensor, figures: Tensor, vectors: Tensor, real: Tensor) -> Tensor:
        """The sentences of every text, after a look at each other."""
        place, number = torch.arange(real.shape[1]), real.sum(dim=1, keepdim=True)
        mixed = self.states(self.drop(states)) + self.figures(figures)
        # Of length 1 before, a vector has numbers as large as the others now.
        mixed = mixed + self.vectors(self.drop(vectors * self.shape.vector_width**0.5))
        mixed = mixed + self.from_start(place.clamp(max=_PLACES - 1))
        mixed = mixed + self.from_end((number - 1 - place).clamp(0, _PLACES - 1))
        found: Tensor = self.together(functional.gelu(self.norm(mixed)), src_key_padding_mask=~real)
        return found


def _mean(values: Tensor, real: Tensor) -> Tensor:
    """The mean over what is there, (B, numbers); 0 where nothing is."""
    weights = real[..., None].to(values.dtype)
    return (values * weights).sum(dim=1) / weights.sum(dim=1).clamp(min=1)


def _summed(odds: Tensor, real: Tensor, weights: Tensor) -> Tensor:
    """The mean and the least of what is there, weighted, (B,): one break is a break, however long the text is."""
    if not odds.shape[1]:
        return odds.new_zeros(len(odds))
    least = odds.masked_fill(~real, torch.inf).amin(dim=1)
    least = torch.where(real.any(dim=1), least, 0)
    return weights[0] * _mean(odds[..., None], real).squeeze(-1) + weights[1] * least


def _least_between(boundaries: Tensor) -> Tensor:
    """The least of the boundaries between an earlier sentence (row) and a later one (column), 0 elsewhere."""
    size = boundaries.shape[1] + 1
    inside = torch.ones(size, size - 1, dtype=torch.bool).triu()
    rows = boundaries[:, None].masked_fill(~inside, torch.inf).cummin(dim=2).values
    return functional.pad(rows.masked_fill(~inside, 0), (1, 0))


def _of_sentences(cosines: Tensor, real: Tensor) -> Tensor:
    """How similar each sentence is to the others: on average, at most, to the one before and to the one after."""
    size = real.shape[1]
    others = real[:, None] & ~torch.eye(size, dtype=torch.bool)
    number = others.sum(dim=-1).clamp(min=1)
    mean = cosines.masked_fill(~others, 0).sum(dim=-1) / number
    most = cosines.masked_fill(~others, -1).amax(dim=-1)
    neighbours = torch.diagonal(cosines, offset=1, dim1=1, dim2=2) * real[:, 1:]
    return torch.stack([mean, most, functional.pad(neighbours, (1, 0)), functional.pad(neighbours, (0, 1))], dim=-1)


def _of_boundaries(vectors: Tensor, real: Tensor) -> Tensor:
    """How similar the sentences are on both sides of a boundary: the neighbours, the nearest few, and all."""
    there = vectors * real[..., None]
    before, after = there.cumsum(dim=1)[:, :-1], there.flip(1).cumsum(dim=1).flip(1)[:, 1:]
    near_before = before - functional.pad(before, (0, 0, _NEAR, 0))[:, : before.shape[1]]
    near_after = after - functional.pad(after, (0, 0, 0, _NEAR))[:, _NEAR:]
    cosine = functional.cosine_similarity
    found = [
        cosine(there[:, :-1], there[:, 1:], dim=-1),
        cosine(near_before, near_after, dim=-1),
        cosine(before, after, dim=-1),
        cosine(near_before, after, dim=-1),
        cosine(before, near_after, dim=-1),
    ]
    return torch.stack(found, dim=-1)
