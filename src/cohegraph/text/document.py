"""What a parser makes of a text."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, Protocol

NounTag = Literal["NOUN", "PROPN"]


@dataclass(frozen=True, slots=True)
class Noun:
    """A noun, and where it stands in the original string; ``dependency`` is empty unless asked for."""

    text: str
    lemma: str
    start: int
    end: int
    tag: NounTag
    dependency: str = ""


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence, and where it stands in the original string; ``words`` counts tokens with a letter or digit."""

    text: str
    start: int
    end: int
    words: int
    nouns: tuple[Noun, ...]


@dataclass(frozen=True, slots=True)
class Document:
    """A text with its sentences in reading order."""

    text: str
    sentences: tuple[Sentence, ...]


class Parser(Protocol):
    """Finds sentences and nouns."""

    @property
    def identity(self) -> str:
        """Name and version of all that shapes the result."""

    def parse(self, texts: Iterable[str]) -> Iterator[Document]:
        """One document a text, in order."""


@lru_cache(maxsize=100_000)
def is_word(token: str) -> bool:
    """Whether a token counts as a word: it has a letter or a digit."""
    return any(character.isalnum() for character in token)


def is_noun(token: str, tag: str) -> bool:
    """Whether a tagged token is taken for a noun: taggers call emoji and stray marks proper nouns too."""
    return tag in ("NOUN", "PROPN") and any(character.isalpha() for character in token)


def trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    """The span without white space at either end."""
    piece = text[start:end]
    return start + len(piece) - len(piece.lstrip()), end - len(piece) + len(piece.rstrip())
