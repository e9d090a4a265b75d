"""Features computed once: kept on disk by what they were made from, and found again by any later run.

What each stage makes of a text is kept by itself (see `stages`): another delta does not encode again and another
encoder does not parse again. It is found by the SHA-256 of the text, of the settings that shape it and of the
pretrained parts' identities. All of it is in one SQLite file, each entry as safetensors with a checksum; an entry or a
file that is damaged is computed again.

What only some systems need is kept in the same way; vectors of tokens, which are many, lie in files beside, as float16,
and are mapped into memory (`TokenFiles`).
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, repeat
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as load_safetensors
from safetensors.numpy import save as save_safetensors

from cohegraph.errors import CohegraphError
from cohegraph.features.document_features import Features, Material
from cohegraph.features.featurizer import Featurizer
from cohegraph.features.stages import STAGES, Arrays, features_of, key_of, shape_of, shapes
from cohegraph.features.token_files import TOKEN_QUERY, TOKEN_TABLE, TokenFiles
from cohegraph.files import cache_folder
from cohegraph.graph.entity_grid import ROLES, EntityGrid
from cohegraph.progress import track
from cohegraph.text.document import Document
from cohegraph.text.token_sequence import TokenSequence

FILE = "features.sqlite"
# Documents that are computed, and written, at once.
_CHUNK = 32
_TABLE = "CREATE TABLE IF NOT EXISTS halves (key TEXT PRIMARY KEY, content BLOB) WITHOUT ROWID"
# What SQLite says of a file that is none of its own, or not whole, or has other tables than these.
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_FORMAT)
_T = TypeVar("_T")
# Another process may be writing.
_PATIENCE_SECONDS = 60
_GRID = ("size", "cells")
# Bytes of a checksum.
_SEAL = 8
# Named anew whenever the meaning of a role changes.
_ROLES = "grid of underlying roles"


@dataclass(frozen=True)
class CacheInfo:
    """Where a cache is, how many entries and sequences of tokens it keeps, and its bytes on disk."""

    folder: Path
    entries: int
    sequences: int
    size: int


class FeatureCache:
    """A folder of computed features, by default the user's own."""

    def __init__(self, folder: Path | None = None) -> None:
        folder = cache_folder() if folder is None else folder
        folder.mkdir(parents=True, exist_ok=True)
        self._file = folder / FILE
        self._token_files = TokenFiles(folder, self._connect)
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
        wanted = tuple(sorted(set(needs)))
        starts = range(0, len(texts), _CHUNK)
        chunks = (
            self._guarded(partial(self._chunk, texts[start : start + _CHUNK], featurizer, wanted)) for start in starts
        )
        parts = list(track(chunks, "reading documents", len(texts), size=len, show=show_progress))
        return Features.concatenate(parts) if parts else featurizer.featurize([], needs=wanted)

    def info(self) -> CacheInfo:
        """How much is kept."""
        return self._guarded(self._info)

    def verify(self, *, show_progress: bool = False) -> tuple[int, int]:
        """Look at everything: how much there is, and how much of it was damaged, which is removed."""
        return self._guarded(partial(self._verify, show_progress))

    def clear(self) -> None:
        """Remove everything; a process that reads meanwhile keeps what it has opened."""

        def remove() -> None:
            for file in self._files():
                file.unlink(missing_ok=True)

        self._documents.clear()
        self._guarded(remove)

    def _files(self) -> list[Path]:
        folder = self._file.parent
        return sorted({*folder.glob(f"{FILE}*"), *folder.glob("tokens-*.f16")})

    def _info(self) -> CacheInfo:
        with closing(self._connect()) as connection:
            entries, sequences = (
                connection.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0] for table in ("halves", "tokens")
            )
        return CacheInfo(self._file.parent, entries, sequences, sum(file.stat().st_size for file in self._files()))

    def _verify(self, show_progress: bool) -> tuple[int, int]:
        with closing(self._connect()) as connection:
            halves = [key for (key,) in connection.execute("SELECT key FROM halves")]
            tokens = [key for (key,) in connection.execute("SELECT key FROM tokens")]
            looked_at = track(
                chain(zip(repeat("halves"), halves), zip(repeat("tokens"), tokens)),
                "looking at features",
                len(halves) + len(tokens),
                show=show_progress,
            )
            damaged = [(table, key) for table, key in looked_at if not self._is_good(connection, table, key)]
            with connection:
                for table, key in damaged:
                    connection.execute(f"DELETE FROM {table} WHERE key = ?", (key,))
        return len(halves) + len(tokens), len(damaged)

    def _is_good(self, connection: sqlite3.Connection, table: str, key: str) -> bool:
        if table == "tokens":
            return self._token_files.is_good(connection, key)
        row = connection.execute("SELECT content FROM halves WHERE key = ?", (key,)).fetchone()
        return row is not None and _is_whole(row[0])

    def _chunk(self, texts: Sequence[str], featurizer: Featurizer, needs: Sequence[Material]) -> Features:
        parse = partial(self._parsed, featurizer=featurizer)
        pieces: dict[str, list[Arrays]] = {
            stage.name: self._entries(
                texts, stage.shape(featurizer), partial(stage.made, featurizer, parse=parse), stage.fits
            )
            for stage in STAGES
        }
        features = features_of(featurizer, pieces)
        material: dict[Material, tuple[Any, ...]] = {}
        for name in needs:
            if name == "grid":
                roles = f"{shape_of(featurizer, _ROLES, (), ())} {featurizer.dependency_parser.identity}"
                cells = self._entries(
                    texts, roles, lambda new: list(map(_grid_arrays, featurizer.grids(new))), _fits_grid
                )
                material[name] = tuple(map(_grid, cells))
            else:
                parts = ("parser", "encoder" if name == "states" else "vectors")
                material[name] = self._sequences(texts, shape_of(featurizer, name, (), parts), featurizer, name)
        return replace(features, material=material)

    def _sequences(
        self, texts: Sequence[str], shaped_by: str, featurizer: Featurizer, kind: Literal["states", "words"]
    ) -> tuple[TokenSequence, ...]:
        found = self._token_files.sequences(
            {text: key_of(shaped_by, text) for text in texts},
            hashlib.sha256(shaped_by.encode()).hexdigest()[:16],
            lambda missing: featurizer.sequences(self._parsed(missing, featurizer), kind),
        )
        return tuple(found[text] for text in texts)

    def _entries(
        self,
        texts: Sequence[str],
        shaped_by: str,
        make: Callable[[Sequence[str]], list[Arrays]],
        fits: Callable[[Arrays], bool],
    ) -> list[Arrays]:
        """An entry for every text; a stored one that does not fit is computed again."""
        keys = {text: key_of(shaped_by, text) for text in texts}
        with closing(self._connect()) as connection:
            found = {text: self._read(connection, key, fits) for text, key in keys.items()}
        missing = [text for text, arrays in found.items() if arrays is None]
        if missing:
            made = dict(zip(missing, make(missing), strict=True))
            found |= made
            with closing(self._connect()) as connection, connection:
                connection.executemany(
                    "INSERT OR REPLACE INTO halves VALUES (?, ?)",
                    [(keys[text], _sealed(save_safetensors(arrays))) for text, arrays in made.items()],
                )
        return [arrays for text in texts if (arrays := found[text]) is not None]

    def _read(self, connection: sqlite3.Connection, key: str, fits: Callable[[Arrays], bool]) -> Arrays | None:
        row = connection.execute("SELECT content FROM halves WHERE key = ?", (key,)).fetchone()
        try:
            arrays: Arrays | None = None if row is None or not _is_whole(row[0]) else load_safetensors(row[0][_SEAL:])
        except (SafetensorError, TypeError):
            return None
        return arrays if arrays is not None and fits(arrays) else None

    def _parsed(self, texts: Sequence[str], featurizer: Featurizer) -> list[Document]:
        """The parsed texts; each is parsed once in the life of the cache, however often it is linked."""
        parser = featurizer.identities["parser"]
        new = [text for text in dict.fromkeys(texts) if (parser, text) not in self._documents]
        for text, document in zip(new, featurizer.parser.parse(new), strict=True):
            self._documents[parser, text] = document
        return [self._documents[parser, text] for text in texts]

    def _guarded(self, action: Callable[[], _T]) -> _T:
        """Do something with the database; a damaged one is set aside and a new one begun, once."""
        for last in (False, True):
            try:
                return action()
            except OSError as error:
                raise CohegraphError(self._trouble(error.strerror or str(error)), code="cache-trouble") from None
            except sqlite3.Error as error:
                # Extended codes carry the plain one in their lowest byte.
                damaged = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF in _DAMAGED
                if last or not damaged:
                    raise CohegraphError(self._trouble(str(error)), code="cache-trouble") from None
                self._file.replace(self._file.with_name(f"{FILE}.damaged"))
        raise AssertionError("the loop ends with an answer or an error")

    def _trouble(self, what: str) -> str:
        return (
            f"The features kept in {self._file.parent} cannot be read or written ({what}): wait until no other process "
            "uses them, make room on the disk, or name another place in COHEGRAPH_CACHE."
        )

    def _connect(self) -> sqlite3.Connection:
        """The database with all its tables, as they are here."""
        connection = sqlite3.connect(self._file, timeout=_PATIENCE_SECONDS)
        try:
            with connection:
                for table, columns in ((_TABLE, "key, content FROM halves"), (TOKEN_TABLE, TOKEN_QUERY)):
                    connection.execute(table)
                    connection.execute(f"SELECT {columns} LIMIT 0")
        except BaseException:
            connection.close()
            raise
        return connection


def _sealed(content: bytes) -> bytes:
    """Content with a checksum before it."""
    return hashlib.blake2b(content, digest_size=_SEAL).digest() + content


def _is_whole(sealed: Any) -> bool:
    return isinstance(sealed, bytes) and len(sealed) > _SEAL and _sealed(sealed[_SEAL:]) == sealed


def _fits_grid(arrays: Arrays) -> bool:
    match shapes(arrays, *_GRID):
        case ((2,), (4, _)):
            (sentences, entities), (sentence, entity, role, mentions) = arrays["size"], arrays["cells"]
            lowest = min(part.min(initial=0) for part in (sentence, entity, role - 1, mentions - 1))
            beyond = (sentence >= sentences).any() or (entity >= entities).any() or (role >= len(ROLES)).any()
            return bool(lowest >= 0 and not beyond)
    return False


def _grid_arrays(grid: EntityGrid) -> Arrays:
    cells = np.stack([grid.sentence, grid.entity, grid.role, grid.mentions])
    return dict(zip(_GRID, (np.array([grid.sentences, grid.entities]), cells), strict=True))


def _grid(arrays: Arrays) -> EntityGrid:
    return EntityGrid(*arrays["size"].tolist(), *arrays["cells"])
