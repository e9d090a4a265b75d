"""The same answer for every document, the best that can be given without looking: what costs nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from cohegraph.features import Features
from cohegraph.learning.objectives import Levels, Objective
from cohegraph.settings import Settings
from cohegraph.systems.system import Arrays, Lesson, Predictions, System, expect_shapes


@dataclass(frozen=True)
class _Constant:
    answer: Predictions
    parameters: int = 0

    @property
    def chosen(self) -> Mapping[str, Any]:
        return {}

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

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """There is nothing to set."""
        return cls()

    def fit(self, lesson: Lesson) -> _Constant:
        """Count."""
        values, outputs = lesson.training.targets.values, lesson.objective.outputs
        if isinstance(lesson.objective, Levels):
            return _Constant(np.bincount(values, minlength=outputs) / len(values))
        return _Constant(np.full(outputs, values.mean()))

    def restored(self, arrays: Arrays, objective: Objective) -> _Constant:
        """The shares."""
        expect_shapes(arrays, {"shares": (objective.outputs,)})
        shares = arrays["shares"]
        if shares.min() < 0 or (isinstance(objective, Levels) and not np.isclose(shares.sum(), 1)):
            raise ValueError("the shares are none")
        return _Constant(shares)
