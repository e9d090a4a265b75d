"""The documents of a store, whose features are there already, and their assessments."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cohegraph.corpora.columns import Entry
from cohegraph.features.store import FeatureStore
from cohegraph.scale.scoring import Scored

if TYPE_CHECKING:  # importing a model imports torch, which takes seconds
    from cohegraph.model.coherence_model import CoherenceModel


class StoredDocuments:
    """The documents of a store in order, without their texts; of its files, one is held at a time."""

    remarks: Sequence[str] = ()

    def __init__(self, folder: Path) -> None:
        self._store = FeatureStore(folder)
        # How many documents there are before each file, and in all.
        self._before = np.cumsum([0, *(rows for _, rows in self._store.contents.shards)])

    def __len__(self) -> int:
        return len(self._store)

    def __iter__(self) -> Iterator[Entry]:
        for shard, start in enumerate(self._before[:-1].tolist()):
            part = self._store.part(shard)
            for row, (name, key) in enumerate(zip(part.ids, part.keys, strict=True), start=start + 1):
                yield Entry(f"{self._store.folder}:{row}", id=name, row=row, digest=key)

    def are_read_from(self, file: Path) -> bool:
        """Whether a file is one of those that are read."""
        return file.resolve().parent == self._store.folder.resolve()

    def score(self, entries: Iterable[Entry], loaded: Callable[[], CoherenceModel]) -> Iterator[list[Scored]]:
        """Some of these documents, in order, with their assessments, a file at a time."""
        for shard, group in groupby(entries, self._shard_of):
            some = list(group)
            features = self._store.part(shard).features[[entry.row - 1 - self._before[shard] for entry in some]]
            yield [Scored(*pair) for pair in zip(some, loaded().assess(features.in_memory()), strict=True)]

    def _shard_of(self, entry: Entry) -> int:
        return int(np.searchsorted(self._before, entry.row)) - 1
