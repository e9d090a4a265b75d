"""From a corpus of any number of documents to a store of features.

Whatever a store holds already is found by the hashes of texts and of all that shapes features, and is not computed
again: a run that was stopped goes on, documents that are added or moved cost nothing but themselves, and another delta
does not encode again. Shards are cut by the number of documents alone, so that the files are the same, byte for byte,
whoever computed them and however often the work was interrupted.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from cohegraph.corpora.stream import Documents, Entry, checked
from cohegraph.corpora.tables import is_missing
from cohegraph.errors import CohegraphError, DamagedFileError
from cohegraph.features import OF_ENCODER, Featurizer
from cohegraph.labels import is_missing_label
from cohegraph.progress import track
from cohegraph.scale.engine import BATCH, Halves, LocalEngine, Request, batches, whole_features
from cohegraph.scale.feature_store import (
    Contents,
    check_target,
    only_writer,
    remove_others,
    shards_named,
    write_contents,
)
from cohegraph.scale.halves import Arrays
from cohegraph.scale.keys import structure_shape, vector_shape
from cohegraph.scale.shards import Shard, is_whole, key_of, opened_shard, read_shard, shards_in, write_shard
from cohegraph.text.document import well_formed

# Documents in a file.
SHARD = 512
_LABEL = "label"
Places = npt.NDArray[np.int64]


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


@dataclass(frozen=True)
class KeyedDocument:
    """A document without its text; ``key`` is the text's hash."""

    key: bytes
    id: str | None = None
    label: Any = None
    group: str | None = None


@dataclass(frozen=True)
class Featurized:
    """What was done: documents, and how many of them had at least one half computed; files that were damaged."""

    documents: int
    computed: int
    damaged: int


class Source(Protocol):
    """Where documents come from, with the halves of their features that are not known yet."""

    @property
    def remarks(self) -> Sequence[str]:
        """What a user should know of what is read."""

    def __len__(self) -> int:
        """How many documents there are."""

    def computed(self, known: Known) -> Iterator[tuple[Sequence[KeyedDocument], Halves]]:
        """All documents in order, some at a time."""


@dataclass(frozen=True)
class LocalSource:
    """Documents that this process reads, and worker processes of this machine compute."""

    documents: Iterable[GivenDocument]
    total: int
    engine: LocalEngine
    remarks: Sequence[str] = ()

    def __len__(self) -> int:
        return self.total

    def computed(self, known: Known) -> Iterator[tuple[Sequence[KeyedDocument], Halves]]:
        """See `Source`."""
        requests = (_request(some, known) for some in batches(self.documents, BATCH))
        for request, halves in self.engine.computed(requests):
            yield request.about, halves


class Known:
    """Which halves of which texts are in shards already: hashes of texts, and where each is.

    Args:
        files: Shards that are whole.
        named: The names of those that the corpus consists of so far.
        structure: The hash of all that shapes structures now.
        vector: Likewise vectors.
    """

    def __init__(self, files: Sequence[Path], named: Collection[str], structure: str, vector: str) -> None:
        self._files = files
        structures, vectors, corpus = [], [], []
        for number, file in enumerate(files):
            try:
                shard = read_shard(file)
            except DamagedFileError:  # of another version; it will be removed
                continue
            rows = np.arange(len(shard))
            found = np.vstack([_pairs(shard.keys), np.full(len(rows), number), rows])
            if file.name in named:
                corpus.append(found)
            if shard.structure == structure:
                structures.append(found)
            if shard.vector == vector:
                vectors.append(found)
        self.structures, self.vectors, self.corpus = map(_sorted_places, (structures, vectors, corpus))

    def structure(self, key: bytes) -> Arrays | None:
        """The structure of a text."""
        found = self._found(self.structures, key)
        if found is None:
            return None
        shard, row = found
        low, high = shard.counts.indptr[row : row + 2]
        return {
            "patterns": np.array([shard.counts.shape[1]]),
            "indices": shard.counts.indices[low:high],
            "data": shard.counts.data[low:high],
            "tallies": shard.tallies[row, : -len(OF_ENCODER)],
        }

    def vector(self, key: bytes) -> Arrays | None:
        """The vector of a text."""
        found = self._found(self.vectors, key)
        if found is None:
            return None
        shard, row = found
        return {"vector": shard.vectors[row], "tokens": shard.tallies[row, -len(OF_ENCODER) :]}

    def _found(self, places: Places, key: bytes) -> tuple[Shard, int] | None:
        column = int(find(places, [key])[0])
        if column < 0:
            return None
        file, row = places[2:, column].tolist()
        return opened_shard(self._files[file]), row


