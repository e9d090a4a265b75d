"""Multinomial logistic regression on figures of a document; the simplest of them on what is cheapest to have."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Annotated, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from pydantic import Field
from scipy.special import softmax

from cohegraph.errors import CohegraphError
from cohegraph.features import Features
from cohegraph.settings import Settings
from cohegraph.systems.system import ONE_VECTOR, Arrays, Graded, OnEpoch, Probabilities, StorableSystem, expect_shapes

Floats = npt.NDArray[np.floating]

_STEPS = 2_000


@dataclass(frozen=True)
class LinearModel:
    """A multinomial logistic regression that has learnt: inputs are standardised with ``mean`` and ``scale``.

    Shapes: ``coefficients`` (inputs, levels), ``intercepts`` (levels,), ``seen`` (levels,): whether training had such a
    document; the others (inputs,).
    """

    mean: Floats
    scale: Floats
    coefficients: Floats
    intercepts: Floats
    seen: npt.NDArray[np.uint8]

    @classmethod
    def fit(cls, inputs: Floats, classes: npt.NDArray[np.int64], levels: int, strength: float) -> LinearModel:
        """Minimise the penalised cross-entropy; nothing is random."""
        from sklearn.linear_model import LogisticRegression
        from sklearn.preprocessing import StandardScaler

        known = np.unique(classes)
        if len(known) < 2:
            raise CohegraphError("All training documents of a fold have the same level: use fewer folds.")
        inputs = inputs.astype(np.float64)
        scaler = StandardScaler().fit(np.where(np.isnan(inputs).all(axis=0), 0, inputs))
        regression = LogisticRegression(C=strength, max_iter=_STEPS)
        regression.fit(_known(scaler.transform(inputs)), classes)
        coefficients = np.zeros((inputs.shape[1], levels))
        intercepts = np.zeros(levels)
        # Of two levels, scikit-learn keeps the second alone: the first has zeros.
        rows = known[1:] if len(known) == 2 else known
        coefficients[:, rows], intercepts[rows] = regression.coef_.T, regression.intercept_
        seen = np.isin(np.arange(levels), known).astype(np.uint8)
        return cls(scaler.mean_, scaler.scale_, coefficients, intercepts, seen)

    @classmethod
    def restored(cls, arrays: Arrays, levels: int) -> LinearModel:
        """The model that gave these arrays."""
        inputs = len(arrays["mean"])
        expect_shapes(
            arrays,
            {
                "mean": (inputs,),
                "scale": (inputs,),
                "coefficients": (inputs, levels),
                "intercepts": (levels,),
                "seen": (levels,),
            },
        )
        if not (arrays["scale"] > 0).all():
            raise ValueError("a scale is not above 0")
        return cls(**arrays)

    @property
    def parameters(self) -> int:
        """How many numbers it has learnt."""
        return int(self.seen.sum()) * (int(self.coefficients.any(axis=1).sum()) + 1)

    def probabilities(self, inputs: Floats) -> Probabilities:
        """The probability of every level, (documents, levels)."""
        standardised = _known((inputs.astype(np.float64) - self.mean) / self.scale)
        # Row by row, so that the digits of a document do not depend on the others.
        rows = [row @ self.coefficients for row in standardised]
        logits = np.array(rows).reshape(-1, len(self.intercepts)) + self.intercepts
        return np.asarray(softmax(np.where(self.seen, logits, -np.inf), axis=1))

    def arrays(self) -> Arrays:
        """Means, scales and coefficients."""
        return {item.name: getattr(self, item.name) for item in fields(self)}


def _known(standardised: Floats) -> Floats:
    """A figure that a document does not have (NaN) is taken for the mean."""
    return np.where(np.isnan(standardised), 0.0, standardised)


@dataclass(frozen=True)
class _FittedRegression:
    model: LinearModel
    system: Regression

    @property
    def parameters(self) -> int:
        return self.model.parameters

    @property
    def chosen(self) -> Mapping[str, Any]:
        return {}

    def probabilities(self, features: Features) -> Probabilities:
        if not len(features):
            return np.zeros((0, len(self.model.intercepts)))
        return self.model.probabilities(self.system.inputs(features))

    def arrays(self) -> Arrays:
        return self.model.arrays()


@dataclass(frozen=True)
class Regression(StorableSystem):
    """Multinomial logistic regression on standardised inputs.

    Args:
        strength: scikit-learn's C: the smaller, the stronger the L2 penalty.
    """

    strength: Annotated[float, Field(ge=1e-9, le=1e9)] = 1.0

    search: ClassVar[Mapping[str, tuple[Any, ...]]] = {"strength": (0.01, 0.1, 1.0, 10.0)}

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """The settings say nothing about it."""
        return cls()

    @abstractmethod
    def inputs(self, features: Features) -> Floats:
        """What is regressed on, (documents, inputs); NaN where a document has no such figure."""

    def used(self, inputs: Floats) -> Floats:
        """The training documents' inputs with those that are not to be learnt from at 0: none."""
        return inputs

    def fit(
        self, training: Graded, dev: Graded | None, levels: int, *, seed: int, on_epoch: OnEpoch | None = None
    ) -> _FittedRegression:
        """Minimise the penalised cross-entropy; nothing is random."""
        inputs = self.used(self.inputs(training.features))
        return _FittedRegression(LinearModel.fit(inputs, training.classes, levels, self.strength), self)

    def restored(self, arrays: Arrays, levels: int) -> _FittedRegression:
        """Means, scales and coefficients."""
        return _FittedRegression(LinearModel.restored(arrays, levels), self)


@dataclass(frozen=True)
class SurfaceRegression(Regression):
    """Logistic regression on six surface figures, such as the lengths of text, sentences and words."""

    name = "surface"
    title = "Surface figures + LR"
    limits = ("It sees how long the text, its sentences and its words are, and nothing of how they connect.",)

    def inputs(self, features: Features) -> Floats:
        """The surface figures."""
        return features.surface


@dataclass(frozen=True)
class EncoderRegression(Regression):
    """Logistic regression on the encoder's document vector."""

    name = "encoder"
    title = "Encoder + LR"
    looks_at = frozenset({"vector"})
    limits = (ONE_VECTOR,)
    search: ClassVar[Mapping[str, tuple[Any, ...]]] = {"strength": (0.0003, 0.001, 0.003, 0.01, 0.03, 0.1)}

    strength: Annotated[float, Field(ge=1e-9, le=1e9)] = 0.01

    def inputs(self, features: Features) -> Floats:
        """The vector."""
        return features.array
