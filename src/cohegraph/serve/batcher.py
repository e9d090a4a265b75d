"""One thread that owns the model, and the texts that wait for it: those of all clients are scored together.

Everything but the work itself happens on the thread of the event loop, so that nothing needs a lock but the hand-over.
"""

import asyncio
import concurrent.futures
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from cohegraph.assessment import Assessment
from cohegraph.model.coherence_model import CoherenceModel
from cohegraph.serve.limits import Limits
from cohegraph.serve.problems import ProblemError
from cohegraph.text.document import Document

T = TypeVar("T")
# Of every batch this share is kept for texts that can wait, if there are any; where none had a place so often, they
# come first: calls have a batch to themselves, and small batches have no place to keep.
_SHARE_OF_PATIENT = 4
# A batch holds no more characters than this, or one text: whoever comes next waits about a second for it at most.
_MOST_CHARACTERS = 64_000
# One of patient texts alone, which there are many of while an explanation is made: nobody else should notice.
_MOST_PATIENT_CHARACTERS = 16_000
# Streams, which can wait for room, leave the rest of the queue to requests, which would be turned away.
_SHARE_OF_STREAMS = 2


class TooBusyError(ProblemError):
    """More texts wait than the server accepts."""

    def __init__(self) -> None:
        wait = {"Retry-After": "1"}
        super().__init__(429, "too-busy", "Too many texts are waiting: try again in a moment.", headers=wait)


class StoppedError(ProblemError):
    """The server accepts nothing more."""

    def __init__(self) -> None:
        super().__init__(503, "stopping", "The server no longer accepts texts: start it again.")


class TooLongError(ProblemError):
    """A text has more characters or sentences than the server accepts; ``number`` is its number among others."""

    def __init__(self, count: int, what: str, most: int, number: int | None = None) -> None:
        text, field = ("The text", None) if number is None else (f"Text {number}", f"texts.{number - 1}")
        detail = f"{text} has {count} {what}, and this server accepts {most} at most: send less."
        super().__init__(422, f"too-many-{what}", detail, field=field)
        self.counted = (count, what, most)


def too_long(count: int, what: Literal["characters", "sentences"], limits: Limits) -> TooLongError | None:
    """The error of a text that has too many of something."""
    most: int = getattr(limits, what)
    return None if count <= most else TooLongError(count, what, most)


@dataclass(eq=False)
class _Job:
    """A text to assess, or a call that needs the model, and who waits for the outcome."""

    work: str | Callable[[], Any]
    outcome: asyncio.Future[Any] = field(repr=False)
    patient: bool = False


