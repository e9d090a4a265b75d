"""GloVe text files, read once into a form beside them that opens in milliseconds.

The form is a folder ``FILE.cohegraph`` (or one in the user's cache where the file's folder cannot be written) of
memory-mapped arrays: the vectors in the order of the file, all words as one run of bytes, and the words' hashes in
ascending order with their rows. A look-up is a binary search, so opening builds no dictionary. The form is rebuilt
when the file's size or time of change differs.
"""

import hashlib
import json
import os
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO

import numpy as np
import numpy.typing as npt
from rich.progress import Progress

from cohegraph.errors import CohegraphError, DamagedFileError
from cohegraph.files import cache_folder, new_folder
from cohegraph.progress import track_bytes

_FORMAT = 1
_LINES_AT_ONCE = 10_000
_LINES_TO_LEARN_FROM = 1_000


@dataclass(frozen=True)
class StoredVectors:
    """An open GloVe file."""

    vectors: npt.NDArray[np.float32]
    sha256: str
    _hashes: npt.NDArray[np.uint64]
    _rows: npt.NDArray[np.int64]
    _ends: npt.NDArray[np.int64]
    _letters: npt.NDArray[np.uint8]

    def row_of(self, word: str) -> int | None:
        """The row of a word, exactly as spelled."""
        wanted = word.encode("utf-8", "replace")
        key = _hash(wanted)
        place = int(np.searchsorted(self._hashes, key))
        while place < len(self._hashes) and self._hashes[place] == key:
            row = int(self._rows[place])
            start = int(self._ends[row - 1]) if row else 0
            if self._letters[start : int(self._ends[row])].tobytes() == wanted:
                return row
            place += 1
        return None


def open_glove_file(file: Path) -> StoredVectors:
    """The vectors of a GloVe text file of any dimension, with or without a header line."""
    source = _source(file)
    for folder in _places(file):
        stored = _open(folder, source)
        if stored is not None:
            return stored
    writable = [place for place in _places(file) if os.access(place.parent, os.W_OK)]
    if not writable:
        raise CohegraphError(
            f"Neither the folder of {file} nor the cache can be written: set COHEGRAPH_CACHE.", code="cannot-write"
        )
    folder = writable[0]
    with new_folder(folder) as work:
        _convert(file, work, source)
    stored = _open(folder, source)
    if stored is None:
        raise DamagedFileError(
            f"The stored form of {file} in {folder} cannot be read: delete that folder and try again."
        )
    return stored


def _places(file: Path) -> list[Path]:
    path = file.resolve()
    key = hashlib.blake2b(str(path).encode(), digest_size=8).hexdigest()
    return [path.with_name(f"{path.name}.cohegraph"), cache_folder() / f"{path.name}.{key}.cohegraph"]


def _source(file: Path) -> dict[str, int]:
    status = file.stat()
    return {"format": _FORMAT, "bytes": status.st_size, "changed_ns": status.st_mtime_ns}


def _open(folder: Path, source: dict[str, int]) -> StoredVectors | None:
    try:
        about = json.loads((folder / "about.json").read_text("utf-8"))
        if about["source"] != source:
            return None
        names = ("vectors", "hashes", "rows", "ends", "letters")
        arrays = [np.load(folder / f"{name}.npy", mmap_mode="r", allow_pickle=False) for name in names]
    except (OSError, ValueError, KeyError, TypeError, EOFError):
        return None
    vectors, *index = arrays
    return StoredVectors(vectors, about["sha256"], *index)


def _convert(file: Path, folder: Path, source: dict[str, int]) -> None:
    dimensions, has_header = _layout(file)
    digest = hashlib.sha256()
    words: list[bytes] = []
    seen: set[bytes] = set()
    with file.open("rb") as stream, (folder / "raw").open("wb") as raw, track_bytes(f"reading {file.name}") as progress:
        task = progress.add_task("", total=source["bytes"])
        number = 0
        if has_header:
            digest.update(stream.readline())
            number = 1
        for lines in _batches(stream, digest, progress, task):
            kept = []
            for line in lines:
                number += 1
                parts = line.rstrip(b" \r\n").rsplit(b" ", dimensions)
                if len(parts) != dimensions + 1:
                    raise _bad_line(file, number, dimensions)
                if parts[0] not in seen:
                    seen.add(parts[0])
                    words.append(parts[0])
                    kept.append(b" ".join(parts[1:]))
            raw.write(_numbers(kept, file, number, dimensions).tobytes())
    if not words:
        raise CohegraphError(
            f"{file} holds no word vectors: a line is a word and its numbers, with spaces between.", code="empty-file"
        )
    vectors = np.memmap(folder / "raw", dtype=np.float32, mode="r", shape=(len(words), dimensions))
    np.save(folder / "vectors.npy", vectors)
    del vectors
    (folder / "raw").unlink()
    hashes = np.array([_hash(word) for word in words], dtype=np.uint64)
    order = np.argsort(hashes, kind="stable")
    np.save(folder / "hashes.npy", hashes[order])
    np.save(folder / "rows.npy", order)
    np.save(folder / "ends.npy", np.cumsum([len(word) for word in words], dtype=np.int64))
    np.save(folder / "letters.npy", np.frombuffer(b"".join(words), dtype=np.uint8))
    (folder / "about.json").write_text(json.dumps({"source": source, "sha256": digest.hexdigest()}), "utf-8")


def _layout(file: Path) -> tuple[int, bool]:
    """How many numbers a line has, and whether the first line is a header of two whole numbers.

    Words that contain spaces are few, so the most frequent length of a line tells.
    """
    with file.open("rb") as stream:
        lines = [line.rstrip(b" \r\n").split(b" ") for line in islice(stream, _LINES_TO_LEARN_FROM)]
    if lines and len(lines[0]) == 2 and all(part.isdigit() for part in lines[0]):
        return int(lines[0][1]), True
    lengths = Counter(len(line) for line in lines)
    dimensions = max(lengths, key=lambda length: (lengths[length], -length), default=1) - 1
    if dimensions < 1:
        raise CohegraphError(
            f"{file} is not a GloVe text file: a line is a word and its numbers, with spaces between.", code="not-glove"
        )
    return dimensions, False


def _batches(stream: IO[bytes], digest: "hashlib._Hash", progress: Progress, task: object) -> Iterator[list[bytes]]:
    while lines := list(islice(stream, _LINES_AT_ONCE)):
        digest.update(b"".join(lines))
        progress.update(task, completed=stream.tell())  # type: ignore[arg-type]
        yield lines


def _numbers(lines: list[bytes], file: Path, number: int, dimensions: int) -> npt.NDArray[np.float32]:
    try:
        with warnings.catch_warnings():
            # Where it stops before the end, numpy warns or, from some version on, raises.
            warnings.simplefilter("error", DeprecationWarning)
            values = np.fromstring(b" ".join(lines), dtype=np.float32, sep=" ")
    except (ValueError, DeprecationWarning):
        values = np.zeros(0, dtype=np.float32)
    if len(values) != len(lines) * dimensions or not np.isfinite(values).all():
        raise DamagedFileError(
            f"{file} has something other than {dimensions} numbers after a word within the {len(lines)} lines up to "
            f"line {number}: is it a GloVe text file?",
            code="bad-numbers",
        )
    return values


def _bad_line(file: Path, number: int, dimensions: int) -> DamagedFileError:
    return DamagedFileError(
        f"{file} has fewer than {dimensions} numbers in line {number}: is the download complete?", code="short-line"
    )


def _hash(word: bytes) -> np.uint64:
    return np.uint64(int.from_bytes(hashlib.blake2b(word, digest_size=8).digest(), "little"))
