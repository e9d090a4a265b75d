"""The small graded corpus that is part of this package."""

from importlib.resources import files
from pathlib import Path

import numpy as np

from cohegraph.corpora.corpus import LEVELS, Corpus
from cohegraph.corpora.own import read_own

FOLDER = Path(str(files("cohegraph"))) / "data" / "starter"
CORPUS = FOLDER / "corpus.jsonl"


def starter_corpus() -> Corpus:
    """All 90 texts: 30 topics (the groups), each well connected (high), drifting (medium) and disjointed (low)."""
    return read_own(CORPUS, label_column="level", group_column="topic", id_column="id", levels=list(LEVELS))


def hold_out_topics(corpus: Corpus, every: int = 5) -> tuple[Corpus, Corpus]:
    """All versions of every fifth topic apart from the rest."""
    topics = np.array(corpus.groups)
    held_out = np.isin(topics, np.unique(topics)[every - 1 :: every])
    return corpus.at(np.flatnonzero(~held_out).tolist()), corpus.at(np.flatnonzero(held_out).tolist())
