"""Assessments of any number of documents, in order, in memory that does not grow."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, groupby
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cohegraph.assessment import Assessment
from cohegraph.corpora.columns import Entry
from cohegraph.errors import CohegraphError
from cohegraph.features.stages import features_of
from cohegraph.features.store import FeatureStore
from cohegraph.scale.engine import LocalEngine, Request, batches

if TYPE_CHECKING:  # importing a model imports torch, which takes seconds
    from cohegraph.model.coherence_model import CoherenceModel


@dataclass(frozen=True)
class Scored:
    """A document with its assessment; none where it could not be read."""

    entry: Entry
    result: Assessment | None


def score(
    entries: Iterable[Entry], loaded: "Callable[[], CoherenceModel]", *, workers: int = 1
) -> Iterator[list[Scored]]:
    """The entries with their assessments, some at a time; the model is loaded when the first text is there.

    With several ``workers`` as many processes parse and encode; each computes with one thread, so that the last digits
    of a probability may differ from those of a single process with several.
    """
    waiting = batches(entries)
    for some in waiting:
        if any(not entry.problem for entry in some):
            yield from _assessed(chain([some], waiting), loaded(), workers)
        else:
            yield _joined(some, [])


def _assessed(waiting: Iterable[list[Entry]], model: "CoherenceModel", workers: int) -> Iterator[list[Scored]]:
    featurizer = model.featurizer
    requests = (
        Request.of(some, [entry.text for entry in some if not entry.problem], featurizer.settings) for some in waiting
    )
    if workers == 1:
        for request in requests:
            yield _joined(request.documents, model.assess(request.texts) if request.texts else [])
        return
    if set(model.system_.needs) - {"reading"}:
        raise CohegraphError(
            f"A model of the system '{model.system_.name}' reads token by token, which several --workers do not share: "
            "leave them out.",
            code="workers-without-tokens",
        )
    featurizer.load()
    for request, pieces in LocalEngine(featurizer, workers).computed(requests):
        yield _joined(request.documents, model.assess(features_of(featurizer, pieces)) if request.texts else [])


def _joined(some: Iterable[Entry], results: Iterable[Assessment]) -> list[Scored]:
    waiting = iter(results)
    return [Scored(entry, None if entry.problem else next(waiting)) for entry in some]


class StoredDocuments:
    """The documents of a store in order, without their texts; one of its files is held at a time."""

    remarks: Sequence[str] = ()

    def __init__(self, folder: Path) -> None:
        self.store = FeatureStore(folder)
        # How many documents there are before each file, and in all.
        self._before = np.cumsum([0, *(rows for _, rows in self.store.contents.shards)])

    def __len__(self) -> int:
        return len(self.store)

    def __iter__(self) -> Iterator[Entry]:
        for shard, start in enumerate(self._before[:-1].tolist()):
            part = self.store.part(shard)
            for row, (name, key) in enumerate(zip(part.ids, part.keys, strict=True), start=start + 1):
                yield Entry(f"{self.store.folder}:{row}", id=name, row=row, digest=key)

    def are_read_from(self, file: Path) -> bool:
        """Whether a file is one of those that are read."""
        return file.resolve().parent == self.store.folder.resolve()

    def score(self, entries: Iterable[Entry], loaded: "Callable[[], CoherenceModel]") -> Iterator[list[Scored]]:
        """Some of these documents, in order, with their assessments, a file at a time."""
        for shard, group in groupby(entries, lambda entry: int(np.searchsorted(self._before, entry.row)) - 1):
            some = list(group)
            features = self.store.part(shard).features[[entry.row - 1 - self._before[shard] for entry in some]]
            yield _joined(some, loaded().assess(features.in_memory()))
