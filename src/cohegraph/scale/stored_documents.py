"""The documents of a store, whose features are there already, and their assessments."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from cohegraph.corpora.stream import Entry
from cohegraph.scale.feature_store import FeatureStore
from cohegraph.scale.scoring import Scored

if TYPE_CHECKING:  # importing a model imports torch, which takes seconds
    from cohegraph.model.coherence_model import CoherenceModel
    from cohegraph.systems.system_model import SystemModel


@dataclass(frozen=True, slots=True)
class StoredEntry(Entry):
    """A document without its text; ``key`` is the first half of the text's hash, ``shard`` and ``row`` its place."""

    key: str = ""
    shard: int = 0
    row: int = 0

    @property
    def text_sha256(self) -> str:
        """As much as is known of the hash of its text."""
        return self.key


class StoredDocuments:
    """The documents of a store in order; of its files, one is held at a time."""

    remarks: Sequence[str] = ()

    def __init__(self, folder: Path) -> None:
        self._store = FeatureStore(folder)

    def __len__(self) -> int:
        return len(self._store)

    def __iter__(self) -> Iterator[StoredEntry]:
        number = 0
        for shard in range(len(self._store.contents.shards)):
            part = self._store.part(shard)
            for row, (name, key) in enumerate(zip(part.ids, part.keys, strict=True)):
                number += 1
                yield StoredEntry(f"{self._store.folder}:{number}", id=name, key=key, shard=shard, row=row)

    def are_read_from(self, file: Path) -> bool:
        """Whether a file is one of those that are read."""
        return file.resolve().parent == self._store.folder.resolve()

    def score(
        self, entries: Iterable[Entry], loaded: Callable[[], CoherenceModel | SystemModel]
    ) -> Iterator[list[Scored]]:
        """These documents, any of them in their order, with their assessments, a file at a time."""
        stored = (entry for entry in entries if isinstance(entry, StoredEntry))
        for shard, group in groupby(stored, lambda entry: entry.shard):
            some = list(group)
            features = self._store.part(shard).features[[one.row for one in some]].in_memory()
            yield [Scored(*pair) for pair in zip(some, loaded().assess(features), strict=True)]
