"""Step 5: what document nodes carry into the first layer."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from cohegraph.features import SURFACE_FIGURES, Features
from cohegraph.features.mapped_vectors import MappedVectors

Floats = npt.NDArray[np.float64]
# A text a hundred times longer than all training texts says no more than a very long one.
_FARTHEST = 3.0


@dataclass(frozen=True)
class DocumentInputs:
    """The encoder's vector and, where ``weight`` is not 0, the surface figures beside it.

    The figures are standardised with ``mean`` and ``scale`` of the training documents, cut at three standard
    deviations, and multiplied with ``weight``.
    """

    weight: float = 0.0
    mean: Floats = field(default_factory=lambda: np.zeros(len(SURFACE_FIGURES)))
    scale: Floats = field(default_factory=lambda: np.ones(len(SURFACE_FIGURES)))

    @classmethod
    def of(cls, training: Features, weight: float) -> Self:
        """Inputs for a model that learns from these documents."""
        if weight == 0:
            return cls()
        surface = training.surface
        deviation = surface.std(axis=0)
        return cls(weight, surface.mean(axis=0), np.where(deviation > 0, deviation, 1.0))

    @classmethod
    def restored(cls, arrays: Mapping[str, npt.NDArray[Any]], weight: float) -> Self:
        """The inputs that gave these arrays."""
        if weight == 0:
            return cls()
        mean, scale = (arrays[name] for name in ("surface_mean", "surface_scale"))
        if scale.min() <= 0:
            raise ValueError("the surface figures have no spread")
        return cls(weight, mean, scale)

    def arrays(self) -> dict[str, Floats]:
        """What is kept of the training documents, if surface figures are used."""
        return {"surface_mean": self.mean, "surface_scale": self.scale} if self.weight else {}

    def __call__(self, features: Features) -> npt.NDArray[np.float32]:
        """The inputs of documents, (documents, dimensions)."""
        return np.asarray(self.mapped(features))

    def mapped(self, features: Features) -> npt.NDArray[np.float32] | MappedVectors:
        """The same, on disk as far as the documents' vectors are."""
        if self.weight == 0:
            return features.vectors
        surface = (features.surface - self.mean) / self.scale
        beside = (self.weight * np.clip(surface, -_FARTHEST, _FARTHEST)).astype(np.float32)
        if isinstance(features.vectors, MappedVectors):
            return features.vectors.with_beside(beside)
        return np.hstack([features.vectors, beside])