def featurize(
    source: Source,
    featurizer: Featurizer,
    folder: Path,
    *,
    shard: int = SHARD,
    replace: bool = False,
    show_progress: bool = False,
) -> Featurized:
    """Write the features of all documents of a source to a store, or bring the store that is there up to date.

    Where that would remove most of the documents that are there, it is an error unless they are to be replaced, as soon
    as that is clear.
    """
    check_target(folder)
    hashes = [
        hashlib.sha256(shape.encode()).hexdigest() for shape in (structure_shape(featurizer), vector_shape(featurizer))
    ]
    with only_writer(folder):
        whole, damaged = _whole_shards(folder, show_progress)
        known = Known(whole, shards_named(folder), *hashes)
        writer = _Writer(folder, featurizer, known, hashes, shard)
        kept = _Kept(folder, known, len(source), replace)
        found = track(
            source.computed(known), "reading documents", len(source), size=lambda some: len(some[0]), show=show_progress
        )
        for documents, halves in found:
            kept.note(documents)
            writer.add(documents, halves)
        kept.check_at_the_end()
        writer.finish()
    return Featurized(writer.documents, writer.computed, damaged)


def keyed(document: GivenDocument) -> KeyedDocument:
    """A document without its text."""
    return KeyedDocument(key_of(document.text), document.id, document.label, document.group)


def _request(documents: Sequence[GivenDocument], known: Known) -> Request[KeyedDocument]:
    about = [keyed(document) for document in documents]
    keys = [document.key for document in about]
    texts = [document.text for document in documents]
    has_structure, has_vector = (find(places, keys) >= 0 for places in (known.structures, known.vectors))
    return Request(about, texts, has_structure.tolist(), has_vector.tolist())


class _Kept:
    """How many of the documents of the corpus that is there are in the new one too."""

    def __init__(self, folder: Path, known: Known, expected: int, replace: bool) -> None:
        self._folder, self._corpus, self._expected, self._replace = folder, known.corpus, expected, replace
        self._there = len(np.unique(known.corpus[0]))
        self._found = np.zeros(known.corpus.shape[1], dtype=bool)
        self._kept = 0

    def note(self, documents: Sequence[KeyedDocument]) -> None:
        """Some more documents of the new one."""
        places = np.unique(find(self._corpus, [document.key for document in documents]))
        places = places[places >= 0]
        self._kept += int((~self._found[places]).sum())
        self._found[places] = True
        self._expected -= len(documents)
        self._check(max(0, self._expected))

    def check_at_the_end(self) -> None:
        """There are no more."""
        self._check(0)

    def _check(self, to_come: int) -> None:
        if 2 * (self._kept + to_come) < self._there and not self._replace:
            raise CohegraphError(
                f"{self._folder} holds the features of {self._there} documents, and most of them are not in this "
                "corpus: name another folder, or replace them with --replace."
            )


