"""Prose: texts with the works and sources that they belong to."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from cohegraph.corpora.columns import Columns, Entry
from cohegraph.corpora.stream import Documents
from cohegraph.errors import CohegraphError


@dataclass(frozen=True, slots=True)
class ProseText:
    """A text, the work that it is a part of, and where the work comes from; and its split, where that is read."""

    id: str
    work: str
    source: str
    text: str
    split: str = ""


def prose_columns(
    text: str = "text",
    id: str | None = None,
    work: str | None = None,
    source: str | None = None,
    split: str | None = None,
) -> Columns:
    """The columns of tables of prose; those that are not named are read where tables have the usual names."""
    optional = frozenset(role for role, name in (("id", id), ("work", work), ("source", source)) if name is None)
    return Columns(
        text,
        id=id or "id",
        work=work or "work",
        source=source or "source",
        split=split,
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
        yield ProseText(id, work, source, entry.text, _given(entry, "split"))


def collect_prose(documents: Documents) -> list[ProseText]:
    """All texts of documents; an error where two have the same id."""
    texts = list(read_prose(documents))
    numbers = Counter(text.id for text in texts)
    if len(numbers) < len(texts):
        twice = next(id for id, number in numbers.items() if number > 1)
        raise CohegraphError(
            f"Two texts have the id '{twice}': name a column with --id-column in which ids differ, also between files.",
            code="same-ids",
        )
    return texts


def sample(texts: Sequence[ProseText], number: int, seed: int) -> list[ProseText]:
    """So many texts in their order; which ones depends on their ids and the seed."""
    ranked = sorted(texts, key=lambda text: hashlib.sha256(f"{seed}\0{text.id}".encode()).digest())
    wanted = {text.id for text in ranked[:number]}
    return [text for text in texts if text.id in wanted]


def split_by_work(texts: Sequence[ProseText], share: float) -> tuple[list[ProseText], list[ProseText]]:
    """Texts to learn from, and a share of the works to measure on; which works depends on their names alone.

    With two or more works there is at least one on each side, unless the share is 0.
    """
    works = {(text.source, text.work) for text in texts}
    ranked = sorted(works, key=lambda work: hashlib.sha256("\0".join(work).encode("utf-8", "surrogatepass")).digest())
    number = min(max(round(share * len(works)), 1), len(works) - 1) if share else 0
    held_out = set(ranked[:number])
    parts = list[ProseText](), list[ProseText]()
    for text in texts:
        parts[(text.source, text.work) in held_out].append(text)
    return parts


def _given(entry: Entry, role: str) -> str:
    value = entry.further.get(role)
    return "" if value is None else str(value)


def _place(entry: Entry) -> str:
    """The table of a row, or the folder of a text file."""
    return entry.name.rpartition(":")[0] if entry.row else entry.name.rpartition("/")[0]
