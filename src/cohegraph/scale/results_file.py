"""Assessments as JSON Lines in a file that grows, and from which a run that was stopped goes on.

Every line names the document, the hash of its text and the model: a file that holds results of other documents or of
another model is never mixed with new ones. A line that was cut in the middle is written again, and one that says why a
document could not be assessed gives way to its result once there is one.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import IO, Any

from cohegraph.corpora.columns import Entry
from cohegraph.errors import CohegraphError
from cohegraph.files import lock
from cohegraph.scale.scoring import Scored

# No line is longer.
_LONGEST = 1 << 20
_HASH, _ERROR = "text_sha256", "error"


class ResultsFile:
    """A file of results that is open for writing; see `results_file`."""

    def __init__(self, stream: IO[bytes], name: Path, model: dict[str, str]) -> None:
        self._stream, self._name, self._model = stream, name, model
        self._dropped: set[int] = set()
        self.mended: set[int] = set()
        self.found = 0

    @property
    def is_out_of_order(self) -> bool:
        """Whether results must still be put in, or errors taken out; see `put_in_order`."""
        return bool(self.mended or self._dropped)

    def skip_done(self, entries: Iterable[Entry], note: Callable[[Entry], None]) -> Iterator[Entry]:
        """The entries whose results are not in the file yet; those that are must be the first, in the same order.

        Of every entry whose result is there, ``note`` is told. Those that could not be assessed then, or were not
        there, are the exception: ``mended`` are their numbers; see `put_in_order`.
        """
        waiting, number = _Numbered(entries), -1
        while (line := self._stream.readline(_LONGEST)) and (known := _known(line)) is not None:
            number += 1
            entry = waiting.seen
            if entry is not None and self._is_of(known, entry):
                waiting.take()
                if _ERROR in known and not entry.problem:
                    self.mended.add(waiting.taken - 1)
                    self._dropped.add(number)
                else:
                    note(entry)
            elif _ERROR in known and self._model.items() <= known.items():
                self._dropped.add(number)
            else:
                self._skip_to(known, waiting, number + 1)
                note(waiting.take())
            self.found = waiting.taken
        end = self._stream.tell() - len(line)
        self._check_rest(end, waiting.seen, number + 2)
        self._stream.seek(end)
        self._stream.truncate()
        return waiting

    def _skip_to(self, known: dict[str, Any], waiting: _Numbered, number: int) -> None:
        """Documents that were not there then, or in a table that could not be read, come before the result met next."""
        while (entry := waiting.seen) is not None and not self._is_of(known, entry):
            self.mended.add(waiting.taken)
            waiting.take()
        if waiting.seen is None:
            raise CohegraphError(
                f"{self._name} holds results of other documents or of another model (line {number}): name another "
                "file, or remove it."
            )

    def _check_rest(self, end: int, entry: Entry | None, number: int) -> None:
        """What follows the last whole line must be the beginning of the next."""
        self._stream.seek(end)
        rest = self._stream.read(_LONGEST)
        expected = b"" if entry is None else _line(self._identity(entry))[:-2]
        if rest and (b"\n" in rest or not (rest.startswith(expected) or expected.startswith(rest)) or not expected):
            raise CohegraphError(
                f"{self._name} holds other things than results (line {number}): name another file, or remove it."
            )

    def write(self, some: Iterable[Scored]) -> None:
        """Add results, safely on disk."""
        with self._told():
            self._stream.writelines(map(self._result, some))
            self._stream.flush()
            os.fsync(self._stream.fileno())

    def clear(self) -> None:
        """Remove all that is there."""
        self._stream.seek(0)
        self._stream.truncate()
        self.mended, self._dropped, self.found = set(), set(), 0

    def put_in_order(self, mended: ResultsFile) -> None:
        """Put the results of those that are mended into their places, and leave out the errors of then.

        The file changes as a whole.
        """
        place = self._name.resolve()
        beside = place.with_name(f".{place.name}.new")
        self._stream.seek(0)
        mended._stream.seek(0)
        kept = (line for number, line in enumerate(self._stream) if number not in self._dropped)
        try:
            with self._told(), beside.open("wb") as stream:
                for number in count():
                    line = next(mended._stream) if number in self.mended else next(kept, b"")
                    if not line:
                        break
                    stream.write(line)
                stream.flush()
                os.fsync(stream.fileno())
                shutil.copymode(place, beside)
                beside.replace(place)
        finally:
            beside.unlink(missing_ok=True)

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise CohegraphError(
                f"The results cannot be written to {self._name} ({error.strerror}): make room and run the same command "
                "again; what is done is kept."
            ) from None

    def _result(self, scored: Scored) -> bytes:
        about = {_ERROR: scored.entry.problem} if scored.result is None else scored.result.to_dict()
        return _line({**self._identity(scored.entry), **about})

    def _identity(self, entry: Entry) -> dict[str, Any]:
        return {**entry.names, _HASH: entry.text_sha256, **self._model}

    def _is_of(self, known: dict[str, Any], entry: Entry) -> bool:
        """Whether a line is that of an entry; of one that could not be read, neither text nor id are known."""
        expected = self._identity(entry)
        if _ERROR in known:
            expected = {name: value for name, value in expected.items() if name not in (_HASH, "id")}
        elif known.get("id") != entry.id:
            return False
        return {name: known.get(name) for name in expected} == expected


class _Numbered:
    """Entries one after the other, the next of which can be seen before it is taken."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self._waiting = iter(entries)
        self._seen: Entry | None = None
        self.taken = 0

    @property
    def seen(self) -> Entry | None:
        """The next one, which stays the next."""
        if self._seen is None:
            self._seen = next(self._waiting, None)
        return self._seen

    def take(self) -> Entry:
        """The next one."""
        entry = self.seen
        if entry is None:
            raise StopIteration
        self._seen = None
        self.taken += 1
        return entry

    def __iter__(self) -> Iterator[Entry]:
        return self

    def __next__(self) -> Entry:
        return self.take()


@contextmanager
def results_file(name: Path, model: dict[str, str]) -> Iterator[ResultsFile]:
    """Open a file of results, new or begun, for one process alone; ``model`` tells the model from others."""
    if name.exists() and not name.is_file():
        raise CohegraphError(f"The results cannot be written to {name}: name a file of your own for them.")
    try:
        stream = os.fdopen(os.open(name, os.O_RDWR | os.O_CREAT, 0o666), "r+b")
    except OSError as error:
        raise CohegraphError(f"The results cannot be written to {name}: {error.strerror}.") from None
    with stream:
        if not lock(stream):
            raise CohegraphError(f"Another process is writing results to {name}: wait for it, or stop it.")
        try:
            yield ResultsFile(stream, name, model)
        finally:
            if not os.fstat(stream.fileno()).st_size:
                name.unlink(missing_ok=True)


def _line(result: dict[str, Any]) -> bytes:
    return json.dumps(result, ensure_ascii=False).encode("utf-8", "replace") + b"\n"


def _known(line: bytes) -> dict[str, Any] | None:
    """What a line says; nothing where it is no whole line of results."""
    if not line.endswith(b"\n"):
        return None
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) and {"document", _HASH} <= found.keys() else None
