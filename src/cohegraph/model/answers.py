"""Labels as a model learns them: levels with their order, or ratings."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from cohegraph.errors import CohegraphError
from cohegraph.features import Features
from cohegraph.labels import Labels, as_labels, as_ratings
from cohegraph.learning.objectives import Objective, Targets, group_rows, nothing_to_rank, objective_of
from cohegraph.model.label_checks import check_count, check_groups, checked_labels, checked_weights
from cohegraph.settings import ObjectiveSettings, Settings
from cohegraph.systems.system import Graded


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
        cls,
        labels: Labels,
        groups: Sequence[Any] | None,
        levels: Sequence[Any] | None,
        settings: ObjectiveSettings,
        weights: npt.ArrayLike | None = None,
    ) -> Self:
        """Check the labels and the weights of training documents, and number the labels."""
        encoded = checked_labels(labels, groups, levels, settings)
        values = level_numbers(encoded.values, encoded.levels) if settings.is_of_levels else encoded.values
        objective = objective_of(settings.kind, len(encoded.classes))
        targets = Targets(
            values, group_numbers(groups), None if weights is None else checked_weights(weights, len(values))
        )
        if not objective.can_learn(targets):
            raise nothing_to_rank("documents")
        return cls(objective, targets, encoded.classes, encoded.levels, encoded.ordered)

    @property
    def label_order(self) -> tuple[int, ...] | None:
        """The numbers of the levels in the alphabetical order of their labels; none where ratings are learnt."""
        return tuple(level_numbers(self.classes, self.levels).tolist()) if len(self.classes) else None

    @property
    def truth(self) -> Targets:
        """What predictions are compared with: places among the classes, or ratings; only rankings heed groups."""
        if self.label_order is not None:
            return Targets(np.argsort(self.label_order)[self.targets.values])
        return self.targets if self.objective.kind == "ranking" else Targets(self.targets.values)

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
            rows, rest = self._held_out(options.dev_share, options.seed)
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
            values: npt.NDArray[Any] = level_numbers(labels, self.levels, "dev")
        else:
            values = as_ratings(labels, settings.span)
        check_groups(groups, settings)
        if groups is not None:
            check_count(len(features), "groups", len(groups), "dev documents")
        targets = Targets(values, group_numbers(groups))
        check_count(len(features), "labels", len(values), "dev documents")
        if not len(values):
            raise CohegraphError("There are no dev documents.", code="label-count")
        if not self.objective.can_learn(targets):
            raise nothing_to_rank("dev documents")
        return Graded(features, targets)

    def _held_out(self, share: float, seed: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Training and dev documents, each with all classes in their shares; of a ranking, whole groups if they fit."""
        from sklearn.model_selection import train_test_split

        everything, codes = np.arange(len(self.targets)), self.truth.values if len(self.classes) else None
        dev = self._groups_held_out(share, seed) if self.objective.kind == "ranking" else everything[:0]
        if not len(dev):
            try:
                dev = train_test_split(everything, test_size=share, random_state=seed, stratify=codes)[1]
            except ValueError as error:
                raise _bad_dev_share(share, len(everything), str(error)) from None
        training, dev = np.setdiff1d(everything, dev), np.sort(dev)
        if not all(self.objective.can_learn(self.targets[part]) for part in (training, dev)):
            raise _bad_dev_share(share, len(everything), "no group would have two documents that differ in rating")
        return training, dev

    def _groups_held_out(self, share: float, seed: int) -> npt.NDArray[np.int64]:
        """The documents of as many groups with something to rank as the share holds; one such group is left."""
        ranked = [rows for rows in group_rows(self.targets) if self.objective.can_learn(self.targets[rows])]
        chosen, room = [np.zeros(0, dtype=np.int64)], share * len(self.targets)
        for number in np.random.default_rng(seed).permutation(len(ranked))[1:]:
            if len(ranked[number]) <= room:
                chosen.append(ranked[number])
                room -= len(ranked[number])
        return np.concatenate(chosen)

    def counted(self, targets: Targets) -> dict[str, int]:
        """How many documents have each label, or how many have a rating."""
        if self.label_order is None:
            return {"rated": len(targets)}
        numbers = zip(self.label_order, self.classes.tolist(), strict=True)
        return {str(label): int((targets.values == number).sum()) for number, label in numbers}


def _bad_dev_share(share: float, documents: int, why: str) -> CohegraphError:
    return CohegraphError(
        f"training.dev_share={share} cannot be held out of {documents} documents: {why.rstrip('.')}.",
        code="bad-dev-share",
    )


def group_numbers(groups: Sequence[Any] | None) -> npt.NDArray[np.int64] | None:
    """Groups as numbers."""
    return None if groups is None else np.unique(np.array([*map(str, groups)]), return_inverse=True)[1]


def level_numbers(labels: Labels, levels: Sequence[Any], which: str = "training") -> npt.NDArray[np.int64]:
    """Labels as numbers, 0 for the lowest level; ``which`` says what documents they are of, for an error."""
    values = as_labels(labels).tolist()
    place = {level: number for number, level in enumerate(levels)}
    unknown = sorted(set(values) - set(place), key=str)
    if unknown:
        raise CohegraphError(
            f"The {which} documents have a label that the training documents lack: '{unknown[0]}'.",
            code="unknown-label",
        )
    return np.array([place[label] for label in values], dtype=np.int64)
