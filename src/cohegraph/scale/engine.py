"""Features of any number of documents, by worker processes that load the pretrained parts once, in order.

A worker computes with one thread, so that no digit depends on how many workers there are. One that is killed costs the
documents it was at, which another one computes again.
"""

from __future__ import annotations

import multiprocessing
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Generic, TypeVar

from cohegraph.errors import CohegraphError
from cohegraph.features import Features, Featurizer
from cohegraph.scale.halves import Arrays, encoded_of, structure_halves, structure_of, vector_halves
from cohegraph.scale.processes import end_with_parent, ignoring_interrupts, one_thread
from cohegraph.settings import Settings

# Documents that a worker is given at once.
BATCH = 16
_BATCHES_AHEAD = 3
_MOST_LOSSES = 3
T = TypeVar("T")


@dataclass(frozen=True)
class Request(Generic[T]):
    """Documents in a row: what their owner knows of them, their texts, and which halves need not be computed."""

    about: Sequence[T]
    texts: Sequence[str]
    has_structure: Sequence[bool]
    has_vector: Sequence[bool]


@dataclass(frozen=True)
class Halves:
    """The halves of documents that were computed, and nothing in the place of the others."""

    structures: list[Arrays | None]
    vectors: list[Arrays | None]


class Worker:
    """The pretrained parts, loaded once."""

    def __init__(self, featurizer: Featurizer) -> None:
        self._featurizer = featurizer

    def __call__(self, request: Request[Any]) -> Halves:
        """What is not known of the documents of a request."""
        featurizer = self._featurizer
        texts = [text for text, known in zip(request.texts, request.has_structure, strict=True) if not known]
        structures = structure_halves(featurizer.structure(featurizer.parser.parse(texts))) if texts else []
        texts = [text for text, known in zip(request.texts, request.has_vector, strict=True) if not known]
        vectors = vector_halves(featurizer.encode(texts)) if texts else []
        return Halves(_spread(structures, request.has_structure), _spread(vectors, request.has_vector))


@dataclass
class LocalEngine:
    """Worker processes on this machine; a single one is this process itself.

    Args:
        featurizer: What to compute, with its parts loaded.
        workers: How many processes.
    """

    featurizer: Featurizer
    workers: int = 1
    _lost: int = field(default=0, init=False)

    def computed(self, requests: Iterable[Request[T]]) -> Iterator[tuple[Request[T], Halves]]:
        """Every request with its halves, in order; a few more than are taken are computed ahead, and no more."""
        if self.workers == 1:
            worker = Worker(self.featurizer)
            for request in requests:
                with one_thread():
                    halves = worker(request)
                yield request, halves
            return
        waiting, under_way = iter(requests), deque[tuple[Request[T], Future[Halves]]]()
        # Processes start with the first request that needs one.
        pool = self._new_pool()
        try:
            while True:
                for request in islice(waiting, self.workers * _BATCHES_AHEAD - len(under_way)):
                    under_way.append((request, self._submitted(pool, request)))
                if not under_way:
                    return
                request, future = under_way[0]
                try:
                    halves = future.result()
                except BrokenProcessPool:
                    self._note_loss()
                    _end(pool)
                    pool = self._new_pool()
                    under_way = deque((one, self._submitted(pool, one)) for one, _ in under_way)
                    continue
                under_way.popleft()
                self._lost = 0
                yield request, halves
        finally:
            _end(pool)

    def _submitted(self, pool: ProcessPoolExecutor, request: Request[T]) -> Future[Halves]:
        ready: Future[Halves] = Future()
        if all(request.has_structure) and all(request.has_vector):
            nothing: list[Arrays | None] = [None] * len(request.texts)
            ready.set_result(Halves(nothing, nothing))
            return ready
        try:
            with ignoring_interrupts():
                return pool.submit(_compute, Request((), request.texts, request.has_structure, request.has_vector))
        except BrokenProcessPool as error:
            # Met again when its turn comes, with all others.
            ready.set_exception(error)
            return ready

    def _note_loss(self) -> None:
        self._lost += 1
        if self._lost == _MOST_LOSSES:
            raise CohegraphError(
                "Worker processes end again and again, perhaps for want of memory: give fewer --workers; what is done "
                "is kept."
            )

    def _new_pool(self) -> ProcessPoolExecutor:
        featurizer = self.featurizer
        return ProcessPoolExecutor(
            self.workers,
            mp_context=multiprocessing.get_context("spawn"),
            initializer=_start,
            initargs=(featurizer.settings, featurizer.device),
        )


def _end(pool: ProcessPoolExecutor) -> None:
    """End a pool at once: what its processes are at is of no use to anybody."""
    processes = list((getattr(pool, "_processes", None) or {}).values())
    pool.shutdown(wait=False, cancel_futures=True)
    for process in processes:
        process.terminate()


def worker_with_one_thread(settings: Settings, device: str) -> Worker:
    """A worker, in a process that is there for it alone."""
    import torch
    from threadpoolctl import threadpool_limits

    torch.set_num_threads(1)
    threadpool_limits(1)
    featurizer = Featurizer(settings, device=device)
    featurizer.load()
    return Worker(featurizer)


_worker: Worker | None = None


def _start(settings: Settings, device: str) -> None:
    global _worker
    end_with_parent()
    _worker = worker_with_one_thread(settings, device)


def _compute(request: Request[Any]) -> Halves:
    if _worker is None:
        raise AssertionError("a worker is started before it is given anything")
    return _worker(request)


def batches(items: Iterable[T], size: int = BATCH) -> Iterator[list[T]]:
    """The items in lists of a size; the last may be shorter."""
    remaining = iter(items)
    while batch := list(islice(remaining, size)):
        yield batch


def whole_features(featurizer: Featurizer, halves: Halves) -> Features:
    """The features of documents all of whose halves are there."""
    structures = [half for half in halves.structures if half is not None]
    vectors = [half for half in halves.vectors if half is not None]
    return featurizer.joined(structure_of(structures), encoded_of(vectors))


def _spread(made: list[Arrays], known: Sequence[bool]) -> list[Arrays | None]:
    """What was made, in the places of what was not known."""
    waiting = iter(made)
    return [None if there else next(waiting) for there in known]
