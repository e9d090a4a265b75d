"""Sentences of other texts: of the same work, of the same source, of other sources, or similar ones."""

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from itertools import accumulate
from random import Random
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from cohegraph.corpora.corruptions.pieces import Piece
from cohegraph.corpora.corruptions.versions import Placed
from cohegraph.errors import CohegraphError

WORK, SOURCE, ELSEWHERE, SIMILAR = "work", "source", "elsewhere", "similar"
PLACES = (WORK, SOURCE, ELSEWHERE)
Vectors = npt.NDArray[np.float32]
Encode = Callable[[Sequence[str]], Vectors]
T = TypeVar("T")
_Range = tuple[int, int]

# Sentences that are drawn for a place, of which the one with the best length is taken.
_SENTENCES_DRAWN = 32
# Texts that are looked at for a stretch of sentences, and how many of these must be long enough.
_TEXTS_DRAWN, _TEXTS_COMPARED = 60, 12
# Of so many most similar sentences the one with the best length is taken.
_NEAREST = 5
# A sentence with a higher cosine says the same in other words, and would not be out of place.
_SAME = 0.85


class DonorPool:
    """All texts that sentences can be taken from. Its order does not matter; ids must differ.

    Args:
        pieces: The texts, which may include those to be corrupted.
        similar: Finds similar sentences; only the donor ``similar`` needs it. It may be set later.
    """

    def __init__(self, pieces: Iterable[Piece], similar: "SimilarSentences | None" = None) -> None:
        # Sorted, the texts of a work or a source are a range.
        self._pieces = sorted(pieces, key=lambda piece: (piece.source, piece.work, piece.id))
        self.similar = similar
        self._ranges: dict[tuple[str, ...], _Range] = {}
        for number, piece in enumerate(self._pieces):
            for key in ((piece.source,), (piece.source, piece.work), (piece.source, piece.work, piece.id)):
                self._ranges[key] = (self._ranges.get(key, (number, 0))[0], number + 1)
        ids = {piece.id for piece in self._pieces}
        if len(ids) < len(self._pieces):
            message = "Two texts have the same id: give each its own, or leave out the column with the ids."
            raise CohegraphError(message, code="same-ids")
        places = [(text, number) for text, piece in enumerate(self._pieces) for number in np.flatnonzero(piece.whole)]
        self._places = np.array(places, dtype=np.int32).reshape(-1, 2)
        self._before = list(accumulate((sum(piece.whole) for piece in self._pieces), initial=0))

    def __len__(self) -> int:
        return len(self._pieces)

    @cached_property
    def digest(self) -> str:
        """The hash of all texts."""
        texts = (json.dumps([one.source, one.work, one.id, one.sentences]) for one in self._pieces)
        return hashlib.sha256("\n".join(texts).encode()).hexdigest()

    def sample(self, number: int, seed: int = 0) -> list[Placed]:
        """So many sentences that can stand elsewhere, or all; candidates for `SimilarSentences`."""
        total = len(self._places)
        chosen = Random(seed).sample(range(total), min(number, total))
        return [self._candidate(place) for place in sorted(chosen)]

    def sentence(
        self, piece: Piece, donor: str, like: str, length: int, random: Random, taken: Sequence[Placed] = ()
    ) -> Placed | None:
        """A foreign sentence for a text, of about the length that is wanted; None where there is none.

        Args:
            piece: The text.
            donor: Where the sentence comes from.
            like: The sentence that a similar one is wanted for.
            length: The wanted length in characters.
            random: Draws the candidates.
            taken: Sentences that it must differ from, in addition to those of the text.
        """
        own = {*piece.sentences, *(one.text for one in taken)}
        if donor == SIMILAR:
            if self.similar is None:
                raise ValueError("the donor 'similar' needs similar sentences")
            candidates = self.similar.nearest(like, piece)
        else:
            outer, inner = ((self._before[first], self._before[end]) for first, end in self._scope(piece, donor))
            places = (_drawn(outer, inner, random) for _ in range(_SENTENCES_DRAWN))
            candidates = [self._candidate(place) for place in places if place is not None]
        candidates = [one for one in candidates if one.text not in own]
        return closest(candidates, lambda one: len(one.text), length, random)

    def stretch(
        self, piece: Piece, donor: str, sentences: int, length: int, random: Random, *, first: int = 1
    ) -> list[Placed] | None:
        """Consecutive sentences of one other text, of about the length that is wanted; None where there are none.

        Args:
            piece: The text that they are for.
            donor: Where they come from.
            sentences: How many.
            length: Their wanted length in characters.
            random: Draws the texts.
            first: The first sentence of the other text that they may begin with.
        """
        outer, inner = self._scope(piece, donor)
        own, compared, found = set(piece.sentences), set[int](), list[tuple[int, int, int]]()
        for _ in range(_TEXTS_DRAWN):
            place = _drawn(outer, inner, random)
            if place is None or len(compared) == _TEXTS_COMPARED:
                break
            other = self._pieces[place]
            if place in compared or len(other) < first + sentences:
                continue
            compared.add(place)
            # The length of the first sentences together, and how many of them stand in the text as well.
            lengths = list(accumulate(map(len, other.sentences), initial=0))
            shared = list(accumulate((sentence in own for sentence in other.sentences), initial=0))
            for start in range(first, len(other) - sentences + 1):
                end = start + sentences
                if shared[end] == shared[start]:
                    found.append((place, start, lengths[end] - lengths[start]))
        best = closest(found, lambda one: one[2], length, random)
        return None if best is None else self._pieces[best[0]].placed(best[1], best[1] + sentences)

    def _candidate(self, place: int) -> Placed:
        text, number = map(int, self._places[place])
        return self._pieces[text].at(number)

    def _scope(self, piece: Piece, donor: str) -> tuple[_Range, _Range]:
        """The texts to draw from, as a range and what to leave out of it."""
        key = (piece.source, piece.work, piece.id)
        source, work, own = (self._ranges.get(key[:depth], (0, 0)) for depth in (1, 2, 3))
        scopes = {WORK: (work, own), SOURCE: (source, work), ELSEWHERE: ((0, len(self)), source)}
        return scopes[donor]


