"""Features computed once: kept on disk by what they were made from, and found again by any later run.

What each stage makes of a text is kept separately (see `stages`), by the SHA-256 of the text, of the settings that
shape it and of the identities of the pretrained parts. All of it is in one SQLite file, each entry as safetensors with
a checksum; token vectors, which are many, lie in files beside it (`TokenFiles`). What is damaged is computed again.
"""

import hashlib
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from safetensors import SafetensorError
from safetensors.numpy import load as load_safetensors
from safetensors.numpy import save as save_safetensors

from cohegraph.errors import CohegraphError
from cohegraph.features.document_features import Features, Material
from cohegraph.features.featurizer import Featurizer
from cohegraph.features.stages import OF_MATERIAL, Arrays, Stage, features_of, grid_of, stages_of
from cohegraph.features.token_files import TokenFiles
from cohegraph.files import cache_folder
from cohegraph.progress import track
from cohegraph.text.document import Document

FILE = "features.sqlite"
# Documents that are computed, and written, at once.
_CHUNK = 32
# What SQLite reports of a file that is not a database, or not whole, or has other tables than these.
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_FORMAT)
_T = TypeVar("_T")
# Another process may be writing.
_PATIENCE_SECONDS = 60
# Bytes of a checksum.
_SEAL = 8


@dataclass(frozen=True)
class CacheInfo:
    """Where a cache is, how many entries and sequences of tokens it keeps, and its bytes on disk."""

    folder: Path
    entries: int
    sequences: int
    size: int


class _Entries:
    """Arrays in a table of the database. Its name dates from a time with two stages, and is that of existing caches."""

    table, columns = "halves", "key TEXT PRIMARY KEY, content BLOB"

    def find(self, connection: sqlite3.Connection, key: str) -> Arrays | None:
        """What is stored under a key, if it is whole."""
        row = connection.execute("SELECT content FROM halves WHERE key = ?", (key,)).fetchone()
        if row is None or not isinstance(row[0], bytes) or _sealed(row[0][_SEAL:]) != row[0]:
            return None
        try:
            arrays: Arrays = load_safetensors(row[0][_SEAL:])
        except SafetensorError:
            return None
        return arrays

    def write(
        self, connection: sqlite3.Connection, name: str, keys: Sequence[str], made: Sequence[Arrays]
    ) -> Sequence[Arrays]:
        """Store arrays under keys."""
        rows = [(key, _sealed(save_safetensors(arrays))) for key, arrays in zip(keys, made, strict=True)]
        connection.executemany("INSERT OR REPLACE INTO halves VALUES (?, ?)", rows)
        return made


def _sealed(content: bytes) -> bytes:
    """Content with a checksum before it."""
    return hashlib.blake2b(content, digest_size=_SEAL).digest() + content


