"""Labels as a model learns them: levels with their order, or ratings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cohegraph.errors import CohegraphError
from cohegraph.features import Features
from cohegraph.labels import as_labels, as_ratings
from cohegraph.learning.objectives import Objective, Targets, objective_of
from cohegraph.model.label_checks import checked_labels, no_groups
from cohegraph.settings import ObjectiveSettings, Settings
from cohegraph.systems.system import Graded

Labels = Sequence[Any] | npt.NDArray[Any]


@dataclass(frozen=True)
class Answers:
    """What documents should be predicted to be.

    Args:
        objective: What is learnt.
        targets: Of every document: level numbers, 0 for the lowest, or ratings from 0 to 1.
        classes: The labels as scikit-learn sorts them; empty where ratings are learnt.
        levels: The levels from the lowest to the highest.
        ordered: Whether that order is known.
    """

    objective: Objective
    targets: Targets
    classes: npt.NDArray[Any]
    levels: list[Any]
    ordered: bool

    @classmethod
    def of(
        cls, labels: Labels, groups: Sequence[Any] | None, levels: Sequence[Any] | None, settings: ObjectiveSettings
    ) -> Answers:
        """Check the labels of training documents and number them."""
        encoded = checked_labels(labels, groups, levels, settings)
        values = encoded.values
        if settings.is_of_levels:
            values = level_numbers(encoded.classes, encoded.levels)[encoded.codes]
        objective = objective_of(settings.kind, len(encoded.classes))
        return cls(objective, Targets(values, group_numbers(groups)), encoded.classes, encoded.levels, encoded.ordered)

    @property
    def label_order(self) -> tuple[int, ...] | None:
        """The numbers of the levels in the alphabetical order of their labels."""
        return tuple(level_numbers(self.classes, self.levels).tolist()) if len(self.classes) else None

    @property
    def codes(self) -> npt.NDArray[np.int64] | None:
        """The place of every document's label among the classes; none where ratings are learnt."""
        if self.label_order is None:
            return None
        return np.asarray(np.argsort(self.label_order)[self.targets.values])

    def split(self, features: Features, dev: Sequence[Any] | None, settings: Settings) -> tuple[Graded, Graded | None]:
        """Training documents, and dev documents if there are any.

        Args:
            features: Of the documents that these are the answers of.
            dev: Features, labels and perhaps groups of further documents to choose the epoch with.
            settings: Without ``dev``, ``training.dev_share`` of the documents are held out.
        """
        everything, options = Graded(features, self.targets), settings.training
        if dev is not None:
            return everything, self._further(settings.objective, *dev)
        if options.dev_share > 0:
            rows, rest = _held_out(len(features), self.codes, options.dev_share, options.seed)
            return everything[rows], everything[rest]
        if options.patience is not None:
            raise CohegraphError(
                "training.patience needs dev documents: set training.dev_share, such as 0.1.", code="no-dev"
            )
        return everything, None

    def _further(
        self, settings: ObjectiveSettings, features: Features, labels: Labels, groups: Sequence[Any] | None = None
    ) -> Graded:
        if settings.is_of_levels:
            values: npt.NDArray[Any] = numbers_of(labels, self.levels, "dev")
        else:
            values = as_ratings(labels, settings.range)
        if settings.kind == "ranking" and groups is None:
            raise no_groups()
        if len(features) != len(values) or not len(values):
            raise CohegraphError(
                f"There are {len(features)} dev documents and {len(values)} dev labels.", code="label-count"
            )
        return Graded(features, Targets(values, group_numbers(groups)))

    def counted(self, targets: Targets) -> dict[str, int]:
        """How many documents have each label, or how many have a rating."""
        if self.label_order is None:
            return {"rated": len(targets)}
        numbers = zip(self.label_order, self.classes.tolist(), strict=True)
        return {str(label): int((targets.values == number).sum()) for number, label in numbers}


def group_numbers(groups: Sequence[Any] | None) -> npt.NDArray[np.int64] | None:
    """Groups as numbers."""
    return None if groups is None else np.unique(np.array([*map(str, groups)]), return_inverse=True)[1]


def _held_out(
    documents: int, codes: npt.NDArray[np.int64] | None, share: float, seed: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Training and dev documents, each with all classes in their shares."""
    from sklearn.model_selection import train_test_split

    try:
        training, dev = train_test_split(np.arange(documents), test_size=share, random_state=seed, stratify=codes)
    except ValueError as error:
        raise CohegraphError(
            f"training.dev_share={share} cannot be held out of {documents} documents: {error}", code="bad-dev-share"
        ) from None
    return np.sort(training), np.sort(dev)


def level_numbers(classes: npt.NDArray[Any], levels: Sequence[Any]) -> npt.NDArray[np.int64]:
    """For each of the sorted classes its number in the order of levels, 0 for the lowest."""
    place = {level: number for number, level in enumerate(levels)}
    return np.array([place[label] for label in classes.tolist()], dtype=np.int64)


def numbers_of(labels: Labels, levels: Sequence[Any], which: str) -> npt.NDArray[np.int64]:
    """The level numbers of further documents, whose labels must be known; ``which`` says what documents they are."""
    values = as_labels(labels).tolist()
    place = {level: number for number, level in enumerate(levels)}
    unknown = sorted(set(values) - set(place), key=str)
    if unknown:
        raise CohegraphError(
            f"The {which} documents have a label that the training documents lack: '{unknown[0]}'.",
            code="unknown-label",
        )
    return np.array([place[label] for label in values], dtype=np.int64)
