"""Names of a text that can be exchanged."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from cohegraph.corpora.corruptions.pieces import Piece

_LEAST_SENTENCES = 2
# Names of times and forms of address are proper nouns, too; an exchange of them would not make sense anywhere.
_LEFT_OUT = frozenset(
    "january february march april may june july august september october november december "
    "monday tuesday wednesday thursday friday saturday sunday "
    "mr mr. mrs mrs. ms ms. dr dr. sir lady lord miss madam god yes no oh ah".split()
)
_ARTICLE = re.compile(r"\b(?:the|an?|this|that|these|those|its|his|her|their|our|my|your)\s+$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Name:
    """A name, the sentences with it, and whether an article or the like stands before it."""

    text: str
    sentences: tuple[int, ...]
    has_article: bool

    def fits(self, other: "Name") -> bool:
        """Whether the two can be exchanged: they have no word in common, are used in the same way, and it matters."""
        alike = self.has_article == other.has_article and self.text.isupper() == other.text.isupper()
        apart = set(self.text.lower().split()).isdisjoint(other.text.lower().split())
        return alike and apart and self.last_without(other) > min(self.sentences[0], other.sentences[0])

    def last_without(self, other: "Name") -> int:
        """The last sentence with only one of the names, or -1: "Anna and Bruno" says the same as "Bruno and Anna"."""
        return max(set(self.sentences) ^ set(other.sentences), default=-1)


def exchangeable(piece: Piece) -> list[Name]:
    """The names that stand in several sentences, in the order of their first occurrences."""
    places, articles = dict[str, list[int]](), set[str]()
    for number, sentence in enumerate(piece.sentences):
        for name, start, _ in _occurrences(piece, number):
            places.setdefault(name, []).append(number)
            if _ARTICLE.search(sentence[:start]):
                articles.add(name)
    found = ((name, tuple(dict.fromkeys(numbers))) for name, numbers in places.items())
    return [Name(name, numbers, name in articles) for name, numbers in found if len(numbers) >= _LEAST_SENTENCES]


def exchanged(piece: Piece, number: int, first: str, second: str) -> str:
    """A sentence with two names exchanged."""
    sentence, parts, end = piece.sentences[number], list[str](), 0
    for name, start, stop in _occurrences(piece, number):
        if name in (first, second):
            parts += [sentence[end:start], second if name == first else first]
            end = stop
    return "".join([*parts, sentence[end:]])


def _occurrences(piece: Piece, number: int) -> Iterator[tuple[str, int, int]]:
    for start, end in piece.names[number]:
        name = piece.sentences[number][start:end]
        if name[0].isupper() and len(name) > 1 and name.lower() not in _LEFT_OUT:
            yield name, start, end