class FeatureCache:
    """A folder of computed features, by default the user's own."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = cache_folder() if folder is None else folder
        self._folder.mkdir(parents=True, exist_ok=True)
        self._entries, self._sequences = _Entries(), TokenFiles(self._folder)
        self._documents: dict[tuple[str, str], Document] = {}
        self._guarded(lambda: self._connect().close())

    def features(
        self,
        texts: Sequence[str],
        featurizer: Featurizer,
        *,
        needs: Iterable[Material] = (),
        show_progress: bool = False,
    ) -> Features:
        """The features of texts, in their order: read where they are stored, else computed and stored at once."""
        wanted, starts = tuple(sorted(set(needs))), range(0, len(texts), _CHUNK)
        chunks = (
            self._guarded(partial(self._chunk, texts[start : start + _CHUNK], featurizer, wanted)) for start in starts
        )
        parts = list(track(chunks, "reading documents", len(texts), size=len, show=show_progress))
        return Features.concatenate(parts) if parts else featurizer.featurize([], needs=wanted)

    def info(self) -> CacheInfo:
        """How much is kept."""

        def count() -> CacheInfo:
            with closing(self._connect()) as connection:
                entries, sequences = (
                    connection.execute(f"SELECT COUNT(*) FROM {kept.table}").fetchone()[0]
                    for kept in (self._entries, self._sequences)
                )
            return CacheInfo(self._folder, entries, sequences, sum(file.stat().st_size for file in self._files()))

        return self._guarded(count)

    def verify(self, *, show_progress: bool = False) -> tuple[int, int]:
        """Check everything: how much there is, and how much of it was damaged, which is removed."""

        def check() -> tuple[int, int]:
            with closing(self._connect()) as connection:
                rows = [
                    (kept, key)
                    for kept in (self._entries, self._sequences)
                    for (key,) in connection.execute(f"SELECT key FROM {kept.table}").fetchall()
                ]
                checked = track(rows, "checking features", len(rows), show=show_progress)
                damaged = [(kept.table, key) for kept, key in checked if kept.find(connection, key) is None]
                with connection:
                    for table, key in damaged:
                        connection.execute(f"DELETE FROM {table} WHERE key = ?", (key,))
            return len(rows), len(damaged)

        return self._guarded(check)

    def clear(self) -> None:
        """Remove everything; a process that reads meanwhile keeps what it has opened."""

        def remove() -> None:
            for file in self._files():
                file.unlink(missing_ok=True)

        self._documents.clear()
        self._guarded(remove)

    def _files(self) -> list[Path]:
        return [*self._folder.glob(f"{FILE}*"), *self._folder.glob("tokens-*.f16")]

    def _chunk(self, texts: Sequence[str], featurizer: Featurizer, needs: Sequence[Material]) -> Features:
        pieces = {
            stage.name: self._made(self._entries, stage, texts, featurizer) for stage in stages_of(featurizer.settings)
        }
        features = features_of(featurizer, pieces)
        material: dict[Material, tuple[Any, ...]] = dict(features.material)
        for name in needs:
            if name == "reading":
                continue
            kept = self._entries if name == "grid" else self._sequences
            found = self._made(kept, OF_MATERIAL[name], texts, featurizer)
            material[name] = tuple(map(grid_of, found) if name == "grid" else found)
        return replace(features, parts=featurizer.identities(needs), material=material)

    def _made(
        self, kept: _Entries | TokenFiles, stage: Stage, texts: Sequence[str], featurizer: Featurizer
    ) -> list[Any]:
        """What a stage makes of every text: what is stored and whole, and otherwise computed and stored."""
        shape = stage.shape(featurizer)
        keys = {text: hashlib.sha256(f"{shape}\n{text}".encode("utf-8", "surrogatepass")).hexdigest() for text in texts}
        with closing(self._connect()) as connection:
            found: dict[str, Any] = {text: kept.find(connection, key) for text, key in keys.items()}
            missing = [text for text, one in found.items() if one is None or not stage.fits(one)]
            if missing:
                made = stage.made(featurizer, missing, partial(self._parsed, featurizer=featurizer))
                # One writer at a time: the end of a file of token vectors is where the next one begins.
                connection.execute("BEGIN IMMEDIATE")
                with connection:
                    name = hashlib.sha256(shape.encode()).hexdigest()[:16]
                    stored = kept.write(connection, name, [keys[text] for text in missing], made)
                found |= zip(missing, stored, strict=True)
        return [found[text] for text in texts]

    def _parsed(self, texts: Sequence[str], featurizer: Featurizer) -> list[Document]:
        """The parsed texts; each is parsed once in the life of the cache, however often it is linked."""
        parser = featurizer.parser.identity
        new = [text for text in dict.fromkeys(texts) if (parser, text) not in self._documents]
        for text, document in zip(new, featurizer.parser.parse(new), strict=True):
            self._documents[parser, text] = document
        return [self._documents[parser, text] for text in texts]

    def _guarded(self, action: Callable[[], _T], *, repair: bool = True) -> _T:
        """Do something with the database; a damaged one is set aside and a new one begun, once."""
        try:
            return action()
        except (OSError, sqlite3.Error) as error:
            # Extended codes carry the plain one in their lowest byte.
            code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF
            if isinstance(error, OSError) or not repair or code not in _DAMAGED:
                raise CohegraphError(
                    f"The features kept in {self._folder} cannot be read or written "
                    f"({getattr(error, 'strerror', None) or error}): wait until no other process uses them, make room "
                    "on the disk, or name another place in COHEGRAPH_CACHE.",
                    code="cache-trouble",
                ) from None
        (self._folder / FILE).replace(self._folder / f"{FILE}.damaged")
        return self._guarded(action, repair=False)

    def _connect(self) -> sqlite3.Connection:
        """The database with all its tables, as they are here."""
        connection = sqlite3.connect(self._folder / FILE, timeout=_PATIENCE_SECONDS)
        try:
            with connection:
                for kept in (self._entries, self._sequences):
                    connection.execute(f"CREATE TABLE IF NOT EXISTS {kept.table} ({kept.columns}) WITHOUT ROWID")
                    names = ", ".join(column.split()[0] for column in kept.columns.split(", "))
                    connection.execute(f"SELECT {names} FROM {kept.table} LIMIT 0")
        except BaseException:
            connection.close()
            raise
        return connection
