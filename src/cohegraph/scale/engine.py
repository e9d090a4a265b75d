"""Features of any number of documents, by worker processes that load the pretrained parts once, in order.

A worker computes with one thread, so that no digit depends on how many workers there are. One that is killed costs the
documents it was at, which another one computes again.
"""

from __future__ import annotations

import multiprocessing
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Generic, TypeVar

from cohegraph.errors import CohegraphError
from cohegraph.features import Featurizer
from cohegraph.features.stages import STAGES, Pieces
from cohegraph.scale.processes import end_with_parent, ignoring_interrupts, one_thread
from cohegraph.settings import Settings

# Documents that a worker is given at once.
BATCH = 16
_BATCHES_AHEAD = 3
_MOST_LOSSES = 3
T = TypeVar("T")


@dataclass(frozen=True)
class Request(Generic[T]):
    """Documents in a row: what their owner knows of them, their texts, and for each stage which need no computing."""

    about: Sequence[T]
    texts: Sequence[str]
    known: Mapping[str, Sequence[bool]]

    @classmethod
    def of(cls, about: Sequence[T], texts: Sequence[str]) -> Request[T]:
        """A request for documents of which nothing is known."""
        return cls(about, texts, {stage.name: [False] * len(texts) for stage in STAGES})


class Worker:
    """The pretrained parts, loaded once."""

    def __init__(self, featurizer: Featurizer) -> None:
        self._featurizer = featurizer

    def __call__(self, request: Request[Any]) -> Pieces:
        """What is not known of the documents of a request."""
        pieces: Pieces = {}
        for stage in STAGES:
            known = request.known[stage.name]
            texts = [text for text, is_known in zip(request.texts, known, strict=True) if not is_known]
            made = iter(stage.made(self._featurizer, texts))
            pieces[stage.name] = [None if is_known else next(made) for is_known in known]
        return pieces


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

    def computed(self, requests: Iterable[Request[T]]) -> Iterator[tuple[Request[T], Pieces]]:
        """Every request with what was computed, in order; a few more than are taken are computed ahead, and no more."""
        if self.workers == 1:
            worker = Worker(self.featurizer)
            for request in requests:
                with one_thread():
                    pieces = worker(request)
                yield request, pieces
            return
        waiting, under_way = iter(requests), deque[tuple[Request[T], Future[Pieces]]]()
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
                    pieces = future.result()
                except BrokenProcessPool:
                    self._note_loss()
                    _end(pool)
                    pool = self._new_pool()
                    under_way = deque((one, self._submitted(pool, one)) for one, _ in under_way)
                    continue
                under_way.popleft()
                self._lost = 0
                yield request, pieces
        finally:
            _end(pool)

    def _submitted(self, pool: ProcessPoolExecutor, request: Request[T]) -> Future[Pieces]:
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

    def _note_loss(self) -> None:
        self._lost += 1
        if self._lost == _MOST_LOSSES:
            raise CohegraphError(
                "Worker processes end again and again, perhaps for want of memory: give fewer --workers; what is done "
                "is kept.",
                code="workers-end",
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


def _compute(request: Request[Any]) -> Pieces:
    if _worker is None:
        raise AssertionError("a worker is started before it is given anything")
    return _worker(request)


def batches(items: Iterable[T], size: int = BATCH) -> Iterator[list[T]]:
    """The items in lists of a size; the last may be shorter."""
    remaining = iter(items)
    while batch := list(islice(remaining, size)):
        yield batch
