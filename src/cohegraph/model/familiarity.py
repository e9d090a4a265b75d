r"""How unlike its training documents a document is, so that a model can say when it is asked about what it never saw.

Training documents are taken for draws from a normal distribution: their vectors and surface figures vary freely along
the main directions, and evenly in all others (probabilistic principal components, Tipping and Bishop 1999). The
distance of a document is that of Mahalanobis,

.. math:: \sqrt{ \sum_i \frac{(u_i \cdot (x - \mu))^2}{\lambda_i} + \frac{\lVert r \rVert^2}{\sigma^2} }

with r what the main directions leave of it. The threshold is stated, not felt: 99 % of the training documents are
nearer when they are held out.
"""

from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from cohegraph.features import SURFACE_FIGURES, Features

Floats = npt.NDArray[np.floating]
NEARER = 0.99
FEWEST_DOCUMENTS = 20
# More would not tell it better; of more, as many are taken at equal distances.
_MOST_DOCUMENTS = 20_000
_FOLDS = 5
_MOST_DIRECTIONS = 32
# A text a hundred times longer than all others is as strange as one ten times longer.
_FARTHEST = 10.0


@dataclass(frozen=True)
class Familiarity:
    """The distribution of training documents.

    Shapes, with D numbers a document: ``centre`` and ``scale`` (D,), ``directions`` (r, D), ``variances`` (r,), and
    ``limits`` (2,): the variance along all other directions, and the distance that 99 % of documents stay within.
    """

    centre: Floats
    scale: Floats
    directions: Floats
    variances: Floats
    limits: Floats

    @classmethod
    def of(cls, training: Features) -> Self | None:
        """The distribution of these documents; nothing where there are too few of them to tell."""
        if len(training) < FEWEST_DOCUMENTS:
            return None
        if len(training) > _MOST_DOCUMENTS:
            training = training[np.linspace(0, len(training) - 1, _MOST_DOCUMENTS).astype(np.int64)]
        numbers = _numbers(training)
        fold = np.arange(len(numbers)) % _FOLDS
        held_out = [_distances(numbers[fold == one], *_distribution(numbers[fold != one])) for one in range(_FOLDS)]
        *distribution, rest = _distribution(numbers)
        limits = np.array([rest, np.quantile(np.concatenate(held_out), NEARER)])
        return cls(*(array.astype(np.float32) for array in (*distribution, limits)))

    def unlikeness(self, features: Features) -> Floats:
        """The distance of each document by the threshold: above 1, it is unlike what the model learnt from."""
        rest, limit = self.limits
        numbers, distribution = _numbers(features), (self.centre, self.scale, self.directions, self.variances)
        # Each by itself: a product of matrices may round differently in other company.
        distances = [_distances(numbers[row : row + 1], *distribution, float(rest)) for row in range(len(numbers))]
        return np.concatenate([np.zeros(0), *distances]) / max(float(limit), 1e-6)

    @property
    def dimensions(self) -> int:
        """How long the vectors of documents are."""
        return len(self.centre) - len(SURFACE_FIGURES)

    def arrays(self) -> dict[str, Floats]:
        """What a model saves of it."""
        return {f"familiar_{name}": array for name, array in vars(self).items()}

    @classmethod
    def taken_from(cls, arrays: dict[str, npt.NDArray[Any]]) -> Self | None:
        """Take what `arrays` gave out of others; a ValueError where it is not whole."""
        names = [f"familiar_{item.name}" for item in fields(cls)]
        found = [arrays.pop(name) for name in names if name in arrays]
        if not found:
            return None
        if len(found) < len(names):
            raise ValueError("the distribution of the training documents is not whole")
        made, size, directions = cls(*found), found[0].size, len(np.atleast_1d(found[3]))
        shapes = ((size,), (size,), (directions, size), (directions,), (2,))
        if any(array.shape != shape for array, shape in zip(found, shapes, strict=True)):
            raise ValueError("the distribution of the training documents has other shapes")
        if min(made.scale.min(), made.limits[0], made.variances.min(initial=1)) <= 0:
            raise ValueError("the distribution of the training documents has no width")
        return made


def _numbers(features: Features) -> npt.NDArray[np.float64]:
    return np.hstack([features.array.astype(np.float64), features.surface])


def _distribution(numbers: npt.NDArray[np.float64]) -> tuple[Any, ...]:
    """Centre, scale, main directions, the variances along them, and the variance along each other direction."""
    centre = numbers.mean(axis=0)
    spread = numbers.std(axis=0)
    # One scale for the whole vector, which has directions of its own, and one for each surface figure.
    scale = np.where(spread > 0, spread, 1.0)
    vector = slice(0, len(scale) - len(SURFACE_FIGURES))
    scale[vector] = np.sqrt((spread[vector] ** 2).mean()) or 1.0
    standard = (numbers - centre) / scale
    variances, directions = np.linalg.eigh(standard.T @ standard / len(standard))
    kept = min(_MOST_DIRECTIONS, len(numbers) // 4, len(scale) // 2)
    rest = max(float(variances[:-kept].clip(0).mean()), 1e-6)
    main = directions[:, ::-1][:, :kept].T
    return centre, scale, main, variances[::-1][:kept].clip(rest), rest


def _distances(
    numbers: npt.NDArray[np.float64], centre: Floats, scale: Floats, directions: Floats, variances: Floats, rest: float
) -> npt.NDArray[np.float64]:
    standard = (numbers - centre) / scale
    standard[:, -len(SURFACE_FIGURES) :] = standard[:, -len(SURFACE_FIGURES) :].clip(-_FARTHEST, _FARTHEST)
    along = standard @ directions.T
    beside = np.maximum((standard**2).sum(axis=1) - (along**2).sum(axis=1), 0)
    return np.asarray(np.sqrt((along**2 / variances).sum(axis=1) + beside / rest))
