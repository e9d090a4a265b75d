"""The features of a corpus in a folder of shards, with vectors that are mapped into memory.

``store.json`` names the shards that the corpus consists of. It is written last and replaced as a whole: whoever reads
the store meanwhile has the corpus as it was. Shards that it does not name are work in progress, or left from an earlier
corpus; their rows are found again by the hashes of their texts.
"""

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import chain, compress
from pathlib import Path
from typing import IO, Any, Self

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from scipy import sparse

from cohegraph.errors import CohegraphError, DamagedFileError
from cohegraph.features.document_features import TALLIES, DocumentReading, Features, Material
from cohegraph.features.mapped_vectors import MappedVectors
from cohegraph.features.shards import is_whole, mapped_vectors, read_shard, shards_in
from cohegraph.features.stages import READING
from cohegraph.files import LOCK, alone_in, lock, write_atomically
from cohegraph.progress import track
from cohegraph.settings import Settings

ABOUT = "store.json"
FORMAT = 2
_READERS = ".readers"
_AGAIN = "run 'cohegraph featurize' again, which computes what is missing."


class Contents(BaseModel):
    """What ``store.json`` says."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    format: int = Field(FORMAT, ge=1)
    documents: int = Field(ge=1)
    patterns: int = Field(ge=1)
    dimensions: int = Field(ge=1)
    settings: dict[str, Any]
    parts: dict[str, str]
    shards: list[tuple[str, int]] = Field(min_length=1)
    sha256: str = ""

    def sealed(self) -> Self:
        """The same with the hash of all that it says, so that a change is noticed."""
        said = self.model_copy(update={"sha256": ""}).model_dump_json()
        return self.model_copy(update={"sha256": hashlib.sha256(said.encode()).hexdigest()})


@dataclass(frozen=True)
class StoredCorpus:
    """The features of a corpus, its vectors mapped into memory, and what it says of its documents.

    ``fingerprint`` identifies the contents of its store. For as long as it is held, no writer removes the files
    that it was read from.
    """

    features: Features
    ids: tuple[str, ...]
    labels: tuple[Any, ...]
    groups: tuple[str | None, ...]
    keys: tuple[str, ...]
    fingerprint: str
    reading: IO[str] | None = field(repr=False, compare=False)

    @property
    def known_groups(self) -> list[str] | None:
        """The groups, where documents have any."""
        return None if None in self.groups else [str(group) for group in self.groups]

    def only(self, chosen: npt.NDArray[np.bool_]) -> Self:
        """Some of the documents."""
        ids, labels, groups, keys = (
            tuple(compress(column, chosen)) for column in (self.ids, self.labels, self.groups, self.keys)
        )
        return replace(self, features=self.features[chosen], ids=ids, labels=labels, groups=groups, keys=keys)


class FeatureStore:
    """A folder with the features of a corpus, as `featurize` writes it."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self._reading = _reader(self.folder)
        self.contents = read_contents(self.folder)
        self.settings = Settings.from_dict(self.contents.settings)

    def __len__(self) -> int:
        return self.contents.documents

    @property
    def size(self) -> int:
        """Bytes on disk."""
        files = [self.folder / name for name, _ in self.contents.shards]
        return sum(file.stat().st_size for file in files if file.is_file())

    def damaged(self, *, show_progress: bool = False) -> list[str]:
        """The names of files that are missing or not what was written."""
        names = [name for name, _ in self.contents.shards]
        checked = track(names, "checking files", len(names), show=show_progress)
        return [name for name in checked if not is_whole(self.folder / name)]

    def corpus(self, *, show_progress: bool = False) -> StoredCorpus:
        """The corpus, all files of which are checked."""
        return self._corpus(self.contents.shards, show_progress)

    def part(self, number: int) -> StoredCorpus:
        """The documents of one of its files, which is checked."""
        return self._corpus(self.contents.shards[number : number + 1], show_progress=False)

    def _corpus(self, shards: Sequence[tuple[str, int]], show_progress: bool) -> StoredCorpus:
        found = [self._columns(*shard) for shard in track(shards, "checking files", len(shards), show=show_progress)]
        counts, tallies, readings, *columns = zip(*found, strict=True)
        files, rows = zip(*((self.folder / name, rows) for name, rows in shards), strict=True)
        vectors = MappedVectors(files, np.cumsum([0, *rows]), self.contents.dimensions, mapped_vectors)
        parts, fingerprint = dict(self.contents.parts), hashlib.sha256(self.contents.model_dump_json().encode())
        material: dict[Material, tuple[Any, ...]] = {}
        if self.settings.reader.judges:
            material["reading"] = tuple(chain.from_iterable(readings))
        tally = np.concatenate(tallies)
        features = Features(sparse.vstack(counts, format="csr"), vectors, tally, parts, self.settings, material)
        ids, labels, groups, keys = (tuple(chain.from_iterable(column)) for column in columns)
        return StoredCorpus(features, ids, labels, groups, keys, fingerprint.hexdigest(), self._reading)

    def _columns(self, name: str, rows: int) -> tuple[Any, ...]:
        """The columns of a file except for the vectors, as copies, so that the file need not stay open."""
        file, contents = self.folder / name, self.contents
        if not is_whole(file):
            raise DamagedFileError(f"{file} is damaged or missing: {_AGAIN}")
        shard = read_shard(file)
        shape = (len(shard), shard.counts.shape[1], shard.tallies.shape[1], shard.vectors.shape[1])
        if shape != (rows, contents.patterns, len(TALLIES), contents.dimensions):
            raise DamagedFileError(f"{file} does not fit the other files: {_AGAIN}")
        small = shard.counts.data.max(initial=0) < 2**31
        counts, keys = shard.counts.astype(np.int32 if small else np.int64), [key.hex() for key in shard.keys]
        readings = [DocumentReading(**arrays) for arrays in shard.further.get(READING.name, ())]
        if self.settings.reader.judges and len(readings) != rows:
            raise DamagedFileError(f"{file} does not fit the settings: {_AGAIN}")
        return counts, np.array(shard.tallies), readings, shard.ids, shard.labels, shard.groups, keys

    def labelled(self, *, skip_unlabelled: bool, show_progress: bool = False) -> StoredCorpus:
        """The corpus; documents without a label are left out, or an error."""
        corpus = self.corpus(show_progress=show_progress)
        labelled = np.array([label is not None for label in corpus.labels])
        if labelled.all():
            return corpus
        if skip_unlabelled and labelled.any():
            return corpus.only(labelled)
        remedy = "leave them out with --skip-unlabelled."
        if not labelled.any():
            remedy = "make features of a table with a column 'label', or name the column with --label-column."
        message = f"{int((~labelled).sum())} of {len(labelled)} documents in {self.folder} have no label: {remedy}"
        raise CohegraphError(message, code="missing-label")


