"""An own corpus: any table with a text and a label column."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cohegraph.corpora.corpus import Corpus
from cohegraph.corpora.tables import Row, is_missing, read_rows
from cohegraph.errors import CohegraphError
from cohegraph.labels import encode_labels, is_missing_label

_KINDS = {dict: "an object", list: "a list", bool: "true or false"}
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
    levels: Sequence[Any] | None = None,
    skip_unlabelled: bool = False,
) -> Corpus:
    """The graded documents of a table.

    Args:
        file: CSV, TSV, JSON Lines or Parquet.
        text_column: The texts.
        label_column: Their labels: two or more different ones.
        id_column: Names of the documents; without it rows are numbered.
        section_column: Parts of the corpus that are trained and tested by themselves.
        group_column: What may not be on both sides of a fold.
        score_column: The graders' numbers, for correlations.
        split_column: ``train`` or ``test``, where the owners fixed a test split.
        levels: The labels from low to high, where their order does not say itself.
        skip_unlabelled: Leave out rows without a label.
    """
    rows = [row for row in read_rows(file) if not (skip_unlabelled and is_missing_label(row.get(label_column)))]
    if not rows:
        raise CohegraphError(f"{file} has no rows{' with a label' if skip_unlabelled else ''}.")

    def column(name: str | None) -> tuple[Any, ...] | None:
        return None if name is None else _column(file, rows, name)

    texts = _texts(file, _column(file, rows, text_column), text_column)
    labels, ids = _column(file, rows, label_column, is_missing_label), column(id_column)
    sections, groups, scores, splits = map(column, (section_column, group_column, score_column, split_column))
    encoded = encode_labels(labels, levels)
    return Corpus(
        name=file.stem,
        ids=tuple(str(n) for n in range(1, len(rows) + 1)) if ids is None else tuple(map(str, ids)),
        texts=texts,
        labels=tuple(map(str, encoded.values.tolist())),
        levels=tuple(map(str, encoded.levels)),
        ordered=encoded.ordered,
        sections=("all",) * len(rows) if sections is None else tuple(map(str, sections)),
        groups=None if groups is None else tuple(map(str, groups)),
        scores=None if scores is None else _numbers(file, scores),
        test=None if splits is None else tuple(_is_test(file, value) for value in splits),
    )


def _column(file: Path, rows: list[Row], name: str, missing_in: Callable[[Any], bool] = is_missing) -> tuple[Any, ...]:
    values = tuple(row.get(name) for row in rows)
    if not any(name in row for row in rows):
        raise CohegraphError(f"{file} has no column '{name}': its columns are {', '.join(map(str, rows[0]))}.")
    missing = [number for number, value in enumerate(values, start=1) if missing_in(value)]
    if missing:
        raise CohegraphError(
            f"{file}: {len(missing)} rows have no {name} (the first: row {missing[0]}): fill or remove them."
        )
    return values


def _texts(file: Path, values: tuple[Any, ...], name: str) -> tuple[str, ...]:
    for number, value in enumerate(values, start=1):
        if not isinstance(value, str):
            kind = _KINDS.get(type(value), "a number")
            raise CohegraphError(
                f"{file}: the {name} of row {number} is {kind}, not a text: mend the row, or name another column."
            )
    return values


def _numbers(file: Path, values: tuple[Any, ...]) -> tuple[float, ...]:
    try:
        numbers = tuple(float(value) for value in values)
    except (TypeError, ValueError):
        raise CohegraphError(f"{file}: the scores are not all numbers.") from None
    if not np.isfinite(numbers).all():
        raise CohegraphError(f"{file}: the scores are not all finite numbers.")
    return numbers


def _is_test(file: Path, value: Any) -> bool:
    word = str(value).strip().lower()
    if word not in _TEST_WORDS:
        raise CohegraphError(f"{file}: the split '{value}' is neither train nor test.")
    return _TEST_WORDS[word]
