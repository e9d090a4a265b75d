"""From a corpus of any number of documents to a store of features.

Whatever a store holds already is found by the hashes of texts and of all that shapes features, and is not computed
again: a run that was stopped resumes, documents that are added or moved cost only themselves, and with another delta
nothing is encoded again. Shards are cut by the number of documents alone, so that the files are byte-identical whoever
computed them and however often the work was interrupted.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

import numpy as np

from cohegraph.corpora.columns import Entry
from cohegraph.errors import CohegraphError
from cohegraph.features import Featurizer
from cohegraph.features.shards import KEY_BYTES, Known, Shard, find, is_whole, shards_in, write_shard
from cohegraph.features.stages import STRUCTURE, VECTOR, Arrays, Pieces, features_of, stages_of
from cohegraph.features.store import Contents, check_target, only_writer, remove_others, shards_named, write_contents
from cohegraph.progress import track
from cohegraph.scale.engine import BATCH, LocalEngine, Request, batches

# Documents in a file.
SHARD = 512


@dataclass(frozen=True)
class Featurized:
    """What was done: documents, and how many of them had at least one stage computed; files that were damaged."""

    documents: int
    computed: int
    damaged: int


class Source(Protocol):
    """Where documents come from, with the stages of their features that are not known yet."""

    def __len__(self) -> int:
        """How many documents there are."""

    def computed(self, known: Known) -> Iterator[tuple[Sequence[Entry], Pieces]]:
        """All documents in order, without their texts, some at a time."""


@dataclass(frozen=True)
class LocalSource:
    """Documents that this process reads, and worker processes of this machine compute."""

    documents: Iterable[Entry]
    total: int
    engine: LocalEngine

    def __len__(self) -> int:
        return self.total

    def computed(self, known: Known) -> Iterator[tuple[Sequence[Entry], Pieces]]:
        """See `Source`."""
        requests = (_request(some, known) for some in batches(self.documents, BATCH))
        for request, pieces in self.engine.computed(requests):
            yield request.documents, pieces


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

    If most of the documents that are there are missing from the source, it is an error as soon as that is clear, unless
    they are to be replaced.
    """
    check_target(folder)
    digests = {stage.name: stage.digest(featurizer) for stage in stages_of(featurizer.settings)}
    with only_writer(folder):
        whole, damaged = _whole_shards(folder, show_progress)
        known = Known(whole, shards_named(folder), digests)
        writer = _Writer(folder, featurizer, known, shard)
        kept = _Kept(folder, known, len(source), replace)
        computed, total = source.computed(known), len(source)
        for documents, pieces in track(
            computed, "reading documents", total, size=lambda some: len(some[0]), show=show_progress
        ):
            kept.note(documents)
            writer.add(documents, pieces)
        kept.check(to_come=0)
        writer.finish()
    return Featurized(writer.documents, writer.computed, damaged)


def _request(documents: Sequence[Entry], known: Known) -> Request:
    texts = [document.text for document in documents]
    about = [replace(document, text="", digest=document.text_sha256) for document in documents]
    keys = [_key(document) for document in about]
    return Request(about, texts, {name: (find(places, keys) >= 0).tolist() for name, places in known.places.items()})


def _key(document: Entry) -> bytes:
    """By which the features of a text are found."""
    return bytes.fromhex(document.text_sha256)[:KEY_BYTES]


class _Kept:
    """How many of the documents of the corpus that is there are in the new one too."""

    def __init__(self, folder: Path, known: Known, expected: int, replace: bool) -> None:
        self._folder, self._corpus, self._expected, self._replace = folder, known.corpus, expected, replace
        self._there = len(np.unique(known.corpus[0]))
        self._found = np.zeros(known.corpus.shape[1], dtype=bool)
        self._kept = 0

    def note(self, documents: Sequence[Entry]) -> None:
        """Some more documents of the new one."""
        places = np.unique(find(self._corpus, [_key(document) for document in documents]))
        places = places[places >= 0]
        self._kept += int((~self._found[places]).sum())
        self._found[places] = True
        self._expected -= len(documents)
        self.check(to_come=max(0, self._expected))

    def check(self, *, to_come: int) -> None:
        """Raise where most documents are lost even if all that are to come are among them."""
        if 2 * (self._kept + to_come) < self._there and not self._replace:
            raise CohegraphError(
                f"{self._folder} holds the features of {self._there} documents, and most of them are not in this "
                "corpus: name another folder, or replace them with --replace.",
                code="other-corpus",
            )


class _Writer:
    """Collects documents and writes a shard whenever there are enough of them."""

    def __init__(self, folder: Path, featurizer: Featurizer, known: Known, size: int) -> None:
        self._folder, self._featurizer, self._known, self._size = folder, featurizer, known, size
        self._documents: list[Entry] = []
        self._pieces: dict[str, list[Arrays]] = {name: [] for name in known.digests}
        self._shards: list[tuple[str, int]] = []
        self._shape = (0, 0)
        self.documents = self.computed = 0

    def add(self, documents: Sequence[Entry], pieces: Pieces) -> None:
        for number, document in enumerate(documents):
            self.computed += any(made[number] is not None for made in pieces.values())
            self._documents.append(document)
            for name, made in pieces.items():
                self._pieces[name].append(made[number] or self._known.arrays(name, _key(document)))
            if len(self._documents) == self._size:
                self._write()

    def finish(self) -> None:
        """Write what is left, and make all of it the contents of the store."""
        if self._documents:
            self._write()
        if not self._shards:
            raise CohegraphError("There are no documents to make features of.", code="no-documents")
        patterns, dimensions = self._shape
        contents = Contents(
            documents=self.documents,
            patterns=patterns,
            dimensions=dimensions,
            settings=self._featurizer.settings.to_dict(),
            parts=self._featurizer.identities(),
            shards=self._shards,
        )
        write_contents(self._folder, contents)
        remove_others(self._folder, (name for name, _ in self._shards))

    def _write(self) -> None:
        documents, features = self._documents, features_of(self._featurizer, self._pieces)
        first = self.documents + 1
        shard = Shard(
            keys=[_key(document) for document in documents],
            ids=[str(first + n) if document.id is None else document.id for n, document in enumerate(documents)],
            labels=[document.label for document in documents],
            groups=[document.group for document in documents],
            counts=features.counts,
            tallies=features.tallies,
            vectors=features.array,
            further={name: made for name, made in self._pieces.items() if name not in (STRUCTURE.name, VECTOR.name)},
            stages=self._known.digests,
        )
        file = write_shard(self._folder, len(self._shards), shard)
        self._shards.append((file.name, len(shard)))
        self._shape = (features.counts.shape[1], features.array.shape[1])
        self.documents += len(documents)
        self._documents, self._pieces = [], {name: [] for name in self._known.digests}


def _whole_shards(folder: Path, show_progress: bool) -> tuple[list[Path], int]:
    """The shards that are what was written, and how many were not, which are removed."""
    files, whole = shards_in(folder), []
    for file in track(files, "checking files", len(files), show=show_progress):
        if is_whole(file):
            whole.append(file)
        else:
            file.unlink()
    return whole, len(files) - len(whole)
