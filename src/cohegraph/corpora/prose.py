"""Prose: texts with the works and sources that they belong to."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from cohegraph.corpora.columns import Columns, Entry
from cohegraph.corpora.stream import Documents


@dataclass(frozen=True, slots=True)
class ProseText:
    """A text, the work that it is a part of, and where the work comes from."""

    id: str
    work: str
    source: str
    text: str


def prose_columns(
    text: str = "text", id: str | None = None, work: str | None = None, source: str | None = None
) -> Columns:
    """The columns of tables of prose; those that are not named are read where tables have the usual names."""
    optional = frozenset(role for role, name in (("id", id), ("work", work), ("source", source)) if name is None)
    return Columns(
        text,
        id=id or "id",
        work=work or "work",
        source=source or "source",
        optional_roles=optional,
        skip_empty=True,
    )


def prose_documents(names: Iterable[str], columns: Columns | None = None) -> Documents:
    """The documents of tables, text files and folders of either."""
    return Documents(names, columns or prose_columns())


def read_prose(documents: Documents) -> Iterator[ProseText]:
    """The texts of documents, one after the other.

    Without columns of their own, a work is the id up to its last slash and a source the id up to its first. Where ids
    have no slash, each text is its own work, and a table or a folder is a source. So it is with text files.
    """
    for entry in documents.usable():
        known = entry.row and entry.id is not None
        id = entry.id if entry.id is not None else entry.name
        work, source = (id.rpartition("/")[0], id.partition("/")[0]) if known and "/" in id else (id, _place(entry))
        work, source = (_given(entry, role) or usual for role, usual in (("work", work), ("source", source)))
        yield ProseText(id, work, source, entry.text)


def _given(entry: Entry, role: str) -> str:
    value = entry.further.get(role)
    return "" if value is None else str(value)


def _place(entry: Entry) -> str:
    """The table of a row, or the folder of a text file."""
    return entry.name.rpartition(":")[0] if entry.row else entry.name.rpartition("/")[0]