class _Writer:
    """Collects documents and writes a shard whenever there are enough of them."""

    def __init__(self, folder: Path, featurizer: Featurizer, known: Known, hashes: Sequence[str], size: int) -> None:
        self._folder, self._featurizer, self._known, self._hashes, self._size = folder, featurizer, known, hashes, size
        self._documents: list[KeyedDocument] = []
        self._halves = Halves([], [])
        self._shards: list[tuple[str, int]] = []
        self._shape = (0, 0)
        self.documents = self.computed = 0

    def add(self, documents: Sequence[KeyedDocument], halves: Halves) -> None:
        rows = zip(documents, halves.structures, halves.vectors, strict=True)
        for document, structure, vector in rows:
            self.computed += structure is not None or vector is not None
            self._documents.append(document)
            self._halves.structures.append(structure or self._known.structure(document.key) or _lost(document))
            self._halves.vectors.append(vector or self._known.vector(document.key) or _lost(document))
            if len(self._documents) == self._size:
                self._write()

    def finish(self) -> None:
        """Write what is left, and make all of it the contents of the store."""
        if self._documents:
            self._write()
        if not self._shards:
            raise CohegraphError("There are no documents to make features of.")
        patterns, dimensions = self._shape
        contents = Contents(
            documents=self.documents,
            patterns=patterns,
            dimensions=dimensions,
            settings=self._featurizer.settings.to_dict(),
            parts=self._featurizer.identities,
            shards=self._shards,
        )
        write_contents(self._folder, contents)
        remove_others(self._folder, (name for name, _ in self._shards))

    def _write(self) -> None:
        documents, features = self._documents, whole_features(self._featurizer, self._halves)
        first = self.documents + 1
        structure, vector = self._hashes
        shard = Shard(
            keys=np.frombuffer(b"".join(document.key for document in documents), dtype=f"V{len(documents[0].key)}"),
            ids=[str(first + n) if document.id is None else document.id for n, document in enumerate(documents)],
            labels=[document.label for document in documents],
            groups=[document.group for document in documents],
            counts=features.counts,
            tallies=features.tallies,
            vectors=features.array,
            structure=structure,
            vector=vector,
        )
        file = write_shard(self._folder, len(self._shards), shard)
        self._shards.append((file.name, len(shard)))
        self._shape = (features.counts.shape[1], features.array.shape[1])
        self.documents += len(documents)
        self._documents, self._halves = [], Halves([], [])


def _lost(document: KeyedDocument) -> Arrays:
    raise CohegraphError(f"The features of document {document.id or ''} were removed meanwhile: run the same again.")


def _whole_shards(folder: Path, show_progress: bool) -> tuple[list[Path], int]:
    """The shards that are what was written, and how many were not; these are removed, for they hold nothing sure."""
    files, whole = shards_in(folder), []
    for file in track(files, "checking files", len(files), show=show_progress):
        if is_whole(file):
            whole.append(file)
        else:
            file.unlink()
    return whole, len(files) - len(whole)


def _pairs(keys: Sequence[bytes] | npt.NDArray[np.void]) -> npt.NDArray[np.int64]:
    """Hashes as two numbers each, (2, hashes)."""
    joined = keys.tobytes() if isinstance(keys, np.ndarray) else b"".join(keys)
    return np.frombuffer(joined, dtype=np.int64).reshape(-1, 2).T


def _sorted_places(found: list[npt.NDArray[np.int64]]) -> Places:
    """Hashes as two numbers, files and rows, (4, texts), by the first number."""
    places = np.concatenate([np.zeros((4, 0), dtype=np.int64), *found], axis=1)
    return places[:, np.argsort(places[0], kind="stable")]


def find(places: Places, keys: Sequence[bytes]) -> npt.NDArray[np.int64]:
    """The column of every hash, or -1.

    One of two texts that share half of their hash may not be found; then it is computed again, which is all.
    """
    if not places.shape[1]:
        return np.full(len(keys), -1)
    first, second = _pairs(keys)
    column = np.minimum(np.searchsorted(places[0], first), places.shape[1] - 1)
    return np.where((places[0, column] == first) & (places[1, column] == second), column, -1)
