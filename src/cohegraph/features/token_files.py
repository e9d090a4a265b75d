"""Token vectors on disk: files of float16 rows that only grow, and an index of which text has which rows.

Rows are written and synchronised first, then the index: a process that dies in between leaves rows that no index names,
and the next one writes over them. A checksum tells damaged rows, which are computed anew. A file never takes the name
of another: what a reader has mapped stays what it was.
"""

from __future__ import annotations

import os
import sqlite3
import struct
import uuid
import zlib
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import numpy as np

from cohegraph.text.token_sequence import MappedRows, TokenSequence

TOKEN_TABLE = """
CREATE TABLE IF NOT EXISTS tokens (
    key TEXT PRIMARY KEY, file TEXT, start INTEGER, rows INTEGER, width INTEGER, checksum INTEGER,
    sentences BLOB, paragraphs BLOB
) WITHOUT ROWID
"""
TOKEN_QUERY = "file, start, rows, width, checksum, sentences, paragraphs FROM tokens"


class TokenFiles:
    """The token vectors that a feature cache keeps.

    Args:
        folder: Where the files are.
        connect: Opens the database with the index.
    """

    def __init__(self, folder: Path, connect: Callable[[], sqlite3.Connection]) -> None:
        self._folder, self._connect = folder, connect

    def sequences(
        self, keys: dict[str, str], name: str, make: Callable[[Sequence[str]], Sequence[TokenSequence]]
    ) -> dict[str, TokenSequence]:
        """The sequence of each text, whose key is given: mapped where it is stored, else made first."""
        with closing(self._connect()) as connection:
            found = {text: self._find(connection, key) for text, key in keys.items()}
            missing = [text for text, sequence in found.items() if sequence is None]
            if missing:
                made = make(missing)
                # One writer at a time: the end of the file is where the next one begins.
                connection.execute("BEGIN IMMEDIATE")
                with connection:
                    stored = self._append(connection, name, [keys[text] for text in missing], made)
                found |= dict(zip(missing, stored, strict=True))
        return {text: sequence for text, sequence in found.items() if sequence is not None}

    def is_good(self, connection: sqlite3.Connection, key: str) -> bool:
        """Whether what is stored under a key is what was written."""
        return self._find(connection, key) is not None

    def _append(
        self, connection: sqlite3.Connection, name: str, keys: Sequence[str], sequences: Sequence[TokenSequence]
    ) -> list[TokenSequence]:
        file, start = self._end(connection, name)
        width = np.asarray(sequences[0].vectors).shape[1]
        stored = []
        file.touch()
        with file.open("r+b") as stream:
            stream.seek(start * 2 * width)
            for key, sequence in zip(keys, sequences, strict=True):
                vectors = np.ascontiguousarray(sequence.vectors, dtype="<f2")
                content = vectors.tobytes()
                stream.write(content)
                shapes = (sequence.sentences.astype("<i8").tobytes(), sequence.paragraphs.astype("<i8").tobytes())
                row = (key, file.name, start, len(vectors), width, _checksum(content, width, *shapes), *shapes)
                connection.execute("INSERT OR REPLACE INTO tokens VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
                place = MappedRows(file, start, len(vectors), width)
                stored.append(TokenSequence(place, sequence.sentences, sequence.paragraphs))
                start += len(vectors)
            stream.flush()
            os.fsync(stream.fileno())
        return stored

    def _end(self, connection: sqlite3.Connection, name: str) -> tuple[Path, int]:
        """The file to append to, and its first free row.

        Where the index knows of none, a new name is taken: another process may still read a file that an index named
        which is lost.
        """
        query = "SELECT file, MAX(start + rows) FROM tokens WHERE file LIKE ? GROUP BY file ORDER BY 2 DESC LIMIT 1"
        row = connection.execute(query, (f"tokens-{name}-%",)).fetchone()
        if row is not None and (self._folder / row[0]).is_file():
            return self._folder / row[0], int(row[1])
        return self._folder / f"tokens-{name}-{uuid.uuid4().hex[:8]}.f16", 0

    def _find(self, connection: sqlite3.Connection, key: str) -> TokenSequence | None:
        """What is stored, if it is whole."""
        row = connection.execute(f"SELECT {TOKEN_QUERY} WHERE key = ?", (key,)).fetchone()
        if row is None:
            return None
        name, start, rows, width, checksum, *shapes = row
        try:
            vectors = MappedRows(self._folder / name, start, rows, width)
            content = np.ascontiguousarray(vectors, dtype="<f2").tobytes()
            if _checksum(content, width, *shapes) != checksum:
                return None
            sentences, paragraphs = (np.frombuffer(shape, dtype="<i8") for shape in shapes)
        except (OSError, ValueError, TypeError, OverflowError, struct.error):
            return None
        return TokenSequence(vectors, sentences, paragraphs)


def _checksum(content: bytes, width: int, sentences: bytes, paragraphs: bytes) -> int:
    """Of all that a row of the index says of a text, and of the vectors it names."""
    about = struct.pack("<qqq", width, len(sentences), len(paragraphs)) + sentences + paragraphs
    return zlib.crc32(content, zlib.crc32(about))
