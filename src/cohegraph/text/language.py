"""Whether a text is English: whoever pastes another language gets a verdict that means nothing, and should know."""

import re
from functools import cache

# In 2,140 essays and stories that were looked at, 20 % or more of the words are such words, 34 % in all but a few of
# the shortest; in spaCy's examples of 23 other languages in Latin letters, 12 % at most.
_FEWEST_ENGLISH, _SURELY_ENGLISH = 0.2, 0.34
# Some of these are small words of English too ("is", "in", "we"), so that a text in one of these languages can have as
# many as a short English one; it has more of its own.
_OTHERS = tuple(
    frozenset(words.split())
    for words in (
        "de het een en van in is dat op te zijn met voor niet aan er om ook als bij maar naar we ze hij",  # Dutch
        "der die das und in den von zu mit sich des auf für ist im dem nicht ein eine als auch es an wir er",  # German
        "le la les de des du un une et est en que qui dans pour pas sur au plus avec ce il elle on se",  # French
        "el la los las de y en que un una es por con no para se del al lo como más su pero le ha",  # Spanish
        "il la le di e che un una è in per non con si da del della dei al sono come più ma lo gli",  # Italian
        "o a os as de e em que um uma é por com não para se do da dos das no na ao mais como",  # Portuguese
        "och i att det som en på är av för med den till inte har de ett om var jag han hon vi men",  # Swedish
        "og i at det som en på er af for med den til ikke har de et om var jeg han hun vi men av",  # Danish, Norwegian
    )
)
# A headline or a list of names need not have any.
_FEWEST_LETTERS = 60
# Four letters that are not Latin are enough.
_FEWEST_FOREIGN = 4
_LAST_LATIN = "\u024f"
_WORD = re.compile(r"[^\W\d_]+")
_MOST_CHARACTERS = 100_000


def looks_english(text: str) -> bool:
    """Whether a text is in Latin letters, and has more small words of English than of any other language.

    A text of a few words in Latin letters always looks so.
    """
    words = _WORD.findall(text[:_MOST_CHARACTERS].lower())
    letters = "".join(words)
    foreign = sum(letter > _LAST_LATIN for letter in letters)
    if foreign >= _FEWEST_FOREIGN and 2 * foreign > len(letters):
        return False
    if len(letters) < _FEWEST_LETTERS:
        return True
    share = _share(words, _english())
    if share >= _SURELY_ENGLISH:
        return True
    return share >= _FEWEST_ENGLISH and all(_share(words, other) <= share for other in _OTHERS)


def _share(words: list[str], known: frozenset[str]) -> float:
    return sum(word in known for word in words) / len(words)


@cache
def _english() -> frozenset[str]:
    from spacy.lang.en.stop_words import STOP_WORDS

    return frozenset(STOP_WORDS)
