"""Token vectors on disk: files of float16 rows that only grow, and an index of which text has which rows.

Rows are written and synchronised first, then the index: a process that dies in between leaves rows that no index names,
and the next one writes over them. A checksum reveals damaged rows, which are computed again. A file never takes the
name of another: what a reader has mapped stays what it was.
"""

import os
import sqlite3
import struct
import uuid
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cohegraph.text.token_sequence import MappedRows, TokenSequence


@dataclass(frozen=True)
class TokenFiles:
    """The token vectors that a feature cache keeps in files of a folder; their index is a table of its database."""

    folder: Path
    table = "tokens"
    columns = (
        "key TEXT PRIMARY KEY, file TEXT, start INTEGER, rows INTEGER, width INTEGER, checksum INTEGER, "
        "sentences BLOB, paragraphs BLOB"
    )

    def find(self, connection: sqlite3.Connection, key: str) -> TokenSequence | None:
        """What is stored under a key, if it is whole."""
        row = connection.execute("SELECT * FROM tokens WHERE key = ?", (key,)).fetchone()
        if row is None:
            return None
        _, name, start, rows, width, checksum, *shapes = row
        try:
            vectors = MappedRows(self.folder / name, start, rows, width)
            content = np.ascontiguousarray(vectors, dtype="<f2").tobytes()
            if _checksum(content, width, *shapes) != checksum:
                return None
            sentences, paragraphs = (np.frombuffer(shape, dtype="<i8") for shape in shapes)
        except (OSError, ValueError, TypeError, OverflowError, struct.error):
            return None
        return TokenSequence(vectors, sentences, paragraphs)

    def write(
        self, connection: sqlite3.Connection, name: str, keys: Sequence[str], sequences: Sequence[TokenSequence]
    ) -> list[TokenSequence]:
        """Append sequences to the file of a name, and give them as they are stored."""
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

        Where the index knows of none, the file gets a new name: another process may still read one whose index is lost.
        """
        query = "SELECT file, MAX(start + rows) FROM tokens WHERE file LIKE ? GROUP BY file ORDER BY 2 DESC LIMIT 1"
        row = connection.execute(query, (f"tokens-{name}-%",)).fetchone()
        if row is not None and (self.folder / row[0]).is_file():
            return self.folder / row[0], int(row[1])
        return self.folder / f"tokens-{name}-{uuid.uuid4().hex[:8]}.f16", 0


def _checksum(content: bytes, width: int, sentences: bytes, paragraphs: bytes) -> int:
    """Of all that a row of the index says of a text, and of the vectors it names."""
    about = struct.pack("<qqq", width, len(sentences), len(paragraphs)) + sentences + paragraphs
    return zlib.crc32(content, zlib.crc32(about))
