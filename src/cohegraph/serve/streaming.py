"""Thousands of texts through one request: JSON Lines in, JSON Lines out, in order, in constant memory.

A client may read the answer while it sends, or only when it has sent everything: answers that it has not taken yet wait
in a temporary file, so that neither side ever waits for the other for good.
"""

import asyncio
import json
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import IO, Any, cast

from starlette.requests import ClientDisconnect
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from cohegraph.errors import CohegraphError
from cohegraph.serve.batcher import Batcher, StoppedError
from cohegraph.serve.limits import Limits
from cohegraph.serve.problems import ProblemError, failed

# What the answer to a line repeats of it, and its outcome or what is wrong with it.
_Waiting = tuple[dict[str, Any], asyncio.Future[Any] | Exception]
_IN_MEMORY = 4_000_000
_AT_ONCE = 65_536


class LinesResponse(StreamingResponse):
    """A response that is written while the request is read.

    Its base class would look out for a client that leaves by taking messages of the request, and so lose parts of it.
    """

    media_type = "application/x-ndjson"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the response; a client that leaves ends the reading of the request."""
        async with aclosing(cast(AsyncGenerator[bytes, None], self.body_iterator)):
            try:
                await self.stream_response(send)
            except ClientDisconnect:
                return


async def answers(body: AsyncIterator[bytes], batcher: Batcher, limits: Limits) -> AsyncGenerator[bytes, None]:
    """An answer for every line that comes in, in their order."""
    spool = _Spool()
    waiting: asyncio.Queue[_Waiting | None] = asyncio.Queue(4 * limits.batch)
    tasks = (
        asyncio.create_task(_read(body, batcher, limits, waiting)),
        asyncio.create_task(_write(waiting, spool)),
    )
    for task in tasks:  # whichever fails, the answer ends, and its error comes to light below
        task.add_done_callback(lambda task: spool.finish() if task.cancelled() or task.exception() else None)
    try:
        async for piece in spool:
            yield piece
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        while not waiting.empty():  # nobody will take the outcome of these
            line = waiting.get_nowait()
            if line is not None and isinstance(line[1], asyncio.Future):
                line[1].cancel()
        spool.close()


async def _read(
    body: AsyncIterator[bytes], batcher: Batcher, limits: Limits, waiting: asyncio.Queue[_Waiting | None]
) -> None:
    """Read lines and hand their texts in."""
    async for number, line in _lines(body, limits.body):
        about: dict[str, Any] = {"line": number}
        outcome: asyncio.Future[Any] | Exception
        try:
            outcome = await batcher.assess_when_free(_text(line, about))
        except (CohegraphError, StoppedError) as error:
            outcome = error
        try:
            await waiting.put((about, outcome))
        except asyncio.CancelledError:
            if isinstance(outcome, asyncio.Future):
                outcome.cancel()
            raise
    await waiting.put(None)


async def _write(waiting: asyncio.Queue[_Waiting | None], spool: "_Spool") -> None:
    """Put the answers down in the order of the lines."""
    while (line := await waiting.get()) is not None:
        spool.put(await _answer(*line))
    spool.finish()


async def _answer(about: dict[str, Any], outcome: asyncio.Future[Any] | Exception) -> bytes:
    try:
        if isinstance(outcome, Exception):
            raise outcome
        found = (await outcome).to_dict()
    except CohegraphError as error:
        found = {"error": str(error), "code": error.code}
    except Exception as error:  # the lines behind it are answered all the same
        problem = error if isinstance(error, ProblemError) else failed(error)
        found = {"error": problem.detail, "code": problem.code}
    return json.dumps({**about, **found}).encode() + b"\n"


def _text(line: bytes | None, about: dict[str, Any]) -> str:
    """The text of a line; its id is added to what the answer repeats of it."""
    if line is None:
        raise CohegraphError("The line is longer than this server accepts: send shorter texts.", code="line-too-long")
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        raise CohegraphError("The line is not JSON: write one string or object per line.", code="not-json") from None
    if isinstance(value, str):
        return value
    identity = value.get("id") if isinstance(value, dict) else None
    if identity is not None and (not isinstance(identity, str | int) or isinstance(identity, bool)):
        raise CohegraphError("The id must be a string or a whole number.", code="invalid-id")
    about |= {} if identity is None else {"id": identity}
    if not isinstance(value, dict) or not isinstance(value.get("text"), str):
        raise CohegraphError('The line must be a string or an object with a string as "text".', code="invalid-line")
    return str(value["text"])


async def _lines(body: AsyncIterator[bytes], longest: int) -> AsyncIterator[tuple[int, bytes | None]]:
    """The lines of a body that are not blank, and their numbers; nothing in place of a line that is too long."""
    number, line, too_long = 1, bytearray(), False
    async for piece in body:
        for place, part in enumerate(piece.split(b"\n")):
            if place:  # a line has ended
                if too_long or line.strip():
                    yield number, None if too_long else bytes(line)
                number, line, too_long = number + 1, bytearray(), False
            too_long = too_long or len(line) + len(part) > longest
            if too_long:
                line.clear()
            else:
                line += part
    if too_long or line.strip():
        yield number, None if too_long else bytes(line)


class _Spool:
    """Bytes that one task puts down and another takes up; what does not fit into memory waits in a file."""

    def __init__(self) -> None:
        self._file: IO[bytes] = tempfile.SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115
        self._written = self._taken = 0
        self._finished = False
        self._changed = asyncio.Event()

    def put(self, piece: bytes) -> None:
        if self._taken == self._written and self._written > _IN_MEMORY:
            # Everything was taken: start over, so that a client that keeps up never fills the disk.
            self._file.seek(0)
            self._file.truncate()
            self._written = self._taken = 0
        self._file.seek(self._written)
        self._file.write(piece)
        self._written += len(piece)
        self._changed.set()

    def finish(self) -> None:
        self._finished = True
        self._changed.set()

    def close(self) -> None:
        self._file.close()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while True:
            if self._taken < self._written:
                self._file.seek(self._taken)
                piece = self._file.read(_AT_ONCE)
                self._taken += len(piece)
                yield piece
            elif self._finished:
                return
            else:
                self._changed.clear()
                await self._changed.wait()
