"""A parsed text in the form that corruptions need: small enough to hold tens of thousands in memory."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, Self

from cohegraph.corpora.corruptions.versions import Origin, Placed
from cohegraph.strings import well_formed
from cohegraph.text.connectives import connectives_of
from cohegraph.text.document import Document, Noun, Sentence, is_word

_LEAST_WORDS = 4
# What makes a name part of a longer word; behind it, an apostrophe is that of a genitive.
_BEFORE, _AFTER = re.compile(r"[\w\-‐‑'’]"), re.compile(r"[\w\-‐‑]")
# What stands between the parts of one name: Bank of England, São Bernardo do Campo.
_WITHIN_A_NAME = re.compile(r" (?:(?:of|the|de|da|do|dos|das|del|della|di|du|des|la|le|van|von|der|den|zu|y|al|bin) )*")
_BLANK_LINE = re.compile(r"[^\S\n]*\n\s*\n\s*")
_ENDS = ".!?…"
_CLOSING = "\"'”’)]»*_"


class Span(NamedTuple):
    """A place in a sentence."""

    start: int
    end: int


class Change(NamedTuple):
    """A connective's place in a sentence, and how it reads with the opposite sense."""

    start: int
    end: int
    opposite: str


@dataclass(frozen=True, slots=True)
class Piece:
    """A text with its sentences, and where it belongs.

    ``work`` is the book or article that it is a part of, and ``source`` is where the work comes from. ``gaps`` is the
    white space between sentences. ``names`` and ``changes`` are the proper names and the connectives with an opposite
    of each sentence. ``whole`` says which sentences can stand in another text.
    """

    id: str
    work: str
    source: str
    sentences: tuple[str, ...]
    gaps: tuple[str, ...]
    names: tuple[tuple[Span, ...], ...]
    changes: tuple[tuple[Change, ...], ...]
    whole: tuple[bool, ...]

    @classmethod
    def of(cls, document: Document, id: str, *, work: str = "", source: str = "") -> Self:
        """The piece of a parsed document; by default it is a work of its own.

        Its sentences are those of the parser, except that a blank line always ends a sentence, and that sentences
        without white space between them are one.
        """
        parts = _parts(document)
        return cls(
            id=id,
            work=work or id,
            source=source,
            sentences=tuple(part.text for part in parts),
            gaps=tuple(document.text[before.end : part.start] for before, part in pairwise(parts)),
            names=tuple(tuple(_names(part)) for part in parts),
            changes=tuple(tuple(_changes(part)) for part in parts),
            whole=tuple(_is_whole(part) for part in parts),
        )

    def __len__(self) -> int:
        return len(self.sentences)

    def placed(self, start: int = 0, end: int | None = None) -> list[Placed]:
        """The sentences from ``start`` to ``end`` with their origins."""
        return [self.at(number) for number in range(*slice(start, end).indices(len(self)))]

    def at(self, number: int) -> Placed:
        """A sentence with its origin."""
        return Placed(self.sentences[number], Origin(self.id, number))


def _parts(document: Document) -> list[Sentence]:
    """The sentences between which there is white space."""
    spans: list[tuple[int, int]] = []
    for sentence in document.sentences:
        ends = [found.span() for found in _BLANK_LINE.finditer(document.text, sentence.start, sentence.end)]
        starts = [sentence.start, *(end for _, end in ends)]
        found = list(zip(starts, [*(start for start, _ in ends), sentence.end], strict=True))
        if spans and spans[-1][1] == found[0][0]:
            found[0] = (spans.pop()[0], found[0][1])
        spans += found
    nouns = [noun for sentence in document.sentences for noun in sentence.nouns]
    return [_part(document, start, end, nouns) for start, end in spans]


def _part(document: Document, start: int, end: int, nouns: Sequence[Noun]) -> Sentence:
    text = well_formed(document.text[start:end])
    inside = tuple(noun for noun in nouns if start <= noun.start and noun.end <= end)
    return Sentence(text, start, end, sum(map(is_word, text.split())), inside)


def _names(sentence: Sentence) -> Iterator[Span]:
    """Runs of proper nouns that are no part of another word."""
    text, offset = sentence.text, sentence.start
    for run in _runs(text, [noun for noun in sentence.nouns if noun.tag == "PROPN"], offset):
        start, end = run[0].start - offset, run[-1].end - offset
        if not (start and _BEFORE.match(text[start - 1])) and not _AFTER.match(text[end : end + 1]):
            yield Span(start, end)


def _runs(text: str, nouns: Sequence[Noun], offset: int) -> Iterator[list[Noun]]:
    run = list(nouns[:1])
    for before, noun in pairwise(nouns):
        if not _WITHIN_A_NAME.fullmatch(text[before.end - offset : noun.start - offset]):
            yield run
            run = []
        run.append(noun)
    if run:
        yield run


def _changes(sentence: Sentence) -> Iterator[Change]:
    for one in connectives_of(sentence):
        if one.opposite:
            yield Change(one.start - sentence.start, one.end - sentence.start, one.opposite)


def _is_whole(sentence: Sentence) -> bool:
    """Whether a sentence can stand elsewhere: it is long enough, and neither a fragment nor a heading."""
    first = next((character for character in sentence.text if character.isalnum()), "")
    ends = sentence.text.rstrip(_CLOSING)[-1:]
    return sentence.words >= _LEAST_WORDS and not first.islower() and ends != "" and ends in _ENDS
