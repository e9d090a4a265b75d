"""Linear models on figures of a document; the simplest of them on what is cheapest to have."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Annotated, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from pydantic import Field

from cohegraph.errors import CohegraphError
from cohegraph.features import Features
from cohegraph.learning.objectives import Objective, Targets
from cohegraph.settings import Settings
from cohegraph.systems.system import ONE_VECTOR, Arrays, Lesson, Predictions, System, expect_shapes

Floats = npt.NDArray[np.floating]

_STEPS = 2_000


@dataclass(frozen=True)
class LinearModel:
    """A linear model that has learnt: inputs are standardised with ``mean`` and ``scale``.

    Shapes: ``coefficients`` (inputs, outputs), ``intercepts`` (outputs,), ``seen`` (outputs,): whether training had
    such a document; the others (inputs,).
    """

    mean: Floats
    scale: Floats
    coefficients: Floats
    intercepts: Floats
    seen: npt.NDArray[np.uint8]

    @classmethod
    def fit(cls, inputs: Floats, lesson: Lesson, strength: float) -> LinearModel:
        """Minimise the penalised loss of the lesson's objective; nothing is random."""
        from sklearn.preprocessing import StandardScaler

        objective, targets = lesson.objective, lesson.training.targets
        seen = lesson.seen
        if objective.outputs > 1 and seen.sum() < 2:
            raise CohegraphError("All training documents of a fold have the same level: use fewer folds.")
        inputs = inputs.astype(np.float64)
        scaler = StandardScaler().fit(np.where(np.isnan(inputs).all(axis=0), 0, inputs))
        standardised = _known(scaler.transform(inputs))
        fit = _logistic if objective.kind == "levels" else _by_gradients
        coefficients, intercepts = fit(standardised, targets, objective, strength)
        return cls(scaler.mean_, scaler.scale_, coefficients, intercepts, seen)

    @classmethod
    def restored(cls, arrays: Arrays, objective: Objective) -> LinearModel:
        """The model that gave these arrays."""
        inputs, outputs = len(arrays["mean"]), objective.outputs
        expect_shapes(
            arrays,
            {
                "mean": (inputs,),
                "scale": (inputs,),
                "coefficients": (inputs, outputs),
                "intercepts": (outputs,),
                "seen": (outputs,),
            },
        )
        if not (arrays["scale"] > 0).all():
            raise ValueError("a scale is not above 0")
        return cls(**arrays)

    @property
    def parameters(self) -> int:
        """How many numbers it has learnt."""
        return int(self.seen.sum()) * (int(self.coefficients.any(axis=1).sum()) + 1)

    def outputs(self, inputs: Floats) -> Floats:
        """The outputs of documents, (documents, outputs)."""
        standardised = _known((inputs.astype(np.float64) - self.mean) / self.scale)
        # Row by row, so that the digits of a document do not depend on the others.
        rows = [row @ self.coefficients for row in standardised]
        outputs = np.array(rows).reshape(-1, len(self.intercepts)) + self.intercepts
        return np.where(self.seen, outputs, -np.inf)

    def arrays(self) -> Arrays:
        """Means, scales and coefficients."""
        return {item.name: getattr(self, item.name) for item in fields(self)}


def _known(standardised: Floats) -> Floats:
    """A figure that a document does not have (NaN) is taken for the mean."""
    return np.where(np.isnan(standardised), 0.0, standardised)


def _logistic(inputs: Floats, targets: Targets, objective: Objective, strength: float) -> tuple[Floats, Floats]:
    """Coefficients and intercepts of scikit-learn's multinomial logistic regression."""
    from sklearn.linear_model import LogisticRegression

    regression = LogisticRegression(C=strength, max_iter=_STEPS)
    regression.fit(inputs, targets.values)
    known = np.unique(targets.values)
    coefficients, intercepts = np.zeros((inputs.shape[1], objective.outputs)), np.zeros(objective.outputs)
    # Of two levels, scikit-learn keeps the second alone: the first has zeros.
    rows = known[1:] if len(known) == 2 else known
    coefficients[:, rows], intercepts[rows] = regression.coef_.T, regression.intercept_
    return coefficients, intercepts


def _by_gradients(inputs: Floats, targets: Targets, objective: Objective, strength: float) -> tuple[Floats, Floats]:
    """The same for any objective: L-BFGS on its loss with the penalty of a logistic regression."""
    import torch

    matrix = torch.from_numpy(inputs)
    coefficients = torch.zeros(inputs.shape[1], objective.outputs, dtype=torch.float64, requires_grad=True)
    intercepts = torch.zeros(objective.outputs, dtype=torch.float64, requires_grad=True)
    loss = objective.loss(targets, torch.float64)
    optimizer = torch.optim.LBFGS(
        [coefficients, intercepts],
        max_iter=_STEPS,
        tolerance_grad=1e-9,
        tolerance_change=1e-14,
        line_search_fn="strong_wolfe",
    )

    def penalised() -> float:
        optimizer.zero_grad()
        found = loss(matrix @ coefficients + intercepts) + (coefficients**2).sum() / (2 * strength * len(matrix))
        found.backward()
        return found.item()

    optimizer.step(penalised)
    return coefficients.detach().numpy(), intercepts.detach().numpy()


@dataclass(frozen=True)
class _FittedRegression:
    model: LinearModel
    system: Regression
    objective: Objective

    @property
    def parameters(self) -> int:
        return self.model.parameters

    @property
    def chosen(self) -> Mapping[str, Any]:
        return {}

    def predict(self, features: Features) -> Predictions:
        if not len(features):
            return np.zeros((0, self.objective.outputs))
        return self.objective.predictions(self.model.outputs(self.system.inputs(features)))

    def arrays(self) -> Arrays:
        return self.model.arrays()


@dataclass(frozen=True)
class Regression(System):
    """A linear model on standardised inputs: multinomial logistic regression where levels are learnt.

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

    def fit(self, lesson: Lesson) -> _FittedRegression:
        """Minimise the penalised loss; nothing is random."""
        inputs = self.used(self.inputs(lesson.training.features))
        return _FittedRegression(LinearModel.fit(inputs, lesson, self.strength), self, lesson.objective)

    def restored(self, arrays: Arrays, objective: Objective) -> _FittedRegression:
        """Means, scales and coefficients."""
        return _FittedRegression(LinearModel.restored(arrays, objective), self, objective)


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
