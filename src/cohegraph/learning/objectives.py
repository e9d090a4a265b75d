"""What a system learns: levels, ordered levels, a rating, or a ranking within groups.

A network gives every document one or more numbers, its *outputs*. An objective says how many there are, what training
minimises, how outputs become *predictions* (probabilities of levels, a rating, a rank score), and how good these are on
dev documents.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt
import torch
from scipy.special import expit, softmax
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy, softplus

from cohegraph.errors import CohegraphError
from cohegraph.settings import ClassWeights, ObjectiveKind

Floats = npt.NDArray[np.floating]


@dataclass(frozen=True)
class Targets:
    """What documents should be predicted to be.

    Shapes: ``values`` (documents,), level numbers counted from 0, or ratings in [0, 1]; ``groups`` (documents,), group
    numbers, which only ranking needs.
    """

    values: npt.NDArray[Any]
    groups: npt.NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, rows: Any) -> Targets:
        return Targets(self.values[rows], None if self.groups is None else self.groups[rows])

    def __add__(self, other: Targets) -> Targets:
        values = np.concatenate([self.values, other.values])
        if self.groups is None or other.groups is None:
            return Targets(values)
        return Targets(values, np.concatenate([self.groups, other.groups]))


class Loss(Protocol):
    """What training minimises, with the targets of all training documents inside."""

    def __call__(self, outputs: Tensor, rows: slice | None = None) -> Tensor:
        """The loss of all documents or, of the documents in some rows, their part of that mean."""


class Objective(ABC):
    """One of the things that can be learnt."""

    kind: ClassVar[ObjectiveKind]

    @property
    @abstractmethod
    def outputs(self) -> int:
        """How many numbers a network gives a document."""

    @abstractmethod
    def loss(self, targets: Targets, dtype: torch.dtype, class_weights: ClassWeights = "none") -> Loss:
        """The loss on documents with these targets."""

    @abstractmethod
    def predictions(self, outputs: Floats) -> npt.NDArray[np.float64]:
        """Outputs as predictions, both (documents, outputs)."""

    @abstractmethod
    def quality(self, outputs: Floats, targets: Targets) -> tuple[float, float]:
        """How good outputs are: the share of right answers, and the loss."""

    def seen(self, training: Targets) -> npt.NDArray[np.uint8]:
        """Which outputs can be learnt from these documents, (outputs,): not those of levels that none of them has."""
        return np.ones(self.outputs, dtype=np.uint8)

    def narrowed(self, seen: npt.NDArray[np.uint8]) -> Objective:
        """The objective without the outputs that cannot be learnt."""
        return self

    def narrow_targets(self, targets: Targets, seen: npt.NDArray[np.uint8]) -> Targets:
        """The same targets, numbered as the narrowed objective numbers them."""
        return targets

    def learnable(self, targets: Targets, seen: npt.NDArray[np.uint8]) -> npt.NDArray[np.bool_]:
        """Which documents have a target that can be predicted."""
        return np.ones(len(targets), dtype=bool)

    def can_learn(self, targets: Targets) -> bool:
        """Whether there is anything to learn from documents with these targets."""
        return len(targets) > 0


def spread(predictions: npt.NDArray[np.float64], seen: npt.NDArray[np.uint8]) -> npt.NDArray[np.float64]:
    """Predictions of a narrowed objective as those of all outputs; an output that was never seen gets 0."""
    full = np.zeros((len(predictions), len(seen)))
    full[:, np.flatnonzero(seen)] = predictions
    return full


@dataclass(frozen=True)
class Levels(Objective):
    """Levels without an order: Equation 7, the cross-entropy."""

    levels: int
    kind: ClassVar[ObjectiveKind] = "levels"

    @property
    def outputs(self) -> int:
        """A logit for each level."""
        return self.levels

    def loss(self, targets: Targets, dtype: torch.dtype, class_weights: ClassWeights = "none") -> Loss:
        """The mean cross-entropy, weighted by level if asked for."""
        classes = torch.from_numpy(np.asarray(targets.values, dtype=np.int64))
        return _LevelLoss(classes, self._weights(classes, dtype, class_weights))

    def _weights(self, classes: Tensor, dtype: torch.dtype, class_weights: ClassWeights) -> Tensor | None:
        if class_weights == "none":
            return None
        counts = torch.bincount(classes, minlength=self.levels).to(dtype)
        return len(classes) / (self.levels * counts.clamp(min=1))

    def predictions(self, outputs: Floats) -> npt.NDArray[np.float64]:
        """The probability of every level."""
        return np.asarray(softmax(outputs.astype(np.float64), axis=1))

    def quality(self, outputs: Floats, targets: Targets) -> tuple[float, float]:
        """Accuracy and mean cross-entropy."""
        accuracy = float((outputs.argmax(axis=1) == targets.values).mean())
        return accuracy, self.loss(targets, torch.float32)(torch.from_numpy(outputs)).item()

    def seen(self, training: Targets) -> npt.NDArray[np.uint8]:
        """The levels that some document has."""
        return np.isin(np.arange(self.levels), training.values).astype(np.uint8)

    def narrowed(self, seen: npt.NDArray[np.uint8]) -> Objective:
        """The same for the levels that were seen."""
        return type(self)(int(seen.sum()))

    def narrow_targets(self, targets: Targets, seen: npt.NDArray[np.uint8]) -> Targets:
        """Levels numbered among those that were seen."""
        return Targets(np.searchsorted(np.flatnonzero(seen), targets.values), targets.groups)

    def learnable(self, targets: Targets, seen: npt.NDArray[np.uint8]) -> npt.NDArray[np.bool_]:
        """Documents of levels that were seen."""
        return np.isin(targets.values, np.flatnonzero(seen))


@dataclass(frozen=True)
class OrdinalLevels(Levels):
    r"""Levels in an order: a far miss costs more than a near one.

    With F_k the probability of level k or a lower one, a document of level y costs the mean log loss of all questions
    "is it at most level k?":

    .. math:: -\frac{1}{K - 1} \sum_{k < K} [y \le k] \log F_k + [y > k] \log (1 - F_k)
    """

    kind: ClassVar[ObjectiveKind] = "ordinal"

    def loss(self, targets: Targets, dtype: torch.dtype, class_weights: ClassWeights = "none") -> Loss:
        """The mean of the cumulative log loss, weighted by level if asked for."""
        classes = torch.from_numpy(np.asarray(targets.values, dtype=np.int64))
        return _OrdinalLoss(classes, self._weights(classes, dtype, class_weights))


@dataclass(frozen=True)
class _LevelLoss:
    classes: Tensor
    weights: Tensor | None

    def __call__(self, outputs: Tensor, rows: slice | None = None) -> Tensor:
        if rows is None:
            return cross_entropy(outputs, self.classes, weight=self.weights)
        part = cross_entropy(outputs, self.classes[rows], weight=self.weights, reduction="sum")
        return part / (len(self.classes) if self.weights is None else self.weights[self.classes].sum())


@dataclass(frozen=True)
class _OrdinalLoss:
    classes: Tensor
    weights: Tensor | None

    def __call__(self, outputs: Tensor, rows: slice | None = None) -> Tensor:
        classes = self.classes if rows is None else self.classes[rows]
        logs = outputs.log_softmax(dim=1)
        at_most = logs.logcumsumexp(dim=1)[:, :-1]
        above = logs.flip(1).logcumsumexp(dim=1).flip(1)[:, 1:]
        asked = torch.arange(outputs.shape[1] - 1)
        costs = -torch.where(classes[:, None] <= asked, at_most, above).mean(dim=1)
        if self.weights is None:
            return costs.sum() / len(self.classes)
        return (costs * self.weights[classes]).sum() / self.weights[self.classes].sum()


@dataclass(frozen=True)
class Rating(Objective):
    """A rating in [0, 1]: the cross-entropy of one output through the logistic function."""

    kind: ClassVar[ObjectiveKind] = "rating"

    @property
    def outputs(self) -> int:
        """The logit of the rating."""
        return 1

    def loss(self, targets: Targets, dtype: torch.dtype, class_weights: ClassWeights = "none") -> Loss:
        """The mean cross-entropy; there are no levels to weigh."""
        return _RatingLoss(torch.from_numpy(np.asarray(targets.values)).to(dtype))

    def predictions(self, outputs: Floats) -> npt.NDArray[np.float64]:
        """The rating."""
        return np.asarray(expit(outputs.astype(np.float64)))

    def quality(self, outputs: Floats, targets: Targets) -> tuple[float, float]:
        """The share of pairs of documents in the right order, and the mean cross-entropy."""
        loss = self.loss(targets, torch.float64)(torch.from_numpy(outputs.astype(np.float64))).item()
        return ordered_pairs(outputs[:, 0], Targets(targets.values)), loss


@dataclass(frozen=True)
class _RatingLoss:
    ratings: Tensor

    def __call__(self, outputs: Tensor, rows: slice | None = None) -> Tensor:
        if rows is None:
            return binary_cross_entropy_with_logits(outputs[:, 0], self.ratings)
        part = binary_cross_entropy_with_logits(outputs[:, 0], self.ratings[rows], reduction="sum")
        return part / len(self.ratings)


@dataclass(frozen=True)
class Ranking(Objective):
    """An order within groups: the mean logistic loss over all pairs of a group that differ in rating.

    Ratings of different groups are never compared, so groups may use different scales.
    """

    kind: ClassVar[ObjectiveKind] = "ranking"

    @property
    def outputs(self) -> int:
        """A score; only differences between scores mean something."""
        return 1

    def loss(self, targets: Targets, dtype: torch.dtype, class_weights: ClassWeights = "none") -> Loss:
        """The mean over pairs; there are no levels to weigh."""
        higher, lower = (torch.from_numpy(np.concatenate(part)) for part in zip(*_pairs(targets), strict=True))
        if not len(higher):
            raise CohegraphError(
                "No group has two documents with different ratings, so there is nothing to rank: check the groups.",
                code="nothing-to-rank",
            )
        return _RankingLoss(higher, lower)

    def can_learn(self, targets: Targets) -> bool:
        """Whether two documents of a group differ."""
        return any(len(higher) for higher, _ in _pairs(targets))

    def predictions(self, outputs: Floats) -> npt.NDArray[np.float64]:
        """The score as it is."""
        return outputs.astype(np.float64)

    def quality(self, outputs: Floats, targets: Targets) -> tuple[float, float]:
        """The share of pairs in the right order, and the loss."""
        loss = self.loss(targets, torch.float64)(torch.from_numpy(outputs.astype(np.float64))).item()
        return ordered_pairs(outputs[:, 0], targets), loss


@dataclass(frozen=True)
class _RankingLoss:
    higher: Tensor
    lower: Tensor

    def __call__(self, outputs: Tensor, rows: slice | None = None) -> Tensor:
        if rows is not None:
            raise CohegraphError(
                "Ranking compares documents with each other and cannot be trained in chunks: train on texts, or choose "
                "another objective.",
                code="ranking-in-chunks",
            )
        return softplus(outputs[self.lower, 0] - outputs[self.higher, 0]).mean()


def _pairs(targets: Targets) -> Iterator[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]:
    """The documents of all pairs of a group that differ, the higher rated first; a group at a time."""
    groups = np.zeros(len(targets), dtype=np.int64) if targets.groups is None else targets.groups
    yield np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    order = np.argsort(groups, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(groups[order])) + 1):
        higher, lower = np.nonzero(targets.values[rows][:, None] > targets.values[rows])
        yield rows[higher], rows[lower]


def ordered_pairs(scores: Floats, targets: Targets) -> float:
    """The share of pairs of a group that scores put in the right order, a tie counting half; 0.5 without pairs."""
    right = total = 0.0
    for higher, lower in _pairs(targets):
        right += float((scores[higher] > scores[lower]).sum()) + 0.5 * float((scores[higher] == scores[lower]).sum())
        total += len(higher)
    return right / total if total else 0.5


def number_of_pairs(targets: Targets) -> int:
    """How many pairs of a group `ordered_pairs` compares."""
    return sum(len(higher) for higher, _ in _pairs(targets))


def objective_of(kind: ObjectiveKind, levels: int) -> Objective:
    """An objective by its name; ``levels`` is how many levels there are, if there are any."""
    if kind == "rating":
        return Rating()
    if kind == "ranking":
        return Ranking()
    return OrdinalLevels(levels) if kind == "ordinal" else Levels(levels)
