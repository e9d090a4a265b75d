"""The Automated Student Assessment Prize's essays (Hewlett Foundation, 2012), ``training_set_rel3.tsv``.

The eight essay sets are the sections. Each has scores in a range of its own; the level is the third of the range that
the score (``domain1_score``) lies in, and the score itself is kept for correlations.
"""

import re
from collections import Counter
from pathlib import Path

from cohegraph.corpora.corpus import LEVELS, Corpus, Labelled, check_sizes, official_rows
from cohegraph.corpora.tables import is_missing
from cohegraph.errors import DamagedFileError

_RANGES = {1: (2, 12), 2: (1, 6), 3: (0, 3), 4: (0, 3), 5: (0, 4), 6: (0, 4), 7: (0, 30), 8: (0, 60)}
# The release counts 1,770 essays in set 4; papers that use it count 1,772.
_SIZES = {1: (1783,), 2: (1800,), 3: (1726,), 4: (1770, 1771, 1772), 5: (1805,), 6: (1800,), 7: (1569,), 8: (723,)}
# The beginning of a row inside an essay: an open quotation mark takes all that follows for text.
_SWALLOWED = re.compile(r"[\r\n]\d+\t[1-8]\t")
_COLUMNS = {"id": ("essay_id",), "set": ("essay_set",), "text": ("essay",), "score": ("domain1_score",)}


def read_asap(file: Path, *, partial: bool = False) -> Corpus:
    """All essays with a score, by set."""
    if file.is_dir():
        file = file / "training_set_rel3.tsv"
    documents = []
    for row in official_rows(file, _COLUMNS, "ASAP"):
        if row["score"] is None or _SWALLOWED.search(str(row["text"])):
            message = f"{row.place} (essay {row['id']}) runs into the next: a quotation mark in it is not closed."
            raise DamagedFileError(message, code="open-quotation")
        if is_missing(row["score"]):
            continue
        number = int(row.number("set", 1, 8, whole=True))
        row.place += f" (set {number})"
        low, high = _RANGES[number]
        score = row.number("score", low, high)
        level = LEVELS[min(2, int(3 * (score - low) / (high - low)))]
        documents.append(Labelled(f"{number}/{row['id']}", row.text(), level, f"set {number}", score=score))
    documents.sort(key=lambda document: document.section)
    corpus = Corpus.of("ASAP", documents)
    check_sizes("ASAP", Counter(corpus.sections), {f"set {n}": sizes for n, sizes in _SIZES.items()}, partial)
    return corpus
