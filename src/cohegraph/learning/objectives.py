"""What a system learns: levels, ordered levels, a rating, or a ranking within groups.

A network gives every document one or more numbers, its *outputs*. An objective says how many there are, what training
minimises, how outputs become *predictions* (probabilities of levels, a rating, a rank score), and how good these are on
dev documents.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Targets:
    """What documents should be predicted to be.

    Shapes: ``values`` (documents,), level numbers counted from 0, or ratings in [0, 1]; ``groups`` (documents,), group
    numbers, which only ranking needs.
    """

    values: npt.NDArray[Any]
    groups: npt.NDArray[np.int64] | None = None

    @property
    def group_numbers(self) -> npt.NDArray[np.int64]:
        """The group of every document; without groups, all documents are in one."""
        return np.zeros(len(self), dtype=np.int64) if self.groups is None else self.groups

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, rows: Any) -> "Targets":
        return Targets(self.values[rows], None if self.groups is None else self.groups[rows])

    def __add__(self, other: "Targets") -> "Targets":
        values = np.concatenate([self.values, other.values])
        if self.groups is None or other.groups is None:
            return Targets(values)
        return Targets(values, np.concatenate([self.groups, other.groups]))


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
        """The loss on documents with these targets; only levels can be weighted."""

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
        total = len(classes) if weights is None else weights[classes].sum()

        def loss(outputs: Tensor, rows: slice | None = None) -> Tensor:
            if rows is None:
                return cross_entropy(outputs, classes, weight=weights)
            return cross_entropy(outputs, classes[rows], weight=weights, reduction="sum") / total

        return loss

    def _weighted(
        self, targets: Targets, dtype: torch.dtype, class_weights: ClassWeights
    ) -> tuple[Tensor, Tensor | None]:
        """The level of every document, and the weight of every level."""
        classes = torch.from_numpy(np.asarray(targets.values, dtype=np.int64))
        if class_weights == "none":
            return classes, None
        counts = torch.bincount(classes, minlength=self.outputs).to(dtype)
        return classes, len(classes) / (self.outputs * counts.clamp(min=1))

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
        return Targets(np.argsort(columns)[places], targets.groups)

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
            if weights is None:
                return costs.sum() / len(every)
            return (costs * weights[classes]).sum() / weights[every].sum()

        return loss


class Rating(Objective):
    """A rating in [0, 1]: the cross-entropy of one output through the logistic function."""

    kind = "rating"

    def loss(self, targets: Targets, dtype: torch.dtype, class_weights: ClassWeights = "none") -> Loss:
        """The mean cross-entropy."""
        ratings = torch.from_numpy(np.asarray(targets.values)).to(dtype)

        def loss(outputs: Tensor, rows: slice | None = None) -> Tensor:
            if rows is None:
                return binary_cross_entropy_with_logits(outputs[:, 0], ratings)
            part = binary_cross_entropy_with_logits(outputs[:, 0], ratings[rows], reduction="sum")
            return part / len(ratings)

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
    mean something.
    """

    kind = "ranking"

    def loss(self, targets: Targets, dtype: torch.dtype, class_weights: ClassWeights = "none") -> Loss:
        """The mean over pairs."""
        higher, lower = (torch.from_numpy(np.concatenate(part)) for part in zip(*_pairs(targets), strict=True))
        if not len(higher):
            raise nothing_to_rank("documents")

        def loss(outputs: Tensor, rows: slice | None = None) -> Tensor:
            if rows is not None:
                raise CohegraphError(
                    "Ranking compares documents with each other and cannot be trained in chunks: train on texts, or "
                    "choose another objective.",
                    code="ranking-in-chunks",
                )
            return softplus(outputs[lower, 0] - outputs[higher, 0]).mean()

        return loss

    def can_learn(self, targets: Targets) -> bool:
        """Whether two documents of a group differ."""
        return any(len(np.unique(targets.values[rows])) > 1 for rows in group_rows(targets))

    def predictions(self, outputs: Floats) -> npt.NDArray[np.float64]:
        """The score as it is."""
        return outputs.astype(np.float64)


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
