"""HANNA: stories by people and by ten story generators (Chhun et al., 2022), rated by three people each.

The official CSV has one row per rating; the JSON Lines form has one row per story with the mean ``coherence``. The
level is low up to 2.67, medium, and high from 3.67 on. Who wrote a story is its group.
"""

from pathlib import Path

import numpy as np

from cohegraph.corpora.corpus import LEVELS, Corpus, Labelled, incomplete, official_rows

_LOWEST_MEDIUM, _LOWEST_HIGH = 2.7, 3.6
_STORIES, _RATINGS = 1_056, 3
_COLUMNS = {"id": ("Story ID", "id"), "text": ("Story", "text"), "source": ("Model", "source"), "score": ("Coherence",)}


def read_hanna(file: Path, *, partial: bool = False) -> Corpus:
    """All stories with their mean coherence."""
    stories: dict[str, tuple[str, str]] = {}
    ratings: dict[str, list[float]] = {}
    for row in official_rows(file, _COLUMNS, "HANNA"):
        stories.setdefault(str(row["id"]), (row.text(), str(row["source"])))
        ratings.setdefault(str(row["id"]), []).append(row.number("score", 1, 5))
    # Only the JSON Lines form has means instead of ratings.
    means_given = file.suffix.lower() not in (".csv", ".tsv") and all(len(given) == 1 for given in ratings.values())
    lacking = 0 if means_given else sum(len(given) != _RATINGS for given in ratings.values())
    if not partial and (len(stories) != _STORIES or lacking):
        raise incomplete(
            f"{file} has {len(stories):,} stories"
            + (f", {lacking:,} of them without three ratings" if lacking else "")
            + f", and HANNA has 1,056{'' if means_given else ' with three ratings each'}"
        )
    documents = []
    for name, (text, source) in stories.items():
        mean = float(np.mean(ratings[name]))
        level = LEVELS[(mean > _LOWEST_MEDIUM) + (mean > _LOWEST_HIGH)]
        documents.append(Labelled(name, text, level, group=source, score=mean))
    return Corpus.of("HANNA", documents)
