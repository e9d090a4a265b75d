r"""How sure a model may be, from documents that it has not learnt from.

Probabilities of levels have one temperature,

.. math:: p_T = softmax(\log p / T)

A temperature above 1 makes a model less sure, one below 1 surer; which level is the most probable never changes. It is
the one under which the levels of the held-out documents are most likely (Guo et al. 2017).

A rating has a spread, the root mean square of its errors. The probability of a level is that of a normal distribution
with this spread around the predicted rating, between the two thresholds of the level.
"""

from collections.abc import Sequence
from typing import Self

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, Field
from scipy.special import log_softmax, ndtr, softmax

Floats = npt.NDArray[np.float64]
# Held-out documents that are all right, or all wrong, would ask for a temperature of nothing, or of infinity.
_LOWEST, _HIGHEST = 0.1, 20.0
# Fewer held-out documents than this say less about a temperature than the rule that it is 1.
FEWEST_DOCUMENTS = 20
_SMALLEST = np.finfo(np.float64).tiny


class Calibration(BaseModel):
    """A temperature or a spread, how many held-out documents it was fitted on, and their mean log loss around it.

    Without documents the temperature is 1, and probabilities are the model's own.
    """

    model_config = ConfigDict(frozen=True, strict=True, allow_inf_nan=False)

    temperature: float = Field(1.0, gt=0)
    documents: int = Field(0, ge=0)
    log_loss_before: float | None = None
    log_loss: float | None = None
    spread: float | None = Field(None, gt=0)

    @classmethod
    def of(cls, probabilities: Floats, codes: npt.NDArray[np.integer]) -> Self:
        """The calibration for a model that gave held-out documents of these classes these probabilities."""
        from scipy.optimize import minimize_scalar  # slow to import, and loading a model does not need it

        if len(codes) < FEWEST_DOCUMENTS:
            return cls()
        logs, rows = _logs(probabilities), np.arange(len(codes))

        def loss(log_temperature: float) -> float:
            return float(-log_softmax(logs / np.exp(log_temperature), axis=1)[rows, codes].mean())

        found = minimize_scalar(loss, bounds=(np.log(_LOWEST), np.log(_HIGHEST)), method="bounded")
        temperature, after = float(np.exp(found.x)), float(found.fun)
        return cls(temperature=temperature, documents=len(codes), log_loss_before=loss(0.0), log_loss=after)

    @classmethod
    def of_ratings(cls, predicted: Floats, ratings: Floats) -> Self:
        """The calibration for a model that predicted these ratings of held-out documents."""
        if len(ratings) < FEWEST_DOCUMENTS:
            return cls()
        error = float(np.sqrt(np.mean((predicted - ratings) ** 2)))
        return cls(documents=len(ratings), spread=max(error, 1e-6))

    def __call__(self, probabilities: Floats) -> Floats:
        """Calibrated probabilities; the model's own, digit by digit, where there was nothing to calibrate with."""
        if not self.documents:
            return probabilities
        return np.asarray(softmax(_logs(probabilities) / self.temperature, axis=1))

    def of_levels(self, rating: float, thresholds: Sequence[float]) -> list[float]:
        """The probability of every level of a document with this predicted rating; none where the spread is unknown."""
        if self.spread is None:
            return []
        below: Floats = ndtr((np.array([*thresholds, np.inf]) - rating) / self.spread)
        return [float(one) for one in np.diff(below, prepend=0.0)]


def _logs(probabilities: Floats) -> Floats:
    return np.asarray(np.log(np.maximum(probabilities, _SMALLEST)))
