"""Assessments as JSON Lines in a file that grows, and from which a run that was stopped goes on.

Every line names the document, the hash of its text and the model: a file that holds results of other documents or of
another model is never mixed with new ones. A line that was cut in the middle is written again, and so is one that says
why a document could not be assessed, once it can be.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import IO, Any

from cohegraph.corpora.stream import Entry
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
        self.found = 0
        self.mended: list[int] = []

    def skip_done(self, entries: Iterable[Entry], note: Callable[[Entry], None]) -> Iterator[Entry]:
        """The entries whose results are not in the file yet; those that are must be the first, in the same order.

        Of every entry whose result is there, ``note`` is told. ``mended`` are then the numbers of those that could not
        be assessed and can be now; see `replace_mended`.
        """
        waiting = iter(entries)
        end = 0
        while line := self._stream.readline(_LONGEST):
            known = _known(line)
            if known is None:
                break
            entry = next(waiting, None)
            if entry is None or not self._is_of(known, entry):
                raise CohegraphError(
                    f"{self._name} holds results of other documents or of another model (line {self.found + 1}): name "
                    "another file, or remove it."
                )
            if _ERROR in known and not entry.problem:
                self.mended.append(self.found)
            else:
                note(entry)
            self.found += 1
            end += len(line)
        self._stream.seek(end)
        rest = self._stream.read(_LONGEST)
        entry = next(waiting, None) if rest else None
        expected = b"" if entry is None else _line(self._identity(entry))[:-2]
        if rest and (b"\n" in rest or not (rest.startswith(expected) or expected.startswith(rest)) or not expected):
            raise CohegraphError(
                f"{self._name} holds other things than results (line {self.found + 1}): name another file, or remove "
                "it."
            )
        self._stream.seek(end)
        self._stream.truncate()
        return waiting if entry is None else chain([entry], waiting)

    def write(self, some: Iterable[Scored]) -> None:
        """Add results, safely on disk."""
        with self._told():
            self._stream.writelines(map(self._result, some))
            self._stream.flush()
            os.fsync(self._stream.fileno())

    def replace_mended(self, results: Iterable[Scored]) -> None:
        """Put the results of those that are mended, in order, into their places; the file changes as a whole."""
        numbers, replacing = set(self.mended), iter(results)
        beside = self._name.with_name(f".{self._name.name}.mended")
        try:
            with self._told(), beside.open("wb") as stream:
                self._stream.seek(0)
                for number, line in enumerate(self._stream):
                    stream.write(self._result(next(replacing)) if number in numbers else line)
                stream.flush()
                os.fsync(stream.fileno())
                beside.replace(self._name)
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
        """Whether a line is that of an entry; that of one that could not be read may be that of any text."""
        expected = self._identity(entry)
        if _ERROR in known:
            expected[_HASH] = known.get(_HASH)
        return known.get("id") == entry.id and {name: known.get(name) for name in expected} == expected


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
        yield ResultsFile(stream, name, model)


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
