"""Whether a text is English: whoever pastes another language gets a verdict that means nothing, and should know."""

from __future__ import annotations

import re

# In all essays and stories that were looked at (7,500), 20 % or more of the words are such words, 34 % in all but a few
# of the shortest; in spaCy's examples of 23 other languages in Latin letters, 12 % at most.
_FEWEST_ENGLISH = 0.2
# A headline or a list of names need not have any.
_FEWEST_LETTERS = 60
_WORD = re.compile(r"[^\W\d_]+")
_MOST_CHARACTERS = 100_000


def looks_english(text: str) -> bool:
    """Whether enough of the words of a text are English function words; a text of a few words always looks so."""
    from spacy.lang.en.stop_words import STOP_WORDS

    words = _WORD.findall(text[:_MOST_CHARACTERS].lower())
    if sum(map(len, words)) < _FEWEST_LETTERS:
        return True
    return sum(word in STOP_WORDS for word in words) >= _FEWEST_ENGLISH * len(words)
