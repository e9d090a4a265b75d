"""Assessments as JSON Lines in a file that grows, and from which a run that was stopped goes on.

Every line names the document, the hash of its text and the model: a file that holds results of other documents or of
another model is never mixed with new ones. A line that was cut in the middle is written again.
"""

from __future__ import annotations

import hashlib
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


class ResultsFile:
    """A file of results that is open for writing; see `results_file`."""

    def __init__(self, stream: IO[bytes], name: Path, model: dict[str, str]) -> None:
        self._stream, self._name, self._model = stream, name, model
        self.found = 0

    def skip_done(self, entries: Iterable[Entry], note: Callable[[Entry], None]) -> Iterator[Entry]:
        """The entries whose results are not in the file yet; those that are must be the first, in the same order.

        Of every entry whose result is there, ``note`` is told.
        """
        waiting = iter(entries)
        end = 0
        while line := self._stream.readline(_LONGEST):
            known = _known(line)
            if known is None:
                break
            entry = next(waiting, None)
            if entry is None or known != self._identity(entry):
                raise CohegraphError(
                    f"{self._name} holds results of other documents or of another model (line {self.found + 1}): name "
                    "another file, or remove it."
                )
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
        try:
            for scored in some:
                about = {"error": scored.entry.problem} if scored.result is None else scored.result.to_dict()
                line = {**self._identity(scored.entry), **about}
                self._stream.write(_line(line))
            self._stream.flush()
            os.fsync(self._stream.fileno())
        except OSError as error:
            raise CohegraphError(
                f"The results cannot be written to {self._name} ({error.strerror}): make room and run the same command "
                "again; what is done is kept."
            ) from None

    def _identity(self, entry: Entry) -> dict[str, Any]:
        text = hashlib.sha256(entry.text.encode("utf-8", "surrogatepass")).hexdigest()
        return {"document": entry.name, "text_sha256": text, **self._model}


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
    """What a line says of its document and model; nothing where it is no whole line of results."""
    if not line.endswith(b"\n"):
        return None
    try:
        found = json.loads(line)
        return {name: found[name] for name in ("document", "text_sha256", "model", "model_sha256")}
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
