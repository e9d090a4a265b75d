"""HANNA: stories by people and by ten story generators (Chhun et al., 2022), rated by three people each.

The official CSV has a row a rating; the JSON Lines form has a row a story with the mean ``coherence``. The level is low
up to 2.67, medium, and high from 3.67 on. Who wrote a story is its group.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from cohegraph.corpora.corpus import LEVELS, Corpus, incomplete, number_of, rows_with, text_of

_LOWEST_MEDIUM, _LOWEST_HIGH = 2.7, 3.6
_STORIES, _RATINGS = 1_056, 3


def read_hanna(file: Path, *, partial: bool = False) -> Corpus:
    """All stories with their mean coherence."""
    columns = {
        "id": ("Story ID", "id"),
        "text": ("Story", "text"),
        "source": ("Model", "source"),
        "score": ("Coherence",),
    }
    stories: dict[str, tuple[str, str]] = {}
    ratings: dict[str, list[float]] = {}
    for number, row in enumerate(rows_with(file, columns, "HANNA"), start=1):
        name = str(row["id"])
        stories.setdefault(name, (text_of(row, file, f"row {number}"), str(row["source"])))
        rating = number_of(row, "score", file, f"row {number}", low=1, high=5)
        ratings.setdefault(name, []).append(rating)
    # Only the JSON Lines form has means instead of ratings.
    means_given = file.suffix.lower() not in (".csv", ".tsv") and all(len(given) == 1 for given in ratings.values())
    lacking = 0 if means_given else sum(len(given) != _RATINGS for given in ratings.values())
    if not partial and (len(stories) != _STORIES or lacking):
        raise incomplete(
            f"{file} has {len(stories):,} stories"
            + (f", {lacking:,} of them without three ratings" if lacking else "")
            + f", and HANNA has 1,056{'' if means_given else ' with three ratings each'}"
        )
    means = tuple(float(np.mean(ratings[name])) for name in stories)
    labels = tuple(LEVELS[(mean > _LOWEST_MEDIUM) + (mean > _LOWEST_HIGH)] for mean in means)
    texts, sources = zip(*stories.values(), strict=True)
    return Corpus("HANNA", tuple(stories), texts, labels, LEVELS, ("all",) * len(stories), groups=sources, scores=means)
