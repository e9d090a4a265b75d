"""Logistic regression on what is cheapest to have: surface figures, or the encoder's vector."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from cohegraph.errors import CohegraphError
from cohegraph.features import Features
from cohegraph.settings import Settings
from cohegraph.systems.system import Graded, OnEpoch, Probabilities, System, spread

_STEPS = 2_000


@dataclass(frozen=True)
class _FittedRegression:
    pipeline: Pipeline
    system: _Regression
    levels: int

    @property
    def parameters(self) -> int:
        regression = self.pipeline[-1]
        return int(regression.coef_.size + regression.intercept_.size)

    @property
    def chosen(self) -> Mapping[str, Any]:
        return {}

    def probabilities(self, features: Features) -> Probabilities:
        shares = self.pipeline.predict_proba(self.system.inputs(features))
        return spread(shares, self.pipeline.classes_, self.levels)


@dataclass(frozen=True)
class _Regression(System):
    """Multinomial logistic regression on standardised inputs.

    Args:
        strength: scikit-learn's C: the smaller, the stronger the L2 penalty.
    """

    strength: float = 1.0

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """The settings say nothing about it."""
        return cls()

    @abstractmethod
    def inputs(self, features: Features) -> npt.NDArray[np.floating]:
        """What is regressed on."""

    def fit(
        self, training: Graded, dev: Graded | None, levels: int, *, seed: int, on_epoch: OnEpoch | None = None
    ) -> _FittedRegression:
        """Minimise the penalised cross-entropy; nothing is random."""
        if len(np.unique(training.classes)) < 2:
            raise CohegraphError("All training documents of a fold have the same level: use fewer folds.")
        pipeline = make_pipeline(StandardScaler(), LogisticRegression(C=self.strength, max_iter=_STEPS))
        pipeline.fit(self.inputs(training.features).astype(np.float64), training.classes)
        return _FittedRegression(pipeline, self, levels)


@dataclass(frozen=True)
class SurfaceRegression(_Regression):
    """On six surface figures: how long the text is, and what its words and sentences look like."""

    name = "surface"
    title = "Surface figures + LR"
    search: ClassVar[Mapping[str, tuple[Any, ...]]] = {"strength": (0.01, 0.1, 1.0, 10.0)}

    def inputs(self, features: Features) -> npt.NDArray[np.floating]:
        """The surface figures."""
        return features.surface


@dataclass(frozen=True)
class EncoderRegression(_Regression):
    """On the encoder's document vector."""

    name = "encoder"
    title = "Encoder + LR"
    search: ClassVar[Mapping[str, tuple[Any, ...]]] = {"strength": (0.0003, 0.001, 0.003, 0.01, 0.03, 0.1)}

    def inputs(self, features: Features) -> npt.NDArray[np.floating]:
        """The vector."""
        return features.vectors