class Batcher:
    """Scores texts as they come, many together.

    Args:
        model: Any trained model.
        limits: What it takes on.
        prepare: Called first on the thread that will score. Whatever uses torch belongs here, and not on another thread
            before: OpenMP keeps a team for every thread that ever led one, and holds back all of them once they
            outnumber the cores.
        on_batch: Called with the size of every batch.
    """

    def __init__(
        self,
        model: CoherenceModel,
        limits: Limits,
        *,
        prepare: Callable[[], None] = lambda: None,
        on_batch: Callable[[int], None] = lambda size: None,
    ) -> None:
        self.model, self._limits, self._prepare, self._on_batch = model, limits, prepare, on_batch
        self.waiting = 0  # texts that are not yet answered
        self.stopping = False  # nothing more is accepted
        self._quick: deque[_Job] = deque()
        self._patient: deque[_Job] = deque()
        self._arrived = threading.Condition()
        self._passed_over = 0
        self._prepared: concurrent.futures.Future[None] = concurrent.futures.Future()
        self._space: list[asyncio.Future[None]] = []
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def open(self) -> None:
        """Start the thread, and wait until it is prepared; raises what went wrong with that."""
        if self._thread is None:
            self.stopping, self.waiting = False, 0
            self._prepared = concurrent.futures.Future()
            self._thread = threading.Thread(target=self._work, name="model", daemon=True)
            self._thread.start()
        self._prepared.result()

    def start(self) -> None:
        """Begin to work, for the event loop that runs now."""
        self._loop = asyncio.get_running_loop()
        self.open()

    async def stop(self) -> None:
        """Finish what was taken on, and end."""
        with self._arrived:
            self.stopping = True
            self._arrived.notify()
        if self._thread is not None:
            await asyncio.to_thread(self._thread.join)
            self._thread = None

    async def assess(self, texts: Sequence[str], *, patient: bool = False) -> list[Assessment]:
        """The assessments of texts; the first error of any of them.

        Args:
            texts: The texts.
            patient: They may wait for the texts of others, and may be as long as they are: they are made from a text
                that was taken on.
        """
        jobs = self._submitted(texts, patient=patient)
        # All are waited for: an error of one must not leave the others behind with nobody who takes their outcome.
        found = await asyncio.gather(*(job.outcome for job in jobs), return_exceptions=True)
        results = []
        for number, one in enumerate(found, start=1):
            if isinstance(one, TooLongError):
                raise TooLongError(*one.counted, number) if len(texts) > 1 else one
            if isinstance(one, BaseException):
                raise one
            results.append(one)
        return results

    async def assess_when_free(self, text: str) -> asyncio.Future[Assessment]:
        """Hand a text in as soon as there is room for it; what comes back will have its assessment."""
        while self.waiting >= max(1, self._limits.queue // _SHARE_OF_STREAMS):
            room = asyncio.get_running_loop().create_future()
            self._space.append(room)
            await room
        return self._submitted([text])[0].outcome

    async def call(self, work: Callable[[], T]) -> T:
        """The outcome of a call that needs the model."""
        found: T = await self._submitted([work])[0].outcome
        return found

    def _submitted(self, work: Sequence[str | Callable[[], Any]], *, patient: bool = False) -> list[_Job]:
        if self.waiting + len(work) > self._limits.queue:
            raise TooBusyError
        loop = asyncio.get_running_loop()
        jobs = [_Job(one, loop.create_future(), patient) for one in work]
        with self._arrived:
            if self.stopping:  # the thread may be gone already, and nobody would ever answer
                raise StoppedError
            (self._patient if patient else self._quick).extend(jobs)
            self._arrived.notify()
        self.waiting += len(jobs)
        return jobs

    def _work(self) -> None:
        try:
            self._prepare()
        except BaseException as error:
            self._given_up()
            self._prepared.set_exception(error)
            return
        self._prepared.set_result(None)
        jobs: list[_Job] = []
        try:
            while jobs := self._next():
                # Nobody waits any more for what clients that have gone had asked for.
                wanted = [job for job in jobs if not job.outcome.done()]
                if wanted and isinstance(wanted[0].work, str):
                    self._on_batch(len(wanted))
                outcomes = dict(zip(wanted, self._outcomes(wanted), strict=True)) if wanted else {}
                self._deliver(jobs, [outcomes.get(job) for job in jobs])
                jobs = []
        except BaseException:
            # Should this thread ever end by itself, whoever waits must learn of it.
            jobs += self._given_up()
            self._deliver(jobs, [StoppedError()] * len(jobs))
            raise

    def _next(self) -> list[_Job]:
        """The jobs to do now: one call, or as many texts as wait; nothing when there is nothing more to come."""
        with self._arrived:
            while not self._quick and not self._patient and not self.stopping:
                self._arrived.wait()
            most, patient = self._limits.batch, len(self._patient)
            jobs: list[_Job] = []
            if self._passed_over >= _SHARE_OF_PATIENT:
                _take(jobs, self._patient, most, _MOST_PATIENT_CHARACTERS)
                _take(jobs, self._quick, most)
            else:
                _take(jobs, self._quick, most - min(patient, most // _SHARE_OF_PATIENT))
                _take(jobs, self._patient, most, _MOST_CHARACTERS if jobs else _MOST_PATIENT_CHARACTERS)
            self._passed_over = self._passed_over + 1 if patient and len(self._patient) == patient else 0
            return jobs

    def _outcomes(self, jobs: list[_Job]) -> list[Any]:
        """The outcomes of a call or of texts: values, or errors."""
        if callable(jobs[0].work):
            return [_outcome(jobs[0].work)]
        found = _outcome(self._assessed, jobs)
        if not isinstance(found, Exception):
            return list(found)
        # What is wrong with one text must not be the fate of its neighbours.
        return [found] if len(jobs) == 1 else [self._outcomes([job])[0] for job in jobs]

    def _assessed(self, jobs: list[_Job]) -> list[Any]:
        """Assessments, or the errors of texts that are too long."""
        parser = self.model.featurizer.parser
        texts = [str(job.work) for job in jobs]
        outcomes: list[Any] = [
            None if job.patient else too_long(len(text), "characters", self._limits)
            for job, text in zip(jobs, texts, strict=True)
        ]
        readable = [number for number, wrong in enumerate(outcomes) if wrong is None]
        for number, document in zip(readable, parser.parse([texts[number] for number in readable]), strict=True):
            wrong = None if jobs[number].patient else too_long(len(document.sentences), "sentences", self._limits)
            outcomes[number] = wrong or document
        fitting = [number for number, one in enumerate(outcomes) if isinstance(one, Document)]
        found = self.model.assess([outcomes[number] for number in fitting]) if fitting else []
        for number, one in zip(fitting, found, strict=True):
            outcomes[number] = one
        return outcomes

    def _deliver(self, jobs: list[_Job], outcomes: list[Any]) -> None:
        if self._loop is None:
            raise RuntimeError("the batcher was not started")
        try:
            self._loop.call_soon_threadsafe(self._settle, jobs, outcomes)
        except RuntimeError:  # the event loop is closed, and nobody waits any more
            self._given_up()

    def _given_up(self) -> list[_Job]:
        """Take on nothing more, and leave what waits."""
        with self._arrived:
            self.stopping = True
            left = [*self._quick, *self._patient]
            self._quick.clear()
            self._patient.clear()
            return left

    def _settle(self, jobs: list[_Job], outcomes: list[Any]) -> None:
        self.waiting -= len(jobs)
        for job, outcome in zip(jobs, outcomes, strict=True):
            if job.outcome.done():  # whoever asked has gone
                continue
            if isinstance(outcome, Exception):
                job.outcome.set_exception(outcome)
            else:
                job.outcome.set_result(outcome)
        # All look again whether there is room: to wake only as many as there is room for would leave it empty for good
        # where one of them has gone.
        space, self._space = self._space, []
        for room in space:
            if not room.done():
                room.set_result(None)


def _take(jobs: list[_Job], queue: deque[_Job], most: int, characters: int = _MOST_CHARACTERS) -> None:
    """Add jobs from the front of a queue, up to so many: one call, or texts up to the next call."""
    left = characters - sum(map(_characters, jobs))
    while queue and len(jobs) < most and not (jobs and (callable(jobs[0].work) or callable(queue[0].work))):
        left -= _characters(queue[0])
        if jobs and left < 0:
            return
        jobs.append(queue.popleft())


def _characters(job: _Job) -> int:
    return len(job.work) if isinstance(job.work, str) else 0


def _outcome(work: Callable[..., Any], *arguments: Any) -> Any:
    """What a call gives, or the exception it raises."""
    try:
        return work(*arguments)
    except Exception as error:
        return error
