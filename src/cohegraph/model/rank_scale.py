"""From the scores of a model that ranks, which have no scale, to shares of documents."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
_ARRAY = "rank_scale"
_STEPS = 101


@dataclass(frozen=True)
class RankScale:
    """The rank scores of training documents, as their percentiles, (101,)."""

    percentiles: Floats

    @classmethod
    def of(cls, scores: Floats) -> Self:
        """The scale of documents with these rank scores."""
        return cls(np.quantile(scores, np.linspace(0, 1, _STEPS)))

    def __call__(self, scores: Floats) -> Floats:
        """The share of the training documents that is ranked lower, for each score."""
        first, end = (np.searchsorted(self.percentiles, scores, side=side) for side in ("left", "right"))
        between = np.interp(scores, self.percentiles, np.linspace(0, 1, _STEPS))
        # Of many training documents with this very score, half count as ranked lower.
        tied = (first + end - 1) / (2 * (_STEPS - 1))
        return np.where(end - first > 1, tied, between)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """What a model saves of it."""
        return {_ARRAY: self.percentiles}

    @classmethod
    def taken_from(cls, arrays: dict[str, npt.NDArray[Any]]) -> Self | None:
        """Take what `arrays` gave out of others; a ValueError where it is not whole."""
        found = arrays.pop(_ARRAY, None)
        if found is None:
            return None
        if found.shape != (_STEPS,) or (np.diff(found) < 0).any():
            raise ValueError("the scale of its ranks is not one")
        return cls(found)
