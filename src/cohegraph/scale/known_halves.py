"""Halves of features that are in shards already, found by the hashes of their texts."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from cohegraph.errors import DamagedFileError
from cohegraph.features import OF_ENCODER
from cohegraph.scale.halves import Arrays
from cohegraph.scale.shards import Shard, opened_shard, read_shard

Places = npt.NDArray[np.int64]


class Known:
    """Which halves of which texts are in shards already: hashes of texts, and where each is.

    Args:
        files: Shards that are whole.
        named: The names of those that the corpus consists of so far.
        structure: The hash of all that shapes structures now.
        vector: Likewise vectors.
    """

    def __init__(self, files: Sequence[Path], named: Collection[str], structure: str, vector: str) -> None:
        self._files = files
        structures, vectors, corpus = [], [], []
        for number, file in enumerate(files):
            try:
                shard = read_shard(file)
            except DamagedFileError:  # of another version; it will be removed
                continue
            rows = np.arange(len(shard))
            found = np.vstack([_pairs(shard.keys), np.full(len(rows), number), rows])
            if file.name in named:
                corpus.append(found)
            if shard.structure == structure:
                structures.append(found)
            if shard.vector == vector:
                vectors.append(found)
        self.structures, self.vectors, self.corpus = map(_sorted_places, (structures, vectors, corpus))

    def structure(self, key: bytes) -> Arrays | None:
        """The structure of a text."""
        found = self._found(self.structures, key)
        if found is None:
            return None
        shard, row = found
        low, high = shard.counts.indptr[row : row + 2]
        return {
            "patterns": np.array([shard.counts.shape[1]]),
            "indices": shard.counts.indices[low:high],
            "data": shard.counts.data[low:high],
            "tallies": shard.tallies[row, : -len(OF_ENCODER)],
        }

    def vector(self, key: bytes) -> Arrays | None:
        """The vector of a text."""
        found = self._found(self.vectors, key)
        if found is None:
            return None
        shard, row = found
        return {"vector": shard.vectors[row], "tokens": shard.tallies[row, -len(OF_ENCODER) :]}

    def _found(self, places: Places, key: bytes) -> tuple[Shard, int] | None:
        column = int(find(places, [key])[0])
        if column < 0:
            return None
        file, row = places[2:, column].tolist()
        return opened_shard(self._files[file]), row


def _pairs(keys: Sequence[bytes] | npt.NDArray[np.void]) -> npt.NDArray[np.int64]:
    """Hashes as two numbers each, (2, hashes)."""
    joined = keys.tobytes() if isinstance(keys, np.ndarray) else b"".join(keys)
    return np.frombuffer(joined, dtype=np.int64).reshape(-1, 2).T


def _sorted_places(found: list[npt.NDArray[np.int64]]) -> Places:
    """Hashes as two numbers, files and rows, (4, texts), by the first number."""
    places = np.concatenate([np.zeros((4, 0), dtype=np.int64), *found], axis=1)
    return places[:, np.argsort(places[0], kind="stable")]


def find(places: Places, keys: Sequence[bytes]) -> npt.NDArray[np.int64]:
    """The column of every hash, or -1.

    One of two texts that share half of their hash may not be found; then it is computed again, which is all.
    """
    if not places.shape[1]:
        return np.full(len(keys), -1)
    first, second = _pairs(keys)
    column = np.minimum(np.searchsorted(places[0], first), places.shape[1] - 1)
    return np.where((places[0, column] == first) & (places[1, column] == second), column, -1)
