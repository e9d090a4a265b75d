"""Token vectors on disk: files of float16 rows that only grow, and an index of which text has which rows.

Rows are written and synchronised first, then the index: a process that dies in between leaves rows that no index names,
and the next one writes over them. A checksum tells damaged rows, which are computed anew.
"""

from __future__ import annotations

import os
import sqlite3
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
TOKEN_QUERY = "start, rows, width, checksum, sentences, paragraphs FROM tokens"


class TokenFiles:
    """The token vectors that a feature store keeps.

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
        file = self._folder / f"tokens-{name}.f16"
        with closing(self._connect()) as connection:
            found = {text: self._find(connection, file, key) for text, key in keys.items()}
            missing = [text for text, sequence in found.items() if sequence is None]
            if missing:
                made = make(missing)
                # One writer at a time: the end of the file is where the next one begins.
                connection.execute("BEGIN IMMEDIATE")
                with connection:
                    self._append(connection, file, [keys[text] for text in missing], made)
                found |= {text: self._find(connection, file, keys[text], trusted=True) for text in missing}
        return {text: sequence for text, sequence in found.items() if sequence is not None}

    def _append(
        self, connection: sqlite3.Connection, file: Path, keys: Sequence[str], sequences: Sequence[TokenSequence]
    ) -> None:
        query = "SELECT COALESCE(MAX(start + rows), 0) FROM tokens WHERE file = ?"
        start = int(connection.execute(query, (file.name,)).fetchone()[0])
        file.touch()
        with file.open("r+b") as stream:
            stream.seek(start * 2 * np.asarray(sequences[0].vectors).shape[1])
            for key, sequence in zip(keys, sequences, strict=True):
                vectors = np.ascontiguousarray(sequence.vectors, dtype="<f2")
                content = vectors.tobytes()
                stream.write(content)
                shapes = (sequence.sentences.astype("<i8").tobytes(), sequence.paragraphs.astype("<i8").tobytes())
                row = (key, file.name, start, *vectors.shape, zlib.crc32(content), *shapes)
                connection.execute("INSERT OR REPLACE INTO tokens VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
                start += len(vectors)
            stream.flush()
            os.fsync(stream.fileno())

    def _find(
        self, connection: sqlite3.Connection, file: Path, key: str, *, trusted: bool = False
    ) -> TokenSequence | None:
        row = connection.execute(f"SELECT {TOKEN_QUERY} WHERE key = ?", (key,)).fetchone()
        if row is None:
            return None
        start, rows, width, checksum, *shapes = row
        sentences, paragraphs = (np.frombuffer(shape, dtype="<i8") for shape in shapes)
        vectors = MappedRows(file, start, rows, width)
        try:
            whole = trusted or zlib.crc32(np.ascontiguousarray(vectors, dtype="<f2").tobytes()) == checksum
        except (OSError, ValueError):
            whole = False
        return TokenSequence(vectors, sentences, paragraphs) if whole else None
