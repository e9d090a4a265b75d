"""A graded corpus in memory, and what all readers of corpora share."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from cohegraph.corpora.columns import Entry
from cohegraph.corpora.tables import Row, is_missing, missing_column, read_rows
from cohegraph.errors import CohegraphError

LEVELS = ("low", "medium", "high")
_NAMED = 3
# The columns of a corpus, in the order of the fields of `Labelled`.
_COLUMNS = ("ids", "texts", "labels", "sections", "groups", "test", "scores")


class Labelled(NamedTuple):
    """What a `Corpus` holds of one document; what one document lacks, all documents of the corpus lack."""

    id: str
    text: str
    label: Any
    section: str = "all"
    group: str | None = None
    test: bool | None = None
    score: float | None = None


@dataclass(frozen=True)
class Corpus:
    """Graded documents, in the order of their file.

    ``sections`` names the section of each document: a part of the corpus (a domain, a prompt) in which systems are
    trained and tested by themselves, a column of a table of results. ``groups`` names what may not be on both sides of
    a fold (a prompt, an author), ``test`` marks the documents that the corpus's owners set apart for testing, and
    ``scores`` are the graders' numbers behind the labels. ``levels`` are the labels from low to high: words, numbers or
    truth values, as they were given; there are none where the labels are ratings. Iterating gives one `Entry` per
    document.
    """

    name: str
    ids: tuple[str, ...]
    texts: tuple[str, ...]
    labels: tuple[Any, ...]
    levels: tuple[Any, ...]
    sections: tuple[str, ...]
    ordered: bool = True
    groups: tuple[str, ...] | None = None
    test: tuple[bool, ...] | None = None
    scores: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        if len({len(column) for name in _COLUMNS if (column := getattr(self, name)) is not None}) > 1:
            raise ValueError("the columns of a corpus differ in length")
        for label in set(self.labels) - set(self.levels) if self.levels else ():
            raise CohegraphError(f"The label '{label}' is not a level of {self.name}.", code="unknown-level")

    @classmethod
    def of(cls, name: str, documents: Sequence[Labelled], levels: Sequence[Any] = LEVELS, ordered: bool = True) -> Self:
        """The corpus of these documents, in their order."""
        if not documents:
            raise CohegraphError(f"{name} has no labelled documents.", code="no-documents")
        columns = dict(zip(_COLUMNS, zip(*documents, strict=True), strict=True))
        known = {name: column for name, column in columns.items() if column[0] is not None}
        return cls(name=name, levels=tuple(levels), ordered=ordered, **known)

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self) -> Iterator[Entry]:
        groups = self.groups or (None,) * len(self)
        for row, (name, text, label, group) in enumerate(zip(self.ids, self.texts, self.labels, groups, strict=True)):
            yield Entry(name, text, name, label, group, row + 1)

    @cached_property
    def section_names(self) -> tuple[str, ...]:
        """The names of the sections, in the order of their first documents."""
        return tuple(dict.fromkeys(self.sections))

    def rows_of(self, section: str) -> npt.NDArray[np.int64]:
        """The numbers of the documents of a section."""
        return np.flatnonzero(np.array(self.sections) == section)

    @property
    def codes(self) -> npt.NDArray[np.int64]:
        """Each document's place among the levels."""
        return np.array([self.levels.index(label) for label in self.labels], dtype=np.int64)

    @property
    def known_groups(self) -> list[str] | None:
        """The groups, where documents have any."""
        return None if self.groups is None else list(self.groups)

    @property
    def fingerprint(self) -> str:
        """Changes when a text, a label, a section, a group or the order of documents changes."""
        digest = hashlib.sha256()
        for column in (self.ids, self.texts, self.labels, self.levels, self.sections, self.groups, self.test):
            digest.update(repr(column).encode("utf-8", "surrogatepass"))
        return digest.hexdigest()

    def only(self, sections: Sequence[str]) -> Self:
        """Some sections of the corpus, in the order given."""
        check_sections(sections, self.section_names, self.name)
        return self.at([row for name in sections for row in self.rows_of(name).tolist()])

    def at(self, rows: Sequence[int]) -> Self:
        """Some documents of the corpus, by their numbers, in the order given."""
        chosen: dict[str, Any] = {
            name: tuple(column[row] for row in rows) for name in _COLUMNS if (column := getattr(self, name))
        }
        return replace(self, **chosen)

    def in_words(self) -> Self:
        """The same with labels and levels as words, as tables and figures show them."""
        return replace(self, labels=tuple(map(str, self.labels)), levels=tuple(map(str, self.levels)))


