"""What a model has learnt, and what follows from it for documents."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from cohegraph.assessment import Assessment
from cohegraph.explain.neighbours import Neighbours
from cohegraph.features import SEQUENCES, TALLIES, Features
from cohegraph.features.mapped_vectors import MappedVectors
from cohegraph.learning.calibration import Calibration
from cohegraph.learning.objectives import Targets, ordered_pairs
from cohegraph.model.answers import level_numbers
from cohegraph.model.familiarity import Familiarity
from cohegraph.model.notices import VOID, notices_of
from cohegraph.model.rank_scale import RankScale
from cohegraph.settings import ObjectiveSettings, Settings
from cohegraph.systems.system import CountsUnseen, Fitted, Graded, System

Floats = npt.NDArray[np.float64]
# A level, a score, and the probability of every level.
Verdict = tuple[Any, float | None, dict[Any, float]]
# Documents whose vectors are read from disk together.
_READ_AT_ONCE = 4_096


@dataclass(frozen=True)
class Learnt:
    """All that a trained model is: what is saved and loaded.

    Args:
        system: The system that was trained.
        fitted: What it has learnt.
        settings: What it was trained with.
        classes: The labels as scikit-learn sorts them, in the order of the predictions' columns; empty for ratings.
        levels: The levels from the lowest to the highest.
        ordered: Whether that order is known.
        documents: How many documents it learnt from.
        dimensions: The length of document vectors.
        widths: The length of token vectors, and of the states of a reading, where the system reads them.
        parts: The identities of the pretrained parts.
        training: Figures for people.
        calibration: How sure to be.
        scale: The scale of rank scores, where a ranking was learnt.
        familiarity: What is unlike the training documents.
        neighbours: Documents to compare with in explanations.
        name: What the model is called.
        note: A paragraph about it.
        sha256: What tells a saved model from others.
    """

    system: System
    fitted: Fitted
    settings: Settings
    classes: npt.NDArray[Any]
    levels: list[Any]
    ordered: bool
    documents: int
    dimensions: int
    widths: Mapping[str, int]
    parts: dict[str, str]
    training: dict[str, Any] = field(default_factory=dict)
    calibration: Calibration = field(default_factory=Calibration)
    scale: RankScale | None = None
    familiarity: Familiarity | None = None
    neighbours: Neighbours | None = None
    name: str = ""
    note: str = ""
    sha256: str = ""

    @cached_property
    def order(self) -> npt.NDArray[np.int64]:
        """The level number of every class."""
        return level_numbers(self.classes, self.levels)

    def looked_back(self, training: Graded, dev: Graded | None, *, bare: bool) -> Self:
        """The same with what verdicts need: how good it is, how sure to be, and what is unlike its documents."""
        objective = self.settings.objective
        scale = RankScale.of(self.predictions(training.features)[:, 0]) if objective.kind == "ranking" else None
        found = replace(self, scale=scale, familiarity=None if bare else Familiarity.of(training.features))
        if dev is None:
            return found
        predicted, targets = self.predictions(dev.features), dev.targets
        if objective.is_of_levels:
            targets = Targets(np.argsort(self.order)[targets.values])
        figures = {**self.training, "dev_quality": share_right(objective, predicted, targets)}
        calibration = Calibration() if bare else calibrated(objective, predicted, targets)
        return replace(found, training=figures, calibration=calibration)

    def predictions(self, features: Features) -> Floats:
        """What the system predicts for documents, (documents, outputs), columns as in ``classes``."""
        if isinstance(features.vectors, MappedVectors):
            starts = range(0, max(len(features), 1), _READ_AT_ONCE)
            parts = (features[start : start + _READ_AT_ONCE].in_memory() for start in starts)
            return np.concatenate([self.predictions(part) for part in parts])
        by_level = self.fitted.predict(features)
        return by_level[:, self.order] if len(self.classes) else by_level

    def shares(self, predicted: Floats) -> Floats:
        """Predicted ratings or rank scores as shares of the range, from 0 to 1."""
        return predicted[:, 0] if self.scale is None else self.scale(predicted[:, 0])

    def assess(self, features: Features) -> list[Assessment]:
        """A verdict on every document."""
        counts, predicted = self._counts(features), self.predictions(features)
        if self.settings.objective.is_of_levels:
            verdicts = [self._of_probabilities(row) for row in self.calibration(predicted)]
        else:
            verdicts = [self._of_share(share) for share in self.shares(predicted).tolist()]
        unlikeness = self.familiarity.unlikeness(features).tolist() if self.familiarity else [None] * len(features)
        return [self._assessment(*row) for row in zip(counts, verdicts, unlikeness, strict=True)]

    def _of_probabilities(self, row: Floats) -> Verdict:
        probabilities = dict(zip(self.levels, row[np.argsort(self.order)].tolist(), strict=True))
        expected = sum(number * one for number, one in enumerate(probabilities.values()))
        score = 100 * expected / (len(probabilities) - 1) if self.ordered else None
        return self.classes[row.argmax()].item(), score, probabilities

    def _of_share(self, share: float) -> Verdict:
        thresholds = self.settings.objective.thresholds
        level = self.levels[int(np.searchsorted(thresholds, share, side="right"))]
        probabilities = self.calibration.of_levels(share, thresholds)
        return level, 100 * share, dict(zip(self.levels, probabilities, strict=True)) if probabilities else {}

    def _assessment(self, counts: dict[str, int], verdict: Verdict, unlikeness: float | None) -> Assessment:
        notices = notices_of(counts, self.system, self.settings, unlikeness)
        del counts["english"]
        if any(notice.code in VOID for notice in notices):
            verdict = (None, None, verdict[2] if self.settings.objective.is_of_levels else {})
        return Assessment(*verdict, counts, notices, unlikeness)

    def _counts(self, features: Features) -> list[dict[str, int]]:
        """What an assessment reports of every document."""
        rows = [dict(zip(TALLIES, row, strict=True)) for row in features.tallies.tolist()]
        if isinstance(self.fitted, CountsUnseen) and "patterns" in self.system.reads:
            for counts, number in zip(rows, self.fitted.unseen_subgraphs(features.counts).tolist(), strict=True):
                counts["unseen_subgraphs"] = number
        for name in SEQUENCES:
            if name in self.system.needs:
                for counts, sequence in zip(rows, features.sequences(name), strict=True):
                    counts["read_tokens"] = int(sequence.sentences.sum())
        return rows


def share_right(objective: ObjectiveSettings, predicted: Floats, targets: Targets) -> float:
    """The share of documents whose class is predicted or, of ratings, of pairs in the right order."""
    if objective.is_of_levels:
        return float((predicted.argmax(axis=1) == targets.values).mean())
    return ordered_pairs(predicted[:, 0], targets)


def calibrated(objective: ObjectiveSettings, predicted: Floats, targets: Targets) -> Calibration:
    """How sure to be, from predictions for held-out documents; rank scores have nothing to calibrate."""
    if objective.is_of_levels:
        return Calibration.of(predicted, targets.values)
    return Calibration.of_ratings(predicted[:, 0], targets.values) if objective.kind == "rating" else Calibration()
