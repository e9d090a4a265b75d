"""Documents with what features need to know of them: which columns of tables hold what."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from cohegraph.corpora.stream import Documents, Entry, checked
from cohegraph.corpora.tables import is_missing
from cohegraph.errors import CohegraphError
from cohegraph.labels import is_missing_label
from cohegraph.text.document import well_formed

_LABEL = "label"


@dataclass(frozen=True)
class GivenDocument:
    """A document of a corpus: its text, and what is said of it."""

    text: str
    id: str | None = None
    label: Any = None
    group: str | None = None


@dataclass(frozen=True)
class Columns:
    """Which columns of tables hold what; without ``label``, the column of this name where there is one.

    Documents without any text are left out with ``skip_empty``, and are an error without.
    """

    text: str = "text"
    label: str | None = None
    group: str | None = None
    id: str | None = None
    skip_empty: bool = False

    @property
    def required(self) -> list[str]:
        """Columns that must be there."""
        return [self.text, *(name for name in (self.label, self.group, self.id) if name)]

    def documents(self, names: Iterable[str]) -> Documents:
        """The documents of files, folders and tables; an error where one cannot be read."""
        found = Documents(names, self.text, self.required[1:], () if self.label else (_LABEL,))
        for problem in found.problems:
            raise CohegraphError(problem)
        return found

    def checked(self, names: Iterable[str]) -> Documents:
        """The same, all of which are looked at: an error where some have no text, unless these are to be skipped."""
        found = self.documents(names)
        problems = []
        for entry in found:
            self.given(entry)
            problems += [entry.problem] if entry.is_empty else []
        if problems and not self.skip_empty:
            raise CohegraphError(
                f"{len(problems)} of {len(found)} documents have no text (the first: {problems[0].rstrip('.')}): mend "
                "or remove them, or leave them out with --skip-empty."
            )
        if problems:
            found.remarks.append(f"{len(problems)} of {len(found)} documents have no text and are left out.")
        return found

    def entry(self, row: Mapping[str, Any]) -> Entry:
        """A row of a table that others have read."""
        plain = {name: value.item() if isinstance(value, np.generic) else value for name, value in row.items()}
        return checked(Entry("A row", plain[self.text] if isinstance(plain[self.text], str) else "", fields=plain))

    def given(self, entry: Entry) -> GivenDocument:
        """A document as features need it; an error where it cannot be read.

        Of rows, the id is the column's, or none; a text file, which has no columns, goes by its name.
        """
        if entry.problem and not entry.is_empty:
            raise CohegraphError(entry.problem)
        label, group, name = (entry.fields.get(column or "") for column in (self.label or _LABEL, self.group, self.id))
        for column, value in ((self.group, group), (self.id, name)):
            if column and is_missing(value) and entry.fields and not entry.problem:
                raise CohegraphError(f"{entry.name} has no {column}: fill it in, or leave out the column's option.")
        if not isinstance(label, str | int | float | None):
            raise CohegraphError(f"The label of {entry.name} is neither a word nor a number: mend it.")
        return GivenDocument(
            entry.text,
            entry.name if not entry.fields else well_formed(str(name)) if self.id else None,
            None if is_missing_label(label) else well_formed(label) if isinstance(label, str) else label,
            well_formed(str(group)) if self.group else None,
        )

    def read(self, documents: Documents) -> Iterator[GivenDocument]:
        """The documents one after the other."""
        for entry in documents:
            given = self.given(entry)
            if not self.is_left_out(entry.problem):
                yield given

    def is_left_out(self, problem: str) -> bool:
        """Whether a document is left out for want of text; an error where it is not to be."""
        if problem and not self.skip_empty:
            raise CohegraphError(f"{problem.rstrip('.')}: mend or remove it, or leave it out with --skip-empty.")
        return bool(problem)
