"""What a system learns: levels, ordered levels, a rating, or a ranking within groups.

A network gives every document one or more numbers, its *outputs*. An objective says how many there are, what training
minimises, how outputs become *predictions* (probabilities of levels, a rating, a rank score), and how good these are on
dev documents.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol, Self

import numpy as np
import numpy.typing as npt
import torch
from scipy.special import expit, softmax
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy, softplus

from cohegraph.errors import CohegraphError
from cohegraph.settings import ClassWeights, ObjectiveKind

Floats = npt.NDArray[np.floating]
Ints = npt.NDArray[np.integer]
_LEAST = 1e-9


@dataclass(frozen=True)
class Targets:
    """What documents should be predicted to be.

    Shapes: ``values`` (documents,), level numbers counted from 0, or ratings in [0, 1]; ``groups`` (documents,), group
    numbers, which only ranking needs; ``weights`` (documents,), how much each document counts in training, where that
    is not the same for all.
    """

    values: npt.NDArray[Any]
    groups: npt.NDArray[np.int64] | None = None
    weights: npt.NDArray[np.float64] | None = None

    @property
    def group_numbers(self) -> npt.NDArray[np.int64]:
        """The group of every document; without groups, all documents are in one."""
        return np.zeros(len(self), dtype=np.int64) if self.groups is None else self.groups

    @property
    def all_weights(self) -> npt.NDArray[np.float64]:
        """The weight of every document; without weights, 1."""
        return np.ones(len(self)) if self.weights is None else self.weights

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, rows: Any) -> "Targets":
        groups, weights = (None if part is None else part[rows] for part in (self.groups, self.weights))
        return Targets(self.values[rows], groups, weights)

    def __add__(self, other: "Targets") -> "Targets":
        values = np.concatenate([self.values, other.values])
        groups = weights = None
        if self.groups is not None and other.groups is not None:
            groups = np.concatenate([self.groups, other.groups])
        if self.weights is not None or other.weights is not None:
            weights = np.concatenate([self.all_weights, other.all_weights])
        return Targets(values, groups, weights)


class Loss(Protocol):
    """What training minimises, with the targets of all training documents inside."""

    def __call__(self, outputs: Tensor, rows: slice | None = None) -> Tensor:
        """The loss of all documents or, of the documents in some rows, their part of that mean."""


@dataclass(frozen=True)
class Objective(ABC):
    """One of the things that can be learnt; ``outputs`` is how many numbers a network gives a document."""

    outputs: int = 1
    kind: ClassVar[ObjectiveKind]

    @abstractmethod
    def loss(self, targets: Targets, dtype: torch.dtype, class_weights: ClassWeights = "none") -> Loss:
        """The loss on documents with these targets; only levels can be weighted by how rare they are."""

    @abstractmethod
    def predictions(self, outputs: Floats) -> npt.NDArray[np.float64]:
        """Outputs as predictions, both (documents, outputs)."""

    def quality(self, outputs: Floats, targets: Targets) -> tuple[float, float]:
        """How good outputs are: the share of right answers, by default of pairs in the right order, and the loss."""
        loss = self.loss(targets, torch.float64)(torch.from_numpy(outputs.astype(np.float64))).item()
        return ordered_pairs(outputs[:, 0], targets), loss

    def seen(self, training: Targets) -> npt.NDArray[np.uint8]:
        """Which outputs can be learnt from these documents, (outputs,): not those of levels that none of them has."""
        return np.ones(self.outputs, dtype=np.uint8)

    def narrowed(self, columns: Ints) -> Self:
        """The objective with these outputs only."""
        return self

    def narrow_targets(self, targets: Targets, columns: Ints) -> Targets:
        """The same targets, numbered as the objective narrowed to these outputs numbers them."""
        return targets

    def learnable(self, targets: Targets, seen: npt.NDArray[np.uint8]) -> npt.NDArray[np.bool_]:
        """Which documents have a target that can be predicted."""
        return np.ones(len(targets), dtype=bool)

    def can_learn(self, targets: Targets) -> bool:
        """Whether documents with these targets tell a better model from a worse one."""
        return True


class Levels(Objective):
    """Levels without an order: Equation 7, the cross-entropy. There is a logit for each level."""

    kind: ClassVar[ObjectiveKind] = "levels"

    def loss(self, targets: Targets, dtype: torch.dtype, class_weights: ClassWeights = "none") -> Loss:
        """The mean cross-entropy, weighted by level if asked for."""
        classes, weights = self._weighted(targets, dtype, class_weights)

        def loss(outputs: Tensor, rows: slice | None = None) -> Tensor:
            if weights is None and rows is None:
                return cross_entropy(outputs, classes)
            costs = cross_entropy(outputs, classes if rows is None else classes[rows], reduction="none")
            return _part_of_mean(costs, rows, len(classes), weights)

        return loss

    def _weighted(
        self, targets: Targets, dtype: torch.dtype, class_weights: ClassWeights
    ) -> tuple[Tensor, Tensor | None]:
        """The level of every document, and its weight, unless all have the same."""
        classes, weights = torch.from_numpy(np.asarray(targets.values, dtype=np.int64)), _weights(targets, dtype)
        if class_weights == "none":
            return classes, weights
        counts = torch.bincount(classes, weights, minlength=self.outputs).to(dtype)
        of_levels = counts.sum() / (self.outputs * counts.clamp(min=_LEAST))
        return classes, of_levels[classes] if weights is None else of_levels[classes] * weights

    def predictions(self, outputs: Floats) -> npt.NDArray[np.float64]:
        """The probability of every level."""
        return np.asarray(softmax(outputs.astype(np.float64), axis=1))

    def quality(self, outputs: Floats, targets: Targets) -> tuple[float, float]:
        """Accuracy and mean cross-entropy."""
        accuracy = float((outputs.argmax(axis=1) == targets.values).mean())
        return accuracy, self.loss(targets, torch.float32)(torch.from_numpy(outputs)).item()

    def seen(self, training: Targets) -> npt.NDArray[np.uint8]:
        """The levels that some document has."""
        return np.isin(np.arange(self.outputs), training.values).astype(np.uint8)

    def narrowed(self, columns: Ints) -> Self:
        """The same for these levels."""
        return type(self)(len(columns))

    def narrow_targets(self, targets: Targets, columns: Ints) -> Targets:
        """Levels numbered as the columns are."""
        places = np.searchsorted(columns, targets.values, sorter=np.argsort(columns))
        return replace(targets, values=np.argsort(columns)[places])

    def learnable(self, targets: Targets, seen: npt.NDArray[np.uint8]) -> npt.NDArray[np.bool_]:
        """Documents of levels that were seen."""
        return np.isin(targets.values, np.flatnonzero(seen))


class OrdinalLevels(Levels):
    r"""Levels in an order: a far miss costs more than a near one.

    With F_k the probability of level k or a lower one, a document of level y costs the mean log loss of all questions
    "is it at most level k?":

    .. math:: -\frac{1}{K - 1} \sum_{k < K} [y \le k] \log F_k + [y > k] \log (1 - F_k)
    """

    kind = "ordinal"

    def loss(self, targets: Targets, dtype: torch.dtype, class_weights: ClassWeights = "none") -> Loss:
        """The mean of the cumulative log loss, weighted by level if asked for."""
        every, weights = self._weighted(targets, dtype, class_weights)

        def loss(outputs: Tensor, rows: slice | None = None) -> Tensor:
            classes = every if rows is None else every[rows]
            logs = outputs.log_softmax(dim=1)
            at_most = logs.logcumsumexp(dim=1)[:, :-1]
            above = logs.flip(1).logcumsumexp(dim=1).flip(1)[:, 1:]
            asked = torch.arange(outputs.shape[1] - 1)
            costs = -torch.where(classes[:, None] <= asked, at_most, above).mean(dim=1)
            return _part_of_mean(costs, rows, len(every), weights)

        return loss


class Rating(Objective):
    """A rating in [0, 1]: the cross-entropy of one output through the logistic function."""

    kind = "rating"

    def loss(self, targets: Targets, dtype: torch.dtype, class_weights: ClassWeights = "none") -> Loss:
        """The mean cross-entropy."""
        ratings, weights = torch.from_numpy(np.asarray(targets.values)).to(dtype), _weights(targets, dtype)

        def loss(outputs: Tensor, rows: slice | None = None) -> Tensor:
            if weights is None and rows is None:
                return binary_cross_entropy_with_logits(outputs[:, 0], ratings)
            wanted = ratings if rows is None else ratings[rows]
            costs = binary_cross_entropy_with_logits(outputs[:, 0], wanted, reduction="none")
            return _part_of_mean(costs, rows, len(ratings), weights)

        return loss

    def predictions(self, outputs: Floats) -> npt.NDArray[np.float64]:
        """The rating."""
        return np.asarray(expit(outputs.astype(np.float64)))

    def quality(self, outputs: Floats, targets: Targets) -> tuple[float, float]:
        """The share of all pairs of documents in the right order, and the mean cross-entropy."""
        return super().quality(outputs, Targets(targets.values))


class Ranking(Objective):
    """An order within groups: the mean logistic loss over all pairs of a group that differ in rating.

    Ratings of different groups are never compared, so groups may use different scales. Only differences between scores
    mean something. The weight of a pair is the product of the weights of its documents.
    """

    kind = "ranking"

    def loss(self, targets: Targets, dtype: torch.dtype, class_weights: ClassWeights = "none") -> Loss:
        """The mean over pairs."""
        higher, lower = (torch.from_numpy(np.concatenate(part)) for part in zip(*_pairs(targets), strict=True))
        if not len(higher):
            raise nothing_to_rank("documents")
        of_documents = _weights(targets, dtype)
        weights = None if of_documents is None else of_documents[higher] * of_documents[lower]

        def loss(outputs: Tensor, rows: slice | None = None) -> Tensor:
            if rows is not None:
                raise CohegraphError(
                    "Ranking compares documents with each other and cannot be trained in chunks: train on texts, or "
                    "choose another objective.",
                    code="ranking-in-chunks",
                )
            return _part_of_mean(softplus(outputs[lower, 0] - outputs[higher, 0]), None, len(higher), weights)

        return loss

    def can_learn(self, targets: Targets) -> bool:
        """Whether two documents of a group differ."""
        return any(len(np.unique(targets.values[rows])) > 1 for rows in group_rows(targets))

    def predictions(self, outputs: Floats) -> npt.NDArray[np.float64]:
        """The score as it is."""
        return outputs.astype(np.float64)


def _weights(targets: Targets, dtype: torch.dtype) -> Tensor | None:
    """The weights of documents, if there are any."""
    return None if targets.weights is None else torch.from_numpy(np.asarray(targets.weights)).to(dtype)


def _part_of_mean(costs: Tensor, rows: slice | None, number: int, weights: Tensor | None) -> Tensor:
    """The mean of all costs, or the part of it that some rows have, given how many costs there are in all."""
    if weights is None:
        return costs.mean() if rows is None else costs.sum() / number
    return (costs * (weights if rows is None else weights[rows])).sum() / weights.sum()


def nothing_to_rank(which: str) -> CohegraphError:
    """What to raise where a ranking has no pairs; ``which`` says of what documents."""
    return CohegraphError(
        f"No group has two {which} with different ratings, so there is nothing to rank: check the groups.",
        code="nothing-to-rank",
    )


def group_rows(targets: Targets) -> list[npt.NDArray[np.int64]]:
    """The documents of every group."""
    order = np.argsort(targets.group_numbers, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(targets.group_numbers[order])) + 1)


def _pairs(targets: Targets) -> Iterator[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]:
    """The documents of all pairs of a group that differ, the higher rated first; a group at a time."""
    for rows in group_rows(targets):
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


def spread(by_column: npt.NDArray[Any], columns: Ints, outputs: int) -> npt.NDArray[Any]:
    """Figures of columns as figures of outputs, given the output of each column; an output without one gets 0."""
    full = np.zeros((*by_column.shape[:-1], outputs), dtype=by_column.dtype)
    full[..., columns] = by_column
    return full


def objective_of(kind: ObjectiveKind, levels: int) -> Objective:
    """An objective by its name; ``levels`` is how many levels there are, if there are any."""
    if kind == "rating":
        return Rating()
    if kind == "ranking":
        return Ranking()
    return OrdinalLevels(levels) if kind == "ordinal" else Levels(levels)
