"""From texts to features: the one room where text and graph meet, and where features are kept."""

from cohegraph.features.document_features import (
    OF_ENCODER,
    SEQUENCES,
    SURFACE_FIGURES,
    TALLIES,
    Features,
    Material,
)
from cohegraph.features.featurizer import Featurizer, LinkedDocument, Structure, patterns_of

__all__ = [
    "OF_ENCODER",
    "SEQUENCES",
    "SURFACE_FIGURES",
    "TALLIES",
    "Features",
    "Featurizer",
    "LinkedDocument",
    "Material",
    "Structure",
    "patterns_of",
]
