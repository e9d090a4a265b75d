"""A graded corpus as experiments take it, and what all readers of corpora share."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from cohegraph.corpora.tables import Row, is_missing, read_rows
from cohegraph.errors import CohegraphError

_NAMED = 3


@dataclass(frozen=True)
class Corpus:
    """Graded documents, in the order of their file.

    ``sections`` names the section of each document: a part of the corpus (a domain, a prompt) in which systems are
    trained and tested by themselves, a column of a table of results. ``groups`` names what may not be on both sides of
    a fold (a prompt, an author), ``test`` marks the documents that the corpus's owners set apart for testing, and
    ``scores`` are the graders' numbers behind the labels. ``levels`` are the labels from low to high.
    """

    name: str
    ids: tuple[str, ...]
    texts: tuple[str, ...]
    labels: tuple[str, ...]
    levels: tuple[str, ...]
    sections: tuple[str, ...]
    ordered: bool = True
    groups: tuple[str, ...] | None = None
    test: tuple[bool, ...] | None = None
    scores: tuple[float, ...] | None = None
    section_names: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "section_names", tuple(dict.fromkeys(self.sections)))
        for column in (self.texts, self.labels, self.sections, self.groups, self.test, self.scores):
            if column is not None and len(column) != len(self.ids):
                raise ValueError("the columns of a corpus differ in length")
        unknown = sorted(set(self.labels) - set(self.levels))
        if unknown:
            raise CohegraphError(f"{self.name} has the label '{unknown[0]}', which is none of its levels.")
        twice = [name for name, count in Counter(self.ids).items() if count > 1]
        if twice:
            raise CohegraphError(f"{self.name} has two documents with the id '{twice[0]}'.")

    def __len__(self) -> int:
        return len(self.ids)

    def rows_of(self, section: str) -> npt.NDArray[np.int64]:
        """The numbers of the documents of a section."""
        return np.flatnonzero(np.array(self.sections) == section)

    @property
    def codes(self) -> npt.NDArray[np.int64]:
        """Each document's place among the levels."""
        return np.array([self.levels.index(label) for label in self.labels], dtype=np.int64)

    @property
    def fingerprint(self) -> str:
        """Changes when a text, a label, a section, a group or the order of documents changes."""
        digest = hashlib.sha256()
        for column in (self.ids, self.texts, self.labels, self.levels, self.sections, self.groups, self.test):
            digest.update(repr(column).encode("utf-8", "surrogatepass"))
        return digest.hexdigest()

    def only(self, sections: Sequence[str]) -> Corpus:
        """Some sections of the corpus, in the order given."""
        for name in sections:
            if name not in self.section_names:
                raise CohegraphError(
                    f"{self.name} has no section '{name}': choose from {', '.join(self.section_names)}."
                )
        rows = [row for name in sections for row in self.rows_of(name).tolist()]
        return Corpus(
            name=self.name,
            levels=self.levels,
            ordered=self.ordered,
            ids=_pick(self.ids, rows),
            texts=_pick(self.texts, rows),
            labels=_pick(self.labels, rows),
            sections=_pick(self.sections, rows),
            groups=None if self.groups is None else _pick(self.groups, rows),
            test=None if self.test is None else _pick(self.test, rows),
            scores=None if self.scores is None else _pick(self.scores, rows),
        )


def _pick(column: Sequence[Any], rows: Sequence[int]) -> tuple[Any, ...]:
    return tuple(column[row] for row in rows)


def rows_with(file: Path, columns: Mapping[str, Sequence[str]], corpus: str) -> list[Row]:
    """The rows of an official file, each with the wanted columns under the names of ``columns``.

    Args:
        file: The table.
        columns: For each wanted name the names it may have in the file, whatever their case.
        corpus: What the file should be of, for the message where it is not.
    """
    rows = list(read_rows(file, legacy=True))
    if not rows:
        raise CohegraphError(f"{file} has no rows: the download of {corpus} is not complete.")
    found = {str(name).strip().lower(): name for name in rows[0]}
    chosen: dict[str, str] = {}
    for wanted, names in columns.items():
        match = next((found[name.lower()] for name in names if name.lower() in found), None)
        if match is None:
            raise CohegraphError(
                f"{file} is not a file of {corpus} as it is given out: it has no column '{names[0]}' "
                f"(its columns: {', '.join(map(str, rows[0]))})."
            )
        chosen[wanted] = match
    return [{wanted: row.get(name) for wanted, name in chosen.items()} for row in rows]


def text_of(row: Row, file: Path, name: str) -> str:
    """The text of a row, which must be there."""
    text = row["text"]
    if not isinstance(text, str) or is_missing(text):
        raise CohegraphError(f"{file}: {name} has no text: the file is damaged or not complete.")
    return text


def number_of(row: Row, column: str, file: Path, name: str, *, low: float, high: float, whole: bool = False) -> float:
    """A score of a row, which must be a number, or a ``whole`` number, from ``low`` to ``high``."""
    try:
        value = float(str(row[column]).strip())
    except ValueError:
        value = float("nan")
    if not low <= value <= high or (whole and value != int(value)):
        kind = "whole number" if whole else "number"
        raise CohegraphError(
            f"{file}: the {column} of {name} is '{row[column]}', not a {kind} from {low:g} to {high:g}."
        )
    return value


def check_sizes(
    found: Mapping[str, int], published: Mapping[str, Sequence[int]], corpus: str, *, partial: bool
) -> None:
    """Raise where a part of a corpus is not as large as published, unless a partial corpus was asked for."""
    wrong = [
        f"{part} has {found.get(part, 0):,} documents instead of {sizes[0]:,}"
        for part, sizes in published.items()
        if found.get(part, 0) not in sizes
    ]
    if wrong and not partial:
        more = f" and {len(wrong) - _NAMED} more parts differ" if len(wrong) > _NAMED else ""
        raise CohegraphError(
            f"This is not the whole of {corpus}: {', '.join(wrong[:_NAMED])}{more}. Download it again, or say "
            "partial = true (--partial) to use it as it is."
        )
