"""From what a system predicts to levels, scores and probabilities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from cohegraph.learning.calibration import Calibration
from cohegraph.model.rank_scale import RankScale
from cohegraph.settings import ObjectiveSettings

Floats = npt.NDArray[np.float64]


class Verdict(NamedTuple):
    """The level of a document, its score from 0 to 100, and the probability of every level from the lowest on."""

    level: Any
    score: float | None
    probabilities: dict[Any, float]


@dataclass(frozen=True)
class Judge:
    """Turns predictions into verdicts.

    Args:
        objective: What was learnt.
        classes: The labels as sorted, in the order of the predictions' columns; empty where ratings were learnt.
        levels: The levels from the lowest to the highest.
        ordered: Whether that order is known.
        calibration: How sure to be.
        scale: The scale of rank scores, where a ranking was learnt.
    """

    objective: ObjectiveSettings
    classes: npt.NDArray[Any]
    levels: list[Any]
    ordered: bool
    calibration: Calibration
    scale: RankScale | None

    def verdicts(self, predicted: Floats) -> list[Verdict]:
        """A verdict for every row of predictions."""
        if self.objective.is_of_levels:
            return [self._of_probabilities(row) for row in self.calibration(predicted)]
        return [self._of_share(share) for share in self.shares(predicted).tolist()]

    def shares(self, predicted: Floats) -> Floats:
        """Ratings or rank scores as shares of the range, from 0 to 1."""
        return predicted[:, 0] if self.scale is None else self.scale(predicted[:, 0])

    def _of_probabilities(self, row: Floats) -> Verdict:
        by_class = dict(zip(self.classes.tolist(), row.tolist(), strict=True))
        probabilities = {level: by_class[level] for level in self.levels}
        expected = sum(number * one for number, one in enumerate(probabilities.values()))
        score = 100 * expected / (len(probabilities) - 1) if self.ordered else None
        return Verdict(self.classes[row.argmax()].item(), score, probabilities)

    def _of_share(self, share: float) -> Verdict:
        thresholds = self.objective.thresholds
        level = self.levels[int(np.searchsorted(thresholds, share, side="right"))]
        probabilities = self.calibration.of_levels(share, thresholds)
        return Verdict(level, 100 * share, dict(zip(self.levels, probabilities, strict=True)) if probabilities else {})
