"""Assessments as JSON Lines, in a file to which lines are only ever appended.

Every line names the document, the hash of its text and the model, and holds the result, or an error where the document
could not be read. The last line for a document is the one that counts. A run that was stopped resumes from its file.
"""

import hashlib
import io
import json
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cohegraph.corpora.columns import Entry
from cohegraph.errors import CohegraphError
from cohegraph.files import lock
from cohegraph.scale.scoring import Scored

# No line is longer: a file without line ends is not read into memory.
_LONGEST = 1 << 24
_BEFORE_NAME, _BEFORE_MODEL = b'{"document": "', b'"model_sha256": "'


class ResultsFile:
    """A file of results that this process alone appends to; see `results_file`.

    Of each document in the file, two digests of 15 bytes are held, which Python stores in 48 bytes each: that of its
    name, and that of what its last line says of it.
    """

    def __init__(self, stream: io.FileIO, name: Path, model: dict[str, str]) -> None:
        self._stream, self._name, self._model = stream, name, model
        self._last: dict[bytes, bytes] = {}
        self._failed: set[bytes] = set()
        self.skipped = 0
        self._read()

    @property
    def documents(self) -> int:
        """How many documents the file has a line for."""
        return len(self._last)

    def missing(
        self, entries: Iterable[Entry], report: Callable[[str], None], *, retry_errors: bool = False
    ) -> Iterator[Entry]:
        """The entries that need a line, in order; ``skipped`` counts the others.

        An entry whose last line is an error is skipped and reported. With ``retry_errors`` it is skipped only if the
        same error would be written again. Nothing but the name of such a document is known, so that any text found
        under this name takes its place.
        """
        for entry in entries:
            key = _digest(entry.name)
            failed = key in self._failed
            if self._last.get(key) != _digest(*_contents(entry)) and (retry_errors or not failed):
                yield entry
                continue
            self.skipped += 1
            if failed:
                report(entry.problem or f"{entry.name} could not be read before: add --retry-errors to try again.")

    def append(self, some: Iterable[Scored]) -> None:
        """Append results, and wait until they are on disk."""
        content = memoryview(b"".join(map(self._line, some)))
        try:
            while content:
                content = content[self._stream.write(content) or 0 :]
            os.fsync(self._stream.fileno())
        except OSError as error:
            raise CohegraphError(
                f"The results cannot be written to {self._name} ({error.strerror}): make room and run the same command "
                "again to resume.",
                code="cannot-write",
            ) from None

    def _line(self, scored: Scored) -> bytes:
        entry, (_, text_sha256, error) = scored.entry, _contents(scored.entry)
        result = {"error": error} if scored.result is None else scored.result.to_dict()
        return _encoded({**entry.names, "text_sha256": text_sha256, **self._model, **result}) + b"\n"

    def _read(self) -> None:
        """Remember what is done; a last line that was cut is removed once all others are known to be results."""
        end = 0
        with os.fdopen(self._stream.fileno(), "rb", closefd=False) as stream:
            stream.seek(0)
            for number, line in enumerate(iter(lambda: stream.readline(_LONGEST), b""), start=1):
                found, is_whole = _parsed(line), line.endswith(b"\n")
                if _is_result(found):
                    if found["model_sha256"] != self._model["model_sha256"]:
                        raise CohegraphError(
                            f"{self._name} holds results of another model (line {number}): name another file.",
                            code="other-model",
                        )
                    if is_whole:
                        self._remember(found)
                elif is_whole or found is not None or not self._is_cut(line):
                    raise CohegraphError(
                        f"{self._name} is not a file of results (line {number}): name another file.", code="not-results"
                    )
                end += len(line) if is_whole else 0
        if end < os.fstat(self._stream.fileno()).st_size:
            self._stream.truncate(end)

    def _remember(self, line: dict[str, Any]) -> None:
        name, error = _digest(line["document"]), line.get("error")
        self._last[name] = _digest(line.get("id"), line["text_sha256"], error)
        if error is None:
            self._failed.discard(name)
        else:
            self._failed.add(name)

    def _is_cut(self, line: bytes) -> bool:
        """Whether this can be the beginning of a result of this model."""
        model, sha256 = line.partition(_BEFORE_MODEL)[2], self._model["model_sha256"].encode()
        pairs = ((line, _BEFORE_NAME), (model, sha256))
        return len(line) < _LONGEST and all(one.startswith(other) or other.startswith(one) for one, other in pairs)


@contextmanager
def results_file(name: Path, model: dict[str, str]) -> Iterator[ResultsFile]:
    """Open a file of results, new or begun, for this process alone; ``model`` is the model's name and SHA-256."""
    if name.exists() and not name.is_file():
        raise CohegraphError(f"The results cannot be written to {name}: name a regular file.", code="not-a-file")
    is_new = not name.exists()
    try:
        stream = name.open("ab+", buffering=0)
    except OSError as error:
        raise CohegraphError(
            f"The results cannot be written to {name}: {error.strerror}.", code="cannot-write"
        ) from None
    with stream:
        # A file that was there a moment ago may have been removed by the process that made it.
        if not lock(stream) or not (name.exists() and os.path.samestat(name.stat(), os.fstat(stream.fileno()))):
            raise CohegraphError(
                f"Another process is writing results to {name}: wait for it, or stop it.", code="in-use"
            )
        try:
            yield ResultsFile(stream, name, model)
        finally:
            if is_new and not os.fstat(stream.fileno()).st_size:
                name.unlink(missing_ok=True)


def _contents(entry: Entry) -> tuple[str | None, str | None, str | None]:
    """What a line says of a document besides its name: id, SHA-256 of the text, error; an error has no text."""
    return (entry.id, None, entry.problem) if entry.problem else (entry.id, entry.text_sha256, None)


def _digest(*parts: Any) -> bytes:
    return hashlib.blake2b(_encoded(parts), digest_size=15).digest()


def _encoded(values: Any) -> bytes:
    return json.dumps(values, ensure_ascii=False).encode("utf-8", "replace")


def _parsed(line: bytes) -> Any:
    """The value of a line of JSON; nothing where it is something else."""
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _is_result(value: Any) -> bool:
    return isinstance(value, dict) and {"document", "text_sha256", "model_sha256"} <= value.keys()
