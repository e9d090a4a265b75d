r"""How sure a model may be: one temperature for all its probabilities, fitted on documents it has not learnt from.

.. math:: p_T = softmax(\log p / T)

A temperature above 1 makes a model less sure, one below 1 surer; which level is the most probable never changes. The
one that makes the levels of the held-out documents most likely is taken (Guo et al. 2017).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, Field
from scipy.special import log_softmax, softmax

Floats = npt.NDArray[np.float64]
# Held-out documents that are all right, or all wrong, would ask for a temperature of nothing, or of infinity.
_LOWEST, _HIGHEST = 0.1, 20.0
# Fewer held-out documents than this say less about a temperature than the rule that it is 1.
FEWEST_DOCUMENTS = 20
_SMALLEST = np.finfo(np.float64).tiny


class Calibration(BaseModel):
    """A temperature, how many held-out documents it was fitted on, and their mean log loss without and with it.

    Without documents it is 1, and probabilities are the model's own.
    """

    model_config = ConfigDict(frozen=True, strict=True, allow_inf_nan=False)

    temperature: float = Field(1.0, gt=0)
    documents: int = Field(0, ge=0)
    log_loss_before: float | None = None
    log_loss: float | None = None

    @classmethod
    def of(cls, probabilities: Floats, codes: npt.NDArray[np.integer]) -> Calibration:
        """The calibration for a model that gave held-out documents of these classes these probabilities."""
        from scipy.optimize import minimize_scalar  # slow to import, and loading a model does not need it

        if len(codes) < FEWEST_DOCUMENTS:
            return cls()
        logs, rows = _logs(probabilities), np.arange(len(codes))

        def loss(log_temperature: float) -> float:
            return float(-log_softmax(logs / np.exp(log_temperature), axis=1)[rows, codes].mean())

        found = minimize_scalar(loss, bounds=(np.log(_LOWEST), np.log(_HIGHEST)), method="bounded")
        return cls(
            temperature=float(np.exp(found.x)),
            documents=len(codes),
            log_loss_before=loss(0.0),
            log_loss=float(found.fun),
        )

    def __call__(self, probabilities: Floats) -> Floats:
        """Calibrated probabilities; the model's own, digit by digit, where there was nothing to calibrate with."""
        if not self.documents:
            return probabilities
        return np.asarray(softmax(_logs(probabilities) / self.temperature, axis=1))


def _logs(probabilities: Floats) -> Floats:
    return np.asarray(np.log(np.maximum(probabilities, _SMALLEST)))
