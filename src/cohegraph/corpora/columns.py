"""One document (`Entry`), and which columns of a table hold what (`Columns`): the rules for rows, for all commands."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from cohegraph.corpora.tables import is_missing
from cohegraph.errors import CohegraphError
from cohegraph.labels import Label, as_label
from cohegraph.strings import printable, well_formed

NO_TEXT = "missing-text"
_KINDS = {dict: "an object", list: "a list", bool: "true or false", int: "a number", float: "a number"}
_FURTHER = ("section", "score", "split", "work", "source")
ROLES = ("text", "label", "group", "id", *_FURTHER)
_REMEDIES = {
    "text": "fill it in, or skip such documents with --skip-empty (in experiment files: skip_empty = true).",
    "label": "name a table with a label in every row, or skip the others with --skip-unlabelled (in experiment files: "
    "skip_unlabelled = true).",
}
_REMEDY = "fill it in, or leave out the option that names the column."


@dataclass(frozen=True, slots=True)
class Entry:
    """A document with what is known of it, or why it cannot be used.

    ``name`` says where it is from, and ``row`` is its number in a table, 0 for a text file. ``further`` holds what only
    some commands take: section, score, split, work and source. Where the text is not kept, ``digest`` is its hash.
    """

    name: str
    text: str = ""
    id: str | None = None
    label: Label | None = None
    group: str | None = None
    row: int = 0
    further: Mapping[str, Any] = field(default_factory=dict)
    error: CohegraphError | None = None
    digest: str = ""

    @property
    def problem(self) -> str:
        """Why it cannot be used; empty where it can."""
        return "" if self.error is None else printable(str(self.error))

    @property
    def text_sha256(self) -> str:
        """The hash of its text, or as much of it as is known."""
        return self.digest or hashlib.sha256(self.text.encode("utf-8", "surrogatepass")).hexdigest()

    @property
    def names(self) -> dict[str, str]:
        """Its name, and its id if it has one."""
        return {"document": self.name} | ({} if self.id is None else {"id": self.id})


@dataclass(frozen=True)
class Columns:
    """The names of the columns of tables; those that are not named are not read.

    A table must have every column that is named, except for the label with ``optional_label``, and for those of
    ``optional_roles``. Documents without a text or label are left out with ``skip_empty`` and ``skip_unlabelled``, and
    are an error without.
    """

    text: str = "text"
    label: str | None = None
    group: str | None = None
    id: str | None = None
    section: str | None = None
    score: str | None = None
    split: str | None = None
    optional_label: bool = False
    skip_empty: bool = False
    skip_unlabelled: bool = False
    work: str | None = None
    source: str | None = None
    optional_roles: frozenset[str] = frozenset()

    @property
    def _named(self) -> dict[str, str]:
        return {role: name for role in ROLES if (name := getattr(self, role))}

    @property
    def required(self) -> list[str]:
        """Columns that a table must have."""
        return [name for role, name in self._named.items() if not self._is_optional(role)]

    @property
    def optional(self) -> list[str]:
        """Columns that a table may have."""
        return [name for role, name in self._named.items() if self._is_optional(role)]

    def _is_optional(self, role: str) -> bool:
        return role in self.optional_roles or (role == "label" and self.optional_label)

    def entry(self, name: str, row: Mapping[str, Any], number: int) -> Entry:
        """The document of a row."""
        values = {role: row.get(column) for role, column in self._named.items()}
        found = {role: value.item() if isinstance(value, np.generic) else value for role, value in values.items()}
        text, known = found["text"], _word(found.get("id"))
        try:
            label = as_label(found.get("label"), name)
            if not isinstance(text, str) and not is_missing(text):
                kind = _KINDS.get(type(text), "something else")
                raise CohegraphError(f"The {self.text} of {name} is {kind}, not a text.", code="not-a-text")
        except CohegraphError as error:
            return Entry(name, id=known, row=number, error=error.with_traceback(None))
        further = {role: found[role] for role in _FURTHER if role in found}
        text = text if isinstance(text, str) else ""
        return with_text(Entry(name, text, known, label, _word(found.get("group")), number, further))

    def fault(self, entry: Entry, *, labelled: bool = False) -> CohegraphError | None:
        """What keeps a document from being used: a row must have all that is named, and a label if so asked.

        Of several faults, one for which it is skipped comes first.
        """
        if entry.error is not None and entry.error.code != NO_TEXT:
            return entry.error
        values = {"text": entry.text, "label": entry.label, "group": entry.group, "id": entry.id, **entry.further}
        needed = {**dict.fromkeys(self.optional_roles, False), "text": True, "label": labelled}
        missing = [role for role in self._named if needed.get(role, entry.row) and is_missing(values.get(role))]
        faults = [self.lacking(role, f"{entry.name} has") for role in missing]
        return next((fault for fault in faults if self.skips(fault)), faults[0] if faults else None)

    def skips(self, fault: CohegraphError) -> bool:
        """Whether documents with this fault are left out."""
        return (self.skip_empty and fault.code == NO_TEXT) or (self.skip_unlabelled and fault.code == "missing-label")

    def lacking(self, role: str, who_have: str) -> CohegraphError:
        """The error of documents without one of their columns."""
        remedy = _REMEDIES.get(role, _REMEDY)
        return CohegraphError(f"{who_have} no {self._named[role]}: {remedy}", code=f"missing-{role}")


def with_text(entry: Entry) -> Entry:
    """The entry, or one that says that it has no text."""
    if entry.text.strip():
        return entry
    return replace(entry, text="", error=CohegraphError(f"{entry.name} has no text.", code=NO_TEXT))


def _word(value: Any) -> str | None:
    return None if is_missing(value) else well_formed(str(value))
