"""From texts to features: the one place where text and graph meet, and where features are kept."""

from cohegraph.features.document_features import SEQUENCES, SURFACE_FIGURES, TALLIES, Features, Material
from cohegraph.features.featurizer import OF_LINKER, Featurizer, LinkedDocument, patterns_of

__all__ = [
    "OF_LINKER",
    "SEQUENCES",
    "SURFACE_FIGURES",
    "TALLIES",
    "Features",
    "Featurizer",
    "LinkedDocument",
    "Material",
    "patterns_of",
]