def _reader(folder: Path) -> IO[str] | None:
    """A lock that shows writers, for as long as it is held, that the store is being read."""
    if not is_store(folder):
        return None
    try:
        stream = (folder / _READERS).open("a")
    except OSError:  # nobody can write to it
        return None
    lock(stream, shared=True)
    return stream


def is_store(folder: Path) -> bool:
    """Whether a folder holds features, complete or not."""
    if not os.path.isdir(folder):  # noqa: PTH112 (a name too long for a file is no error here)
        return False
    about = folder / ABOUT
    return bool(shards_in(folder)) or (about.is_file() and b'"shards"' in about.read_bytes())


def read_contents(folder: Path) -> Contents:
    """What a store says of itself, checked."""
    file = folder / ABOUT
    try:
        contents = Contents.model_validate_json(file.read_bytes())
        if contents != contents.sealed():
            raise ValueError("it was changed")
    except (FileNotFoundError, NotADirectoryError):
        message, code = f"{folder} holds no features: make them with 'cohegraph featurize'.", "no-store"
        if is_store(folder):
            message, code = f"The features in {folder} are not complete: {_AGAIN}", "unfinished-store"
        raise CohegraphError(message, code=code) from None
    except OSError as error:
        raise CohegraphError(f"{file} cannot be read: {error.strerror}.", code="cannot-read") from None
    except (ValueError, RecursionError, ValidationError):
        raise DamagedFileError(f"{file} is damaged: {_AGAIN}") from None
    if contents.format > FORMAT:
        raise CohegraphError(
            f"The features in {folder} have format {contents.format}, and this version of cohegraph reads formats "
            f"up to {FORMAT}: upgrade cohegraph.",
            code="newer-format",
        )
    return contents


@dataclass(frozen=True)
class Unfinished:
    """A store that is not complete: its files, how many of them are whole, and the documents in these."""

    files: int
    whole: int
    documents: int


def unfinished_in(folder: Path) -> Unfinished | None:
    """What there is of a store that is not complete; nothing of one that is."""
    if not is_store(folder) or (folder / ABOUT).exists():
        return None
    files = shards_in(folder)
    whole = [file for file in files if is_whole(file)]
    return Unfinished(len(files), len(whole), sum(len(read_shard(file)) for file in whole))


def shards_named(folder: Path) -> set[str]:
    """The names of the shards that the corpus of a store consists of; none where it is not complete."""
    try:
        return {name for name, _ in read_contents(folder).shards}
    except CohegraphError:
        return set()


def write_contents(folder: Path, contents: Contents) -> None:
    """Make the shards that are named the contents of the store."""
    write_atomically(folder / ABOUT, json.dumps(contents.sealed().model_dump(), indent=1) + "\n")


def remove_others(folder: Path, kept: Iterable[str]) -> None:
    """Remove shards that the contents do not name, and what a killed process has left half written.

    While another process reads the store, they are left for the next time.
    """
    named = set(kept)
    with (folder / _READERS).open("a") as stream:
        if not lock(stream):
            return
    stale = [file for file in shards_in(folder) if file.name not in named]
    for file in (folder / _READERS, *stale, *folder.glob(".*.arrow.*"), *folder.glob(f".{ABOUT}.*")):
        file.unlink(missing_ok=True)


def remove_store(folder: Path) -> None:
    """Remove a store, complete or not, and its folder if that holds nothing else."""
    with only_writer(folder):
        (folder / ABOUT).unlink(missing_ok=True)
        remove_others(folder, ())
        (folder / LOCK).unlink(missing_ok=True)
    with suppress(OSError):
        folder.rmdir()


def check_target(folder: Path) -> None:
    """Raise where features would be mixed with other things."""
    if folder.is_dir() and any(folder.iterdir()) and not is_store(folder) and not (folder / LOCK).exists():
        raise CohegraphError(f"{folder} holds other things than features: name another folder.", code="foreign-folder")


@contextmanager
def only_writer(folder: Path) -> Iterator[None]:
    """Make sure that no other process writes to a store; a disk that is full is reported."""
    try:
        with alone_in(folder):
            yield
    except OSError as error:
        raise CohegraphError(
            f"The features cannot be written to {folder} ({error.strerror or error}): make room or name another "
            "folder; what is done is kept.",
            code="cannot-write",
        ) from None
