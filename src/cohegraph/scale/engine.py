"""Features of any number of documents, by worker processes that load the pretrained parts once, in order.

A worker computes with one thread, so that no digit depends on how many workers there are. If one is killed,
another one computes its documents again.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from itertools import islice
from typing import Self, TypeVar

from cohegraph.corpora.columns import Entry
from cohegraph.errors import CohegraphError
from cohegraph.features import Featurizer
from cohegraph.features.stages import Pieces, stages_of
from cohegraph.scale.processes import end_at_once, end_with_parent, ignoring_interrupts, new_pool
from cohegraph.settings import Settings
from cohegraph.text.threads import one_thread

# Documents that a worker is given at once.
BATCH = 16
_BATCHES_AHEAD = 3
_MOST_LOSSES = 3
_TOO_MANY_LOSSES = (
    "Worker processes keep ending, perhaps for lack of memory: use fewer --workers; what is done is kept."
)
T = TypeVar("T")


@dataclass(frozen=True)
class Request:
    """Documents in a row, the texts of those that can be read, and for each stage which texts need no computing."""

    documents: Sequence[Entry]
    texts: Sequence[str]
    known: Mapping[str, Sequence[bool]]

    @classmethod
    def of(cls, documents: Sequence[Entry], texts: Sequence[str], settings: Settings) -> Self:
        """A request for documents of which nothing is known."""
        return cls(documents, texts, {stage.name: [False] * len(texts) for stage in stages_of(settings)})

    def pieces(self, featurizer: Featurizer) -> Pieces:
        """What is not known of the documents, computed."""
        pieces: Pieces = {}
        for stage in stages_of(featurizer.settings):
            known = self.known[stage.name]
            texts = [text for text, is_known in zip(self.texts, known, strict=True) if not is_known]
            made = iter(stage.made(featurizer, texts))
            pieces[stage.name] = [None if is_known else next(made) for is_known in known]
        return pieces


@dataclass(frozen=True)
class LocalEngine:
    """Worker processes on this machine; a single one is this process itself.

    Args:
        featurizer: What to compute, with its parts loaded.
        workers: How many processes.
    """

    featurizer: Featurizer
    workers: int = 1

    def computed(self, requests: Iterable[Request]) -> Iterator[tuple[Request, Pieces]]:
        """Every request with what was computed, in order; only a few are computed ahead."""
        if self.workers == 1:
            for request in requests:
                with one_thread():
                    pieces = request.pieces(self.featurizer)
                yield request, pieces
            return
        waiting, under_way = iter(requests), deque[tuple[Request, Future[Pieces]]]()
        # Processes start with the first request that needs one.
        pool, lost = self._new_pool(), 0
        try:
            while True:
                for request in islice(waiting, self.workers * _BATCHES_AHEAD - len(under_way)):
                    under_way.append((request, self._submitted(pool, request)))
                if not under_way:
                    return
                request, future = under_way[0]
                try:
                    pieces = future.result()
                except BrokenProcessPool:
                    lost += 1
                    if lost == _MOST_LOSSES:
                        raise CohegraphError(_TOO_MANY_LOSSES, code="workers-end") from None
                    end_at_once(pool)
                    pool = self._new_pool()
                    under_way = deque((one, self._submitted(pool, one)) for one, _ in under_way)
                    continue
                under_way.popleft()
                lost = 0
                yield request, pieces
        finally:
            end_at_once(pool)

    def _submitted(self, pool: ProcessPoolExecutor, request: Request) -> Future[Pieces]:
        ready: Future[Pieces] = Future()
        if all(all(known) for known in request.known.values()):
            ready.set_result({name: [None] * len(request.texts) for name in request.known})
            return ready
        try:
            with ignoring_interrupts():
                return pool.submit(_compute, Request((), request.texts, request.known))
        except BrokenProcessPool as error:
            # Met again when its turn comes, with all others.
            ready.set_exception(error)
            return ready

    def _new_pool(self) -> ProcessPoolExecutor:
        return new_pool(self.workers, _start, self.featurizer.settings, self.featurizer.device)


def loaded_with_one_thread(settings: Settings, device: str) -> Featurizer:
    """A featurizer with its parts loaded, in a process that is there for it alone."""
    import torch
    from threadpoolctl import threadpool_limits

    torch.set_num_threads(1)
    threadpool_limits(1)
    featurizer = Featurizer(settings, device=device)
    featurizer.load()
    return featurizer


# Of a worker process.
_featurizer: Featurizer


def _start(settings: Settings, device: str) -> None:
    global _featurizer
    end_with_parent()
    _featurizer = loaded_with_one_thread(settings, device)


def _compute(request: Request) -> Pieces:
    return request.pieces(_featurizer)


def batches(items: Iterable[T], size: int = BATCH) -> Iterator[list[T]]:
    """The items in lists of a size; the last may be shorter."""
    remaining = iter(items)
    while batch := list(islice(remaining, size)):
        yield batch
