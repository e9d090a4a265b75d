"""Connectives and how they read with the opposite sense."""

import re
from dataclasses import dataclass

from cohegraph.text.document import Sentence

_OPPOSITES = {
    "however": "therefore",
    "therefore": "however",
    "because": "although",
    "although": "because",
    "but": "and so",
    "before": "after",
    "after": "before",
}
_SENSES = {"however": "contrast", "although": "contrast", "but": "contrast", "before": "time", "after": "time"}
_CONNECTIVE = re.compile(rf"\b(?:{'|'.join(_OPPOSITES)})\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Connective:
    """A connective, and where it stands in the document's text; ``opposite`` is empty if there is none."""

    text: str
    start: int
    end: int
    sense: str
    opposite: str


def connectives_of(sentence: Sentence) -> tuple[Connective, ...]:
    """The connectives of a sentence, in order."""
    return tuple(
        Connective(
            found.group(),
            sentence.start + found.start(),
            sentence.start + found.end(),
            _SENSES.get(found.group().lower(), "cause"),
            _cased(_OPPOSITES[found.group().lower()], found.group()),
        )
        for found in _CONNECTIVE.finditer(sentence.text)
    )


def _cased(word: str, like: str) -> str:
    return word.capitalize() if like[:1].isupper() else word
