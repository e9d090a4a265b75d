"""The small graded corpus that is part of this package, and the model trained on it."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from cohegraph.corpora.corpus import LEVELS, Corpus
from cohegraph.corpora.own import read_own

FOLDER = Path(str(files("cohegraph"))) / "data" / "starter"
CORPUS = FOLDER / "corpus.jsonl"
MODEL = FOLDER / "model"


def starter_corpus() -> Corpus:
    """All 90 texts: 30 topics (the groups), each well connected (high), drifting (medium) and disjointed (low)."""
    return read_own(CORPUS, label_column="level", group_column="topic", id_column="id", levels=LEVELS)