class OfficialRow(Row):
    """The wanted columns of a row of an official file, and its ``place``: the file and the number of the row."""

    def __init__(self, values: Row, place: str) -> None:
        super().__init__(values)
        self.place = place

    def text(self) -> str:
        """The text, which must be there."""
        if not isinstance(self["text"], str) or is_missing(self["text"]):
            raise CohegraphError(f"{self.place} has no text: the file is damaged or incomplete.", code="missing-text")
        return self["text"]

    def number(self, column: str, low: float, high: float, *, whole: bool = False) -> float:
        """A score, which must be a number, or a ``whole`` number, from ``low`` to ``high``."""
        try:
            value = float(str(self[column]).strip())
        except ValueError:
            value = float("nan")
        if not low <= value <= high or (whole and value != int(value)):
            wanted = f"a {'whole ' if whole else ''}number from {low:g} to {high:g}"
            message = f"{self.place}: the {column} is '{self[column]}', not {wanted}."
            raise CohegraphError(message, code="not-a-number")
        return value


def official_rows(file: Path, columns: Mapping[str, Sequence[str]], corpus: str) -> list[OfficialRow]:
    """The rows of an official file, each with the wanted columns under the names of ``columns``.

    Args:
        file: The table.
        columns: For each wanted name the names it may have in the file, whatever their case.
        corpus: What the file should be of, for the message where it is not.
    """
    rows = list(read_rows(file, legacy=True))
    if not rows:
        raise CohegraphError(f"{file} has no rows: the download of {corpus} is not complete.", code="no-rows")
    found = {str(name).strip().lower(): name for name in rows[0]}
    chosen: dict[str, str] = {}
    for wanted, names in columns.items():
        match = next((found[name.lower()] for name in names if name.lower() in found), None)
        if match is None:
            raise missing_column(f"{file} is not an official file of {corpus}: it", names[0], map(str, rows[0]))
        chosen[wanted] = match
    return [
        OfficialRow({wanted: row.get(name) for wanted, name in chosen.items()}, f"{file}, row {number}")
        for number, row in enumerate(rows, start=1)
    ]


def check_sizes(corpus: str, found: Mapping[str, int], published: Mapping[str, Sequence[int]], partial: bool) -> None:
    """Raise where a part of a corpus is not as large as published, unless a partial corpus was asked for."""
    wrong = [
        f"{part} has {found.get(part, 0):,} documents instead of {sizes[0]:,}"
        for part, sizes in published.items()
        if found.get(part, 0) not in sizes
    ]
    if wrong and not partial:
        more = f" and {len(wrong) - _NAMED} more parts differ" if len(wrong) > _NAMED else ""
        raise incomplete(f"This is not the whole of {corpus}: {', '.join(wrong[:_NAMED])}{more}")


def check_sections(wanted: Sequence[str], known: Sequence[str], corpus: str) -> None:
    """Raise where a section is wanted that a corpus does not have."""
    for name in wanted:
        if name not in known:
            choice = ", ".join(known)
            raise CohegraphError(f"{corpus} has no section '{name}': choose from {choice}.", code="unknown-section")


def incomplete(what: str) -> CohegraphError:
    """The error of a corpus that is not the whole that was published."""
    remedy = "download it again, or say partial = true (--partial) to use it as it is."
    return CohegraphError(f"{what}: {remedy}", code="incomplete-corpus")
