"""What a text looks like on the page: prose, or something else, such as a list, a poem or code.

Everything is seen from lines and characters, without a parser. Prose may be one long line, have a line for each
paragraph or sentence, or be broken into lines of about the same length.
"""

import re
from collections.abc import Callable
from itertools import pairwise
from typing import Literal

Form = Literal["prose", "code", "table", "list", "chat", "lines"]

_FEWEST_LINES = 3
# The share of lines, or of line breaks, that must look like a form.
_MOST = 0.5
_ITEM = re.compile(r"(?:[-*•·–—▪◦+]|\(?(?:\d{1,3}|[a-zA-Z]|[ivx]{1,5})[.)]|\[[ xX]\])\s+\S")
# A time, a name of up to three words, or both, in front of what somebody says.
_TIME = r"[\[(<]?\d{1,2}[:.]\d\d(?:[:.]\d\d)?(?:\s?[ap]m)?[\])>]?"
_NAME = r"@?[\w.'-]{1,20}(?:[ ][\w.'-]{1,20}){0,2}"
_SAYS = re.compile(rf"(?:{_TIME}\W*)?(?:{_NAME}\s?:|<{_NAME}>)\s+\S|{_TIME}\s+\S")
# Between two cells of a row; a tab or spaces at the beginning of a line do not count.
_CELL = re.compile(r"(?<=\S)(?:\t| {2,}(?=\S)|\s*[|│;]\s*)")
_NUMBER = re.compile(r"[-+$€£]?\d[\d.,:/]*%?")
_CODE = re.compile(
    r"[;{}]$|^[}\])]+[;,]?$|^(?://|/\*|\*/|#!|#include|#define|</?[a-zA-Z!][^>]*>|\$ |>>> |@\w+$)"
    r"|^(?:def|class|import|from|return|if|elif|else|for|while|try|except|function|const|let|var|public|private|static"
    r"|void|int|func|fn|package|select|insert|update|create)\b.*[(){}:;=\[\]<>*]"
    r"|\w\([^)]*\)[:;{]?$|^[\w.\[\]\"']+\s*(?:[-+*/|:]?=|->|=>)\s*\S",
    re.IGNORECASE,
)
_END_OF_SENTENCE = re.compile(r"""[.!?…:]["'”’)\]]*$""")
# Prose in lines has longer lines than most verse and most lists have.
_SHORT_LINE = 52
# Longer texts are known by their beginning.
_MOST_CHARACTERS = 100_000


def form_of(text: str) -> Form:
    """What a text looks like; a text of fewer than three lines is prose."""
    lines = [line.rstrip() for line in text[:_MOST_CHARACTERS].splitlines() if line.strip()]
    if len(lines) < _FEWEST_LINES:
        return "prose"
    own: tuple[tuple[Form, Callable[[str], object]], ...] = (
        ("code", lambda line: _CODE.search(line.strip())),
        ("list", lambda line: _ITEM.match(line.strip())),
        ("table", _is_row),
        ("chat", lambda line: _SAYS.match(line.strip())),
    )
    for form, looks_like in own:
        if sum(1 for line in lines if looks_like(line)) > _MOST * len(lines):
            return form
    return "lines" if _breaks_sentences(lines) else "prose"


def _is_row(line: str) -> bool:
    """Whether a line has three cells or more, or consists of numbers for the most part."""
    cells, words = _CELL.split(line.strip().strip("|│")), line.split()
    # Cells are short: a sentence with semicolons is not a row.
    is_row = len(cells) > 2 and sum(len(cell.split()) for cell in cells) < 4 * len(cells)
    values = line.split(",")
    is_values = len(values) > 3 and sum(len(value.split()) for value in values) < 2 * len(values)
    numbers = sum(1 for word in words if _NUMBER.fullmatch(word.strip(",;()")))
    return is_row or is_values or (len(words) > 1 and 2 * numbers > len(words))


def _breaks_sentences(lines: list[str]) -> bool:
    """Whether most lines end in the middle of a sentence, as those of poems and of lists without marks do.

    So do the lines of prose that is broken into lines; but these are long, and few of them begin with a capital.
    """
    inside = [(line, following) for line, following in pairwise(lines) if not _END_OF_SENTENCE.search(line)]
    # By characters: the address and the greeting of a letter are lines, too.
    if sum(len(line) for line, _ in inside) < _MOST * sum(map(len, lines[:-1])) or len(inside) < _FEWEST_LINES - 1:
        return False
    short = sum(1 for line, _ in inside if len(line.strip()) < _SHORT_LINE)
    capital = sum(1 for _, following in inside if following.lstrip("\"'“‘ \t")[:1].isupper())
    return 2 * short > len(inside) or 4 * capital > 3 * len(inside)
