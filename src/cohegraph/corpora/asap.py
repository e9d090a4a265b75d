"""The Automated Student Assessment Prize's essays (Hewlett Foundation, 2012), ``training_set_rel3.tsv``.

The eight essay sets are the sections. Each has scores in a range of its own; the level is the third of the range that
the score (``domain1_score``) lies in, and the score itself is kept for correlations.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from cohegraph.corpora.corpus import LEVELS, Corpus, check_sizes, number_of, rows_with, text_of
from cohegraph.corpora.tables import is_missing
from cohegraph.errors import CohegraphError, DamagedFileError

RANGES = {1: (2, 12), 2: (1, 6), 3: (0, 3), 4: (0, 3), 5: (0, 4), 6: (0, 4), 7: (0, 30), 8: (0, 60)}
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
    for number, row in enumerate(rows_with(file, _COLUMNS, "ASAP"), start=1):
        if row["score"] is None or _SWALLOWED.search(str(row["text"])):
            raise DamagedFileError(
                f"{file}: row {number} (essay {row['id']}) runs into the next: a quotation mark in it is not closed.",
                code="open-quotation",
            )
        if is_missing(row["score"]):
            continue
        essay_set = int(number_of(row, "set", file, f"row {number}", low=1, high=8, whole=True))
        low, high = RANGES[essay_set]
        score = number_of(row, "score", file, f"row {number} (set {essay_set})", low=low, high=high)
        level = LEVELS[min(2, int(3 * (score - low) / (high - low)))]
        text = text_of(row, file, f"row {number}")
        documents.append((f"{essay_set}/{row['id']}", text, level, f"set {essay_set}", score))
    if not documents:
        raise CohegraphError(f"{file}: no essay has a score.", code="no-documents")
    check_sizes(
        Counter(section for *_, section, _ in documents),
        {f"set {number}": sizes for number, sizes in _SIZES.items()},
        "ASAP",
        partial=partial,
    )
    documents.sort(key=lambda document: document[3])
    ids, texts, labels, sections, scores = zip(*documents, strict=True)
    return Corpus("ASAP", ids, texts, labels, LEVELS, sections, scores=scores)