class SimilarSentences:
    """Finds the sentences of other texts that are most similar to a sentence.

    Args:
        candidates: The sentences to choose from, such as a sample of a `DonorPool`.
        vectors: Their unit vectors, (candidates, dimensions).
        encode: The unit vectors of any sentences.
    """

    def __init__(self, candidates: Sequence[Placed], vectors: Vectors, encode: Encode) -> None:
        if len(candidates) != len(vectors):
            raise ValueError("each candidate needs a vector")
        self._candidates, self._vectors, self._encode = candidates, vectors, encode

    def nearest(self, sentence: str, piece: Piece) -> list[Placed]:
        """The most similar sentences that neither come from a text nor stand in it; paraphrases are left out."""
        own = set(piece.sentences)
        similarities = self._vectors @ self._encode([sentence])[0]
        found: list[Placed] = []
        for place in np.argsort(-similarities, kind="stable"):
            candidate = self._candidates[place]
            if similarities[place] < _SAME and candidate.origin.text != piece.id and candidate.text not in own:
                found.append(candidate)
                if len(found) == _NEAREST:
                    break
        return found


def closest(candidates: Sequence[T], size: Callable[[T], int], wanted: int, random: Random) -> T | None:
    """The candidate with the size that is closest to the wanted one, from below or above with equal chances.

    Small sizes are more frequent than large ones: the closest of all would more often be too small.
    """
    above = random.random() < 0.5
    one_side = [one for one in candidates if (size(one) >= wanted if above else size(one) <= wanted)]
    return min(one_side or candidates, key=lambda one: abs(size(one) - wanted), default=None)


def _drawn(outer: _Range, inner: _Range, random: Random) -> int | None:
    """A number of the outer range that is not in the inner one, which lies in it or is empty."""
    left_out = inner[1] - inner[0]
    size = outer[1] - outer[0] - left_out
    if size <= 0:
        return None
    place = outer[0] + random.randrange(size)
    return place if left_out == 0 or place < inner[0] else place + left_out
