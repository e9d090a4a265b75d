"""A parsed text in the form that corruptions need: small enough to hold tens of thousands in memory."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, Self

from cohegraph.corpora.corruptions.versions import Origin, Placed
from cohegraph.text.connectives import connectives_of
from cohegraph.text.document import Document, Noun, Sentence

_LEAST_WORDS = 4
_PART_OF_A_WORD = re.compile(r"[\w\-‐‑'’]")
_BLANK_LINE = re.compile(r"\n\s*\n")
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

        Sentences without white space between them are one sentence here.
        """
        groups = list(_apart(document.sentences))
        starts, ends = [group[0].start for group in groups], [group[-1].end for group in groups]
        texts = tuple("".join(sentence.text for sentence in group) for group in groups)
        spans = zip(texts, groups, starts, strict=True)
        return cls(
            id=id,
            work=work or id,
            source=source,
            sentences=texts,
            gaps=tuple(document.text[end:start] for end, start in zip(ends, starts[1:], strict=False)),
            names=tuple(tuple(_names(text, group, start)) for text, group, start in spans),
            changes=tuple(tuple(_changes(group, start)) for group, start in zip(groups, starts, strict=True)),
            whole=tuple(
                _is_whole(text, sum(sentence.words for sentence in group))
                for text, group in zip(texts, groups, strict=True)
            ),
        )

    def __len__(self) -> int:
        return len(self.sentences)

    def placed(self, start: int = 0, end: int | None = None) -> list[Placed]:
        """The sentences from ``start`` to ``end`` with their origins."""
        return [self.at(number) for number in range(*slice(start, end).indices(len(self)))]

    def at(self, number: int) -> Placed:
        """A sentence with its origin."""
        return Placed(self.sentences[number], Origin(self.id, number))


def _apart(sentences: Sequence[Sentence]) -> Iterator[list[Sentence]]:
    """Sentences in groups that have white space between them."""
    group: list[Sentence] = []
    for sentence in sentences:
        if group and group[-1].end < sentence.start:
            yield group
            group = []
        group.append(sentence)
    if group:
        yield group


def _names(text: str, group: Sequence[Sentence], offset: int) -> Iterator[Span]:
    """Runs of proper nouns that are no part of another word."""
    proper = [noun for sentence in group for noun in sentence.nouns if noun.tag == "PROPN"]
    for run in _runs(text, proper, offset):
        start, end = run[0].start - offset, run[-1].end - offset
        if not _PART_OF_A_WORD.match(text[start - 1 : start]) and not re.match(r"[\w\-‐‑]", text[end : end + 1]):
            yield Span(start, end)


def _runs(text: str, nouns: Sequence[Noun], offset: int) -> Iterator[list[Noun]]:
    run = list(nouns[:1])
    for before, noun in pairwise(nouns):
        if text[before.end - offset : noun.start - offset] != " ":
            yield run
            run = []
        run.append(noun)
    if run:
        yield run


def _changes(group: Sequence[Sentence], offset: int) -> Iterator[Change]:
    for sentence in group:
        for one in connectives_of(sentence):
            if one.opposite:
                yield Change(one.start - offset, one.end - offset, one.opposite)


def _is_whole(text: str, words: int) -> bool:
    """Whether a sentence can stand elsewhere: long enough, and neither a fragment nor a heading with its paragraph."""
    first = next((character for character in text if character.isalnum()), "")
    ends = text.rstrip(_CLOSING)[-1:] in _ENDS
    return words >= _LEAST_WORDS and not first.islower() and ends and not _BLANK_LINE.search(text)
