"""Documents of any number, one after the other: text files, folders of them, and tables, one row a document.

Tables are looked through once before, so that what is wrong with them is known before any work is done, and how many
documents there are is known for those who wait. Of the documents themselves, one is held at a time.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, count
from pathlib import Path

from cohegraph.corpora.tables import Row, check_table, decoded, is_missing, is_table, read_plain_text, read_rows, refuse
from cohegraph.errors import CohegraphError

STANDARD_INPUT = "-"


@dataclass(frozen=True, slots=True)
class Entry:
    """A document, or why there is none: it is empty, or cannot be read.

    ``fields`` are the other columns that were asked for.
    """

    name: str
    text: str = ""
    problem: str = ""
    fields: Row = field(default_factory=dict)
    id: str | None = None
    is_empty: bool = False

    @property
    def text_sha256(self) -> str:
        """The hash of its text."""
        return hashlib.sha256(self.text.encode("utf-8", "surrogatepass")).hexdigest()

    @property
    def names(self) -> dict[str, str]:
        """Its name, and its id if it has one."""
        return {"document": self.name} | ({} if self.id is None else {"id": self.id})


@dataclass(frozen=True, slots=True)
class _Part:
    """A file, with the number of its documents, or why it cannot be read."""

    name: str
    documents: int = 1
    problem: str = ""


class Documents:
    """The documents of files, folders and tables, in order; ``remarks`` is what a user should know of their choice.

    Args:
        names: The files; ``-`` is standard input, one text.
        text_column: The column with the text, in tables.
        columns: Other columns to take along; a table without one of them is an error.
        optional: Columns to take along from tables that have them.
        id_column: The column with ids, in tables.
        spare_others: Whether a row that cannot be read is a document with a problem; otherwise its table is.
    """

    def __init__(
        self,
        names: Iterable[str],
        text_column: str = "text",
        columns: Sequence[str] = (),
        optional: Sequence[str] = (),
        *,
        id_column: str | None = None,
        spare_others: bool = False,
    ) -> None:
        self._id_column = id_column
        self._bad_row = _UnreadableRow if spare_others else refuse
        self._text_column, self._columns, self._optional = text_column, tuple(columns), tuple(optional)
        self.remarks: list[str] = []
        self._standard_input: bytes | None = None
        self._parts = [part for name in names for part in self._looked_at(name)]

    @property
    def _wanted(self) -> tuple[str, ...]:
        """Columns that a table must have."""
        return (self._text_column, *self._columns, *([self._id_column] if self._id_column else []))

    def __len__(self) -> int:
        return sum(part.documents for part in self._parts)

    @property
    def problems(self) -> list[str]:
        """What is wrong with files of which nothing can be read."""
        return [part.problem for part in self._parts if part.problem]

    def are_read_from(self, file: Path) -> bool:
        """Whether a file is one of those that are read."""
        places = (Path(part.name) for part in self._parts if part.name != STANDARD_INPUT)
        return file.exists() and any(place.exists() and place.samefile(file) for place in places)

    def __iter__(self) -> Iterator[Entry]:
        for part, shown in zip(self._parts, _unique(map(_shown, self._parts)), strict=True):
            if part.problem:
                yield Entry(shown, problem=part.problem)
                continue
            try:
                yield from self._entries(part, shown)
            except CohegraphError as error:
                yield Entry(shown, problem=printable(str(error)))

    def _entries(self, part: _Part, shown: str) -> Iterator[Entry]:
        if part.name == STANDARD_INPUT:
            if self._standard_input is None:
                self._standard_input = sys.stdin.buffer.read()
            yield checked(Entry(shown, decoded(self._standard_input, "Standard input")))
        elif not is_table(Path(part.name)):
            yield checked(Entry(shown, read_plain_text(Path(part.name))))
        else:
            wanted = self._wanted
            rows = read_rows(Path(part.name), columns=wanted, optional=self._optional, bad_row=self._bad_row)
            number = 0
            for number, row in enumerate(rows, start=1):
                if isinstance(row, _UnreadableRow):
                    yield Entry(f"{shown}:{number}", problem=row.problem)
                    continue
                text = row.get(self._text_column)
                fields = {name: row.get(name) for name in (*self._columns, *self._optional)}
                name = row.get(self._id_column) if self._id_column else None
                known = None if is_missing(name) else printable(str(name))
                entry = Entry(f"{shown}:{number}", text if isinstance(text, str) else "", fields=fields, id=known)
                yield checked(entry)
            if number != part.documents:
                yield Entry(shown, problem=f"{shown} has changed while it was read: run the same command again.")

    def _looked_at(self, name: str) -> Iterator[_Part]:
        file = Path(name)
        if "://" in name:
            yield _Part(name, problem=f"{name} is an address, which 'cohegraph featurize --engine ray' reads, if any.")
        elif name != STANDARD_INPUT and _is_folder(file):
            texts, tables = sorted(file.rglob("*.txt")), sorted(path for path in file.rglob("*") if is_table(path))
            if texts and tables:
                # These are about the texts, more often than not.
                self.remarks.append(
                    printable(f"{file} has text files and tables: the {len(texts)} text files are read, no table.")
                )
            inside = texts or tables
            if not inside:
                yield _Part(name, problem=printable(f"The folder {file} has no .txt file and no table."))
            for path in inside:
                yield from self._looked_at(str(path))
        elif name != STANDARD_INPUT and is_table(file):
            try:
                yield _Part(name, check_table(file, self._wanted, bad_row=self._bad_row))
            except CohegraphError as error:
                yield _Part(name, problem=printable(str(error)))
        else:
            yield _Part(name)


class _UnreadableRow(Row):
    """The place of a row that cannot be read."""

    def __init__(self, error: CohegraphError) -> None:
        super().__init__()
        self.problem = printable(str(error))


def _shown(part: _Part) -> str:
    return "standard input" if part.name == STANDARD_INPUT else printable(part.name)


def _unique(names: Iterable[str]) -> Iterator[str]:
    """The names; one that was there before has a number."""
    taken = set[str]()
    for name in names:
        numbered = chain([name], (f"{name} ({number})" for number in count(2)))
        found = next(one for one in numbered if one not in taken)
        taken.add(found)
        yield found


def printable(name: str) -> str:
    """A name whose bytes are not text can be printed all the same."""
    return name.encode("utf-8", "replace").decode("utf-8")


def _is_folder(file: Path) -> bool:
    try:
        return file.is_dir()
    except OSError:  # a name too long to be one, which reading it will say
        return False


def checked(entry: Entry) -> Entry:
    """The entry, or one that says that it has no text."""
    if entry.text.strip():
        return entry
    return Entry(entry.name, problem=f"{entry.name} has no text to assess.", id=entry.id, is_empty=True)
