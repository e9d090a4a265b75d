"""Documents of any number, one after the other: text files, folders of them, and tables, one row a document.

Tables are looked through once before, so that what is wrong with them is known before any work is done, and how many
documents there are is known for those who wait. Of the documents themselves, one is held at a time.
"""

import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain, count
from pathlib import Path

from cohegraph.corpora.columns import ROLES, Columns, Entry, with_text
from cohegraph.corpora.tables import Row, check_table, decoded, is_table, read_plain_text, read_rows, refuse
from cohegraph.errors import CohegraphError
from cohegraph.strings import printable

STANDARD_INPUT = "-"


@dataclass(frozen=True, slots=True)
class _Part:
    """A file, with the number of its documents, or why it cannot be read."""

    name: str
    documents: int = 1
    error: CohegraphError | None = None


class Documents:
    """The documents of files, folders and tables, in order.

    Iterating gives every document, also those that cannot be used, which have an ``error``; `usable` gives the others.

    Args:
        names: The files; ``-`` is standard input, one text.
        columns: The columns of tables.
        spare_others: Whether a row that cannot be read is a document with an error; otherwise its table is.
    """

    def __init__(self, names: Iterable[str], columns: Columns | None = None, *, spare_others: bool = False) -> None:
        self.columns = columns or Columns()
        self._bad_row = _UnreadableRow if spare_others else refuse
        self._remarks: list[str] = []
        self._left_out: list[str] = []
        self._standard_input: bytes | None = None
        self._parts = [part for name in names for part in self._looked_at(name)]

    def __len__(self) -> int:
        return sum(part.documents for part in self._parts)

    @property
    def remarks(self) -> list[str]:
        """What a user should know of the choice of files, and of what `usable` has left out."""
        return [*self._remarks, *self._left_out]

    def are_read_from(self, file: Path) -> bool:
        """Whether a file is one of those that are read."""
        places = (Path(part.name) for part in self._parts if part.name != STANDARD_INPUT)
        return file.exists() and any(place.exists() and place.samefile(file) for place in places)

    def check(self) -> None:
        """Look at all documents before any work is done: an error where one cannot be used and is not to be skipped."""
        for _ in self.usable():
            pass

    def usable(self, *, labelled: bool = False) -> Iterator[Entry]:
        """The documents but for those to be skipped; an error where others cannot be used.

        What documents lack is counted first, and said of all of them at the end. A text file goes by its name.

        Args:
            labelled: Whether they must have a label.
        """
        for part in self._parts:
            if part.error is not None:
                raise part.error
        first, lacking = dict[str, tuple[Entry, CohegraphError]](), Counter[str]()
        for entry in self:
            fault = self.columns.fault(entry, labelled=labelled)
            if fault is None:
                yield entry if entry.row else replace(entry, id=entry.name)
                continue
            role = fault.code.removeprefix("missing-")
            if role not in ROLES:
                raise fault
            first.setdefault(role, (entry, fault))
            lacking[role] += 1
        self._left_out = []
        for role, (entry, fault) in first.items():
            some = f"{lacking[role]} of {len(self)} documents"
            if self.columns.skips(fault):
                self._left_out.append(f"{some} have no {role} and are left out.")
            elif lacking[role] == 1:
                raise fault
            else:
                raise self.columns.lacking(role, f"{some} (the first: {entry.name}) have")

    def __iter__(self) -> Iterator[Entry]:
        for part, shown in zip(self._parts, _unique(map(_shown, self._parts)), strict=True):
            try:
                if part.error is not None:
                    raise part.error
                yield from self._entries(part, shown)
            except CohegraphError as error:
                yield Entry(shown, error=error.with_traceback(None))

    def _entries(self, part: _Part, shown: str) -> Iterator[Entry]:
        if part.name == STANDARD_INPUT:
            if self._standard_input is None:
                self._standard_input = sys.stdin.buffer.read()
            yield with_text(Entry(shown, decoded(self._standard_input, "Standard input")))
        elif not is_table(Path(part.name)):
            yield with_text(Entry(shown, read_plain_text(Path(part.name))))
        else:
            number, columns, bad_row = 0, self.columns, self._bad_row
            rows = read_rows(Path(part.name), columns=columns.required, optional=columns.optional, bad_row=bad_row)
            for number, row in enumerate(rows, start=1):
                name = f"{shown}:{number}"
                if isinstance(row, _UnreadableRow):
                    yield Entry(name, row=number, error=row.error)
                else:
                    yield self.columns.entry(name, row, number)
            if number != part.documents:
                message = f"{shown} changed while it was being read: run the same command again."
                raise CohegraphError(message, code="changed-file")

    def _looked_at(self, name: str) -> Iterator[_Part]:
        file = Path(name)
        if "://" in name:
            message = f"{name} is an address: only 'cohegraph featurize --engine ray' reads addresses."
            yield _Part(name, error=CohegraphError(message, code="is-an-address"))
        elif name != STANDARD_INPUT and _is_folder(file):
            texts, tables = sorted(file.rglob("*.txt")), sorted(path for path in file.rglob("*") if is_table(path))
            if texts and tables:
                # The tables are usually about the texts.
                remark = f"{file} has text files and tables: the {len(texts)} text files are read, no table."
                self._remarks.append(printable(remark))
            if not texts and not tables:
                empty = CohegraphError(f"The folder {file} has no .txt file and no table.", code="empty-folder")
                yield _Part(name, error=empty)
            for path in texts or tables:
                yield from self._looked_at(str(path))
        elif name != STANDARD_INPUT and is_table(file):
            try:
                yield _Part(name, check_table(file, self.columns.required, bad_row=self._bad_row))
            except CohegraphError as error:
                yield _Part(name, error=error.with_traceback(None))
        else:
            yield _Part(name)


class _UnreadableRow(Row):
    """The place of a row that cannot be read."""

    def __init__(self, error: CohegraphError) -> None:
        super().__init__()
        self.error = error


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


def _is_folder(file: Path) -> bool:
    try:
        return file.is_dir()
    except OSError:  # a name too long to be one, which reading it will say
        return False
