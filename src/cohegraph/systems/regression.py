"""Linear models on figures of a document; the simplest of them on what is cheapest to have."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, ClassVar, Self

import numpy as np
import numpy.typing as npt
from pydantic import Field

from cohegraph.errors import CohegraphError
from cohegraph.features import Features
from cohegraph.learning.objectives import Objective, Targets
from cohegraph.systems.system import ONE_VECTOR, Arrays, Fitted, Lesson, Predictions, Search, System, expect_shapes

Floats = npt.NDArray[np.floating]
Strength = Annotated[float, Field(ge=1e-9, le=1e9)]

_STEPS = 2_000


@dataclass(frozen=True)
class LinearModel(Fitted):
    """A linear model that has learnt: inputs are standardised with ``mean`` and ``scale``.

    Shapes: ``coefficients`` (inputs, outputs), ``intercepts`` (outputs,), ``seen`` (outputs,): whether training had
    such a document; the others (inputs,).
    """

    inputs: Callable[[Features], Floats]
    mean: Floats
    scale: Floats
    coefficients: Floats
    intercepts: Floats
    seen: npt.NDArray[np.uint8]
    farthest: float | None = None

    @classmethod
    def fit(
        cls,
        matrix: Floats,
        lesson: Lesson,
        strength: float,
        inputs: Callable[[Features], Floats],
        importance: Floats | None = None,
        farthest: float | None = None,
    ) -> Self:
        """Minimise the penalised loss of the lesson's objective; nothing is random.

        Args:
            matrix: The inputs of the training documents, (documents, inputs).
            lesson: What to learn.
            strength: scikit-learn's C: the smaller, the stronger the L2 penalty.
            inputs: What gives the inputs of other documents.
            importance: What every input is multiplied with once it is standardised, (inputs,): the smaller, the
                stronger its penalty; by default 1.
            farthest: Beyond so many standard deviations, an input no longer changes the answer.
        """
        from sklearn.preprocessing import StandardScaler

        objective, seen = lesson.objective, lesson.seen
        if objective.outputs > 1 and seen.sum() < 2:
            raise CohegraphError(
                "All training documents of a fold have the same level: use fewer folds.", code="one-level"
            )
        matrix = matrix.astype(np.float64)
        scaler = StandardScaler().fit(np.where(np.isnan(matrix).all(axis=0), 0, matrix))
        fit = _logistic if objective.kind == "levels" else _by_gradients
        standardised = _known(scaler.transform(matrix), farthest)
        importance = np.ones(matrix.shape[1]) if importance is None else importance
        coefficients, intercepts = fit(standardised * importance, lesson.training.targets, objective, strength)
        coefficients = coefficients * importance[:, None]
        return cls(objective, inputs, scaler.mean_, scaler.scale_, coefficients, intercepts, seen, farthest)

    @classmethod
    def restored(
        cls,
        arrays: Arrays,
        objective: Objective,
        inputs: Callable[[Features], Floats],
        farthest: float | None = None,
    ) -> Self:
        """The model that gave these arrays."""
        shapes = {"mean": "inputs", "scale": "inputs", "coefficients": "inputs outputs"}
        shapes |= {"intercepts": "outputs", "seen": "outputs"}
        expect_shapes(arrays, shapes, outputs=objective.outputs)
        if not (arrays["scale"] > 0).all():
            raise ValueError("a scale is not above 0")
        mean, scale, coefficients, intercepts, seen = (arrays[name] for name in shapes)
        return cls(objective, inputs, mean, scale, coefficients, intercepts, seen, farthest)

    @property
    def parameters(self) -> int:
        """How many numbers it has learnt."""
        return int(self.seen.sum()) * (int(self.coefficients.any(axis=1).sum()) + 1)

    def predict(self, features: Features) -> Predictions:
        """Row by row, so that the digits of a document do not depend on the others."""
        if not len(features):
            return np.zeros((0, self.objective.outputs))
        standardised = _known((self.inputs(features).astype(np.float64) - self.mean) / self.scale, self.farthest)
        outputs = np.array([row @ self.coefficients for row in standardised]) + self.intercepts
        return self.objective.predictions(np.where(self.seen, outputs, -np.inf))


def _known(standardised: Floats, farthest: float | None) -> Floats:
    """A figure that a document does not have (NaN) is taken for the mean, one that is too far away for the farthest."""
    known = np.where(np.isnan(standardised), 0.0, standardised)
    return known if farthest is None else known.clip(-farthest, farthest)


def _logistic(inputs: Floats, targets: Targets, objective: Objective, strength: float) -> tuple[Floats, Floats]:
    """Coefficients and intercepts of scikit-learn's multinomial logistic regression."""
    from sklearn.linear_model import LogisticRegression

    regression = LogisticRegression(C=strength, max_iter=_STEPS)
    regression.fit(inputs, targets.values, targets.weights)
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
class Regression(System):
    """A linear model on standardised inputs: multinomial logistic regression where levels are learnt.

    Args:
        strength: scikit-learn's C: the smaller, the stronger the L2 penalty.
    """

    strength: Strength = 1.0

    search: ClassVar[Search] = {"strength": (0.01, 0.1, 1.0, 10.0)}
    # Beyond so many standard deviations, an input no longer changes the answer.
    farthest: ClassVar[float | None] = None

    @abstractmethod
    def inputs(self, features: Features) -> Floats:
        """What is regressed on, (documents, inputs); NaN where a document has no such figure."""

    def used(self, inputs: Floats) -> Floats:
        """The training documents' inputs with those that are not to be learnt from at 0: none."""
        return inputs

    def importance(self, inputs: int) -> Floats:
        """What every input is multiplied with once it is standardised, (inputs,): the same for all."""
        return np.ones(inputs)

    def fit(self, lesson: Lesson) -> LinearModel:
        """Minimise the penalised loss; nothing is random."""
        matrix = self.used(self.inputs(lesson.training.features))
        importance = self.importance(matrix.shape[1])
        return LinearModel.fit(matrix, lesson, self.strength, self.inputs, importance, self.farthest)

    def restored(self, arrays: Arrays, objective: Objective) -> LinearModel:
        """Means, scales and coefficients."""
        return LinearModel.restored(arrays, objective, self.inputs, self.farthest)


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
    search: ClassVar[Search] = {"strength": (0.0003, 0.001, 0.003, 0.01, 0.03, 0.1)}

    strength: Strength = 0.01

    def inputs(self, features: Features) -> Floats:
        """The vector."""
        return features.array
