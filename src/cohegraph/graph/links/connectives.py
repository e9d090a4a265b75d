"""Links by discourse connectives: a sentence that begins with "However" takes up the one before it."""

from collections.abc import Sequence

import numpy as np

from cohegraph.graph.links.linker import Linker
from cohegraph.graph.links.links import FloatArray
from cohegraph.settings import LinkSettings
from cohegraph.text.connectives import SENSES, Connective, connectives_of
from cohegraph.text.document import Document

# These words are often used without much meaning.
_LESS_CLEAR = frozenset({"and", "or", "so", "then", "also", "too", "again", "first", "now", "well"})
_CLEAR_STRENGTH, _LESS_CLEAR_STRENGTH = 1.0, 0.75


class ConnectiveLinker(Linker):
    """Links a sentence to the previous one if it has a connective that looks back; the kind is the sense."""

    name = "connective"
    about = "a sentence has a connective, such as however or as a result, that looks back to the previous sentence"

    @classmethod
    def kinds_of(cls, settings: LinkSettings) -> tuple[str, ...]:
        """The senses of connectives."""
        return SENSES

    def strengths(self, document: Document, sources: Sequence[int], targets: Sequence[int]) -> FloatArray:
        """The strength of the connective between neighbours, 0 elsewhere."""
        found = np.zeros((len(sources), len(targets)), dtype=np.float32)
        place = {sentence: column for column, sentence in enumerate(targets)}
        for row, sentence in enumerate(sources):
            for other in (sentence - 1, sentence + 1):
                connective = _looking_back(document, max(sentence, other)) if other in place else None
                if connective is not None:
                    found[row, place[other]] = _strength(connective)
        return found

    def words(self, document: Document, source: int, target: int) -> tuple[int, int, int, int]:
        """The connective, in the target."""
        connective = _looking_back(document, target)
        return (-1, -1, -1, -1) if connective is None else (-1, -1, connective.start, connective.end)

    def kind(self, document: Document, source: int, target: int) -> int:
        """The number of the connective's sense."""
        connective = _looking_back(document, target)
        return 0 if connective is None else SENSES.index(connective.sense)


def _looking_back(document: Document, sentence: int) -> Connective | None:
    """The clearest connective by which a sentence looks back, of equals the first."""
    if not 0 < sentence < len(document.sentences):
        return None
    found = [one for one in connectives_of(document.sentences[sentence]) if one.looks_back]
    return max(found, key=_strength, default=None)


def _strength(connective: Connective) -> float:
    return _LESS_CLEAR_STRENGTH if connective.text.lower() in _LESS_CLEAR else _CLEAR_STRENGTH
