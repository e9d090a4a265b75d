"""The same answer for every document, the best that can be given without looking: what costs nothing."""

from dataclasses import dataclass

import numpy as np

from cohegraph.features import Features
from cohegraph.learning.objectives import Levels, Objective
from cohegraph.systems.system import Arrays, Fitted, Lesson, Predictions, System, expect_shapes


@dataclass(frozen=True)
class _Constant(Fitted):
    answer: Predictions
    parameters = 0

    def predict(self, features: Features) -> Predictions:
        return np.tile(self.answer, (len(features), 1))

    def arrays(self) -> Arrays:
        return {"shares": self.answer}


@dataclass(frozen=True)
class Majority(System):
    """Gives every level its share in training; where ratings are learnt, their mean."""

    name = "majority"
    title = "Majority"
    limits = ("It does not look at the text: every text gets the same answer.",)

    def fit(self, lesson: Lesson) -> _Constant:
        """Count."""
        targets, outputs = lesson.training.targets, lesson.objective.outputs
        values, weights = targets.values, targets.all_weights
        if isinstance(lesson.objective, Levels):
            return _Constant(lesson.objective, np.bincount(values, weights, outputs) / weights.sum())
        return _Constant(lesson.objective, np.full(outputs, np.average(values, weights=weights)))

    def restored(self, arrays: Arrays, objective: Objective) -> _Constant:
        """The shares."""
        expect_shapes(arrays, {"shares": "outputs"}, outputs=objective.outputs)
        shares = arrays["shares"]
        if shares.min() < 0 or (isinstance(objective, Levels) and not np.isclose(shares.sum(), 1)):
            raise ValueError("the shares are none")
        return _Constant(objective, shares)
