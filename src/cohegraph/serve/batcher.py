"""One thread that owns the model, and the texts that wait for it: those of all clients are scored together.

Everything but the work itself happens on the thread of the event loop, so that nothing needs a lock but the hand-over.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from cohegraph.errors import CohegraphError
from cohegraph.features import Featurizer
from cohegraph.model.assessment import Assessment
from cohegraph.model.estimator import CoherenceEstimator
from cohegraph.serve.limits import Limits
from cohegraph.text.document import Document

T = TypeVar("T")
# Of every batch this share is kept for texts that can wait, if there are any, so that they are not put off for ever.
_SHARE_OF_PATIENT = 4


class TooBusyError(Exception):
    """More texts wait than the server takes on."""


class TooLongError(CohegraphError):
    """A text has more sentences than the server takes on."""


@dataclass(eq=False)
class _Job:
    """A text to assess, or a call that needs the model, and who waits for the outcome."""

    work: str | Callable[[], Any]
    outcome: asyncio.Future[Any] = field(repr=False)


class Batcher:
    """Scores texts as they come, many together.

    Args:
        model: Any trained model.
        limits: What it takes on.
        prepare: Called first on the thread that will score: the number of threads is set for each thread by itself.
        on_batch: Called with the size of every batch.
    """

    def __init__(
        self,
        model: CoherenceEstimator[Any],
        limits: Limits,
        *,
        prepare: Callable[[], None] | None = None,
        on_batch: Callable[[int], None] | None = None,
    ) -> None:
        self.model = model
        self._limits = limits
        self._prepare = prepare
        self._on_batch = on_batch
        self._quick: deque[_Job] = deque()
        self._patient: deque[_Job] = deque()
        self._arrived = threading.Condition()
        self._stopping = False
        self._unanswered = 0
        self._space: deque[asyncio.Future[None]] = deque()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def waiting(self) -> int:
        """How many texts are not yet answered."""
        return self._unanswered

    def start(self) -> None:
        """Begin to work, for the event loop that runs now."""
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._work, name="model", daemon=True)
        self._thread.start()

    async def stop(self) -> None:
        """Finish what was taken on, and end."""
        with self._arrived:
            self._stopping = True
            self._arrived.notify()
        if self._thread is not None:
            await asyncio.to_thread(self._thread.join)

    async def assess(self, texts: Sequence[str], *, patient: bool = False) -> list[Assessment]:
        """The assessments of texts; the first error of any of them.

        Args:
            texts: The texts.
            patient: They may wait for the texts of others.
        """
        jobs = self._submitted(texts, patient=patient)
        # All are waited for: an error of one must not leave the others behind with nobody who takes their outcome.
        found = await asyncio.gather(*(job.outcome for job in jobs), return_exceptions=True)
        results = []
        for number, one in enumerate(found, start=1):
            if isinstance(one, TooLongError):
                raise TooLongError(f"Text {number}: {one}" if len(texts) > 1 else str(one))
            if isinstance(one, BaseException):
                raise one
            results.append(one)
        return results

    async def assess_when_free(self, text: str) -> asyncio.Future[Assessment]:
        """Hand a text in as soon as there is room for it; what comes back will have its assessment."""
        while self._unanswered >= self._limits.queue:
            room = asyncio.get_running_loop().create_future()
            self._space.append(room)
            await room
        return self._submitted([text])[0].outcome

    async def call(self, work: Callable[[], T]) -> T:
        """The outcome of a call that needs the model."""
        found: T = await self._submitted([work])[0].outcome
        return found

    def _submitted(self, work: Sequence[str | Callable[[], Any]], *, patient: bool = False) -> list[_Job]:
        if self._unanswered + len(work) > self._limits.queue:
            raise TooBusyError
        loop = asyncio.get_running_loop()
        jobs = [_Job(one, loop.create_future()) for one in work]
        self._unanswered += len(jobs)
        with self._arrived:
            (self._patient if patient else self._quick).extend(jobs)
            self._arrived.notify()
        return jobs

    def _work(self) -> None:
        if self._prepare is not None:
            self._prepare()
        while jobs := self._next():
            if callable(jobs[0].work):
                outcomes = [_outcome(jobs[0].work)]
            else:
                texts = [str(job.work) for job in jobs]
                outcomes = _outcome(self._assessed, texts)
                if isinstance(outcomes, Exception):
                    outcomes = [outcomes] * len(jobs)
                if self._on_batch is not None:
                    self._on_batch(len(jobs))
            self._deliver(jobs, outcomes)

    def _next(self) -> list[_Job]:
        """The jobs to do now: one call, or as many texts as wait; nothing when there is nothing more to come."""
        with self._arrived:
            while not self._quick and not self._patient and not self._stopping:
                self._arrived.wait()
            most = self._limits.batch
            reserved = min(len(self._patient), most // _SHARE_OF_PATIENT)
            jobs = _taken(self._quick, most - reserved)
            if not jobs or not callable(jobs[0].work):
                jobs += _taken(self._patient, most - len(jobs))
            return jobs

    def _assessed(self, texts: list[str]) -> list[Any]:
        """Assessments or errors. Where a batch fails as a whole, its texts are tried one by one."""
        featurizer = Featurizer(self.model.settings_, device=self.model.device)
        outcomes: list[Any] = [
            too_long(document, self._limits) or document for document in featurizer.parser.parse(texts)
        ]
        fitting = [number for number, one in enumerate(outcomes) if isinstance(one, Document)]
        found = _outcome(self.model.assess, [outcomes[number] for number in fitting])
        if isinstance(found, Exception) and len(fitting) > 1:
            found = [_first(_outcome(self.model.assess, [outcomes[number]])) for number in fitting]
        elif isinstance(found, Exception):
            found = [found] * len(fitting)
        for number, one in zip(fitting, found, strict=True):
            outcomes[number] = one
        return outcomes

    def _deliver(self, jobs: list[_Job], outcomes: list[Any]) -> None:
        if self._loop is None:
            raise RuntimeError("the batcher was not started")
        try:
            self._loop.call_soon_threadsafe(self._settle, jobs, outcomes)
        except RuntimeError:  # the event loop is closed, and nobody waits any more
            self._stopping = True

    def _settle(self, jobs: list[_Job], outcomes: list[Any]) -> None:
        self._unanswered -= len(jobs)
        for job, outcome in zip(jobs, outcomes, strict=True):
            if job.outcome.done():  # whoever asked has gone
                continue
            if isinstance(outcome, Exception):
                job.outcome.set_exception(outcome)
            else:
                job.outcome.set_result(outcome)
        for _ in range(min(len(self._space), self._limits.queue - self._unanswered)):
            room = self._space.popleft()
            if not room.done():
                room.set_result(None)


def _taken(queue: deque[_Job], most: int) -> list[_Job]:
    """Jobs from the front of a queue: one call, or texts up to the next call."""
    taken: list[_Job] = []
    while queue and len(taken) < most:
        if taken and callable(queue[0].work):
            break
        taken.append(queue.popleft())
        if callable(taken[-1].work):
            break
    return taken


def too_long(document: Document, limits: Limits) -> TooLongError | None:
    """The error of a document that has too many sentences."""
    count = len(document.sentences)
    if count <= limits.sentences:
        return None
    return TooLongError(f"It has {count} sentences, and {limits.sentences} is the most that this server takes on.")


def _outcome(work: Callable[..., Any], *arguments: Any) -> Any:
    """What a call gives, or the exception it raises."""
    try:
        return work(*arguments)
    except Exception as error:
        return error


def _first(found: Any) -> Any:
    return found[0] if isinstance(found, list) else found
