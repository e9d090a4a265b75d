"""An own corpus: any table with a text and a label column."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cohegraph.corpora.columns import Columns, Entry
from cohegraph.corpora.corpus import Corpus, Labelled
from cohegraph.corpora.stream import Documents
from cohegraph.errors import CohegraphError
from cohegraph.labels import as_labels, encode_labels

_TEST_WORDS = {"test": True, "train": False, "training": False}


def read_own(
    file: Path,
    *,
    text_column: str = "text",
    label_column: str = "label",
    id_column: str | None = None,
    section_column: str | None = None,
    group_column: str | None = None,
    score_column: str | None = None,
    split_column: str | None = None,
    levels: list[str | int | float | bool] | None = None,
    skip_empty: bool = False,
    skip_unlabelled: bool = False,
) -> Corpus:
    """The graded documents of a table.

    Args:
        file: CSV, TSV, JSON Lines or Parquet, or a folder of such files.
        text_column: The texts.
        label_column: Their labels: two or more different ones.
        id_column: Names of the documents; without it rows are numbered.
        section_column: Parts of the corpus that are trained and tested by themselves.
        group_column: What may not be on both sides of a fold.
        score_column: The graders' numbers, for correlations.
        split_column: ``train`` or ``test``, where the owners fixed a test split.
        levels: The labels from low to high, where their order does not say itself.
        skip_empty: Leave out rows without a text.
        skip_unlabelled: Leave out rows without a label.
    """
    names = (text_column, label_column, group_column, id_column, section_column, score_column, split_column)
    columns = Columns(*names, skip_empty=skip_empty, skip_unlabelled=skip_unlabelled)
    return collected(Documents([str(file)], columns), file.stem, levels)


def collected(documents: Documents, name: str, levels: Sequence[Any] | None = None, *, rated: bool = False) -> Corpus:
    """Labelled documents as a corpus in memory.

    Args:
        documents: The documents.
        name: What the corpus is called.
        levels: Their labels from low to high.
        rated: Their labels are ratings: numbers, which are no levels.
    """
    columns, entries = documents.columns, list(documents.usable(labelled=True))
    labels, known, ordered = as_labels([entry.label for entry in entries]), list[Any](), True
    if not rated:
        encoded = encode_labels(labels, levels)
        known, ordered = encoded.levels, encoded.ordered
    found = [
        Labelled(
            id=str(number) if entry.id is None else entry.id,
            text=entry.text,
            label=label,
            section=str(entry.further.get("section", "all")),
            group=str(entry.group) if columns.group else None,
            test=_is_test(entry) if columns.split else None,
            score=_score(entry) if columns.score else None,
        )
        for number, (entry, label) in enumerate(zip(entries, labels.tolist(), strict=True), start=1)
    ]
    return Corpus.of(name, found, known, ordered=ordered)


def _score(entry: Entry) -> float:
    try:
        score = float(entry.further["score"])
    except (TypeError, ValueError):
        score = math.nan
    if not math.isfinite(score):
        given = entry.further["score"]
        raise CohegraphError(f"The score of {entry.name} is '{given}', not a finite number.", code="not-a-number")
    return score


def _is_test(entry: Entry) -> bool:
    split = entry.further["split"]
    if (word := str(split).strip().lower()) not in _TEST_WORDS:
        raise CohegraphError(f"The split of {entry.name} is '{split}', neither train nor test.", code="unknown-split")
    return _TEST_WORDS[word]
