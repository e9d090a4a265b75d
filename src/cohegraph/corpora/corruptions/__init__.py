"""Corrupted versions of coherent texts, with known locations of the damage.

`corrupt` makes one pair of an original and a corrupted version from a `Piece`. Both have the same number of sentences,
nearly the same length and the same white space between sentences. Each sentence knows its origin, from which the broken
boundaries follow.
"""

from cohegraph.corpora.corruptions.donors import DonorPool, SimilarSentences
from cohegraph.corpora.corruptions.kinds import KINDS, Kind, chosen, corrupt, equally_often, is_similar, versions_of
from cohegraph.corpora.corruptions.pieces import Piece
from cohegraph.corpora.corruptions.versions import Corruption, Origin, Placed, Version

__all__ = [
    "KINDS",
    "Corruption",
    "DonorPool",
    "Kind",
    "Origin",
    "Piece",
    "Placed",
    "SimilarSentences",
    "Version",
    "chosen",
    "corrupt",
    "equally_often",
    "is_similar",
    "versions_of",
]
