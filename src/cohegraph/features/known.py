"""What stages have made of texts and shards hold already, found by the hashes of the texts."""

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from cohegraph.errors import DamagedFileError
from cohegraph.features.shards import OPEN_AT_ONCE, read_shard
from cohegraph.features.stages import Arrays

Places = npt.NDArray[np.int64]


class Known:
    """Which stages of which texts are in shards already: hashes of texts, and where each is.

    Args:
        files: Shards that are whole.
        named: The names of those that the corpus consists of so far.
        digests: For each stage by its name, the hash of all that shapes it now.
    """

    def __init__(self, files: Sequence[Path], named: Collection[str], digests: Mapping[str, str]) -> None:
        self._files, self._opened = files, lru_cache(maxsize=OPEN_AT_ONCE)(read_shard)
        found: dict[str, list[Places]] = {name: [] for name in digests}
        corpus: list[Places] = []
        for number, file in enumerate(files):
            try:
                shard = read_shard(file)
            except DamagedFileError:  # of another version; it will be removed
                continue
            places = np.vstack([_pairs(shard.keys), np.full(len(shard), number), np.arange(len(shard))])
            if file.name in named:
                corpus.append(places)
            for name, digest in digests.items():
                if shard.stages.get(name) == digest:
                    found[name].append(places)
        self.places = {name: _sorted_places(some) for name, some in found.items()}
        self.corpus = _sorted_places(corpus)

    def arrays(self, stage: str, key: bytes) -> Arrays | None:
        """What a stage made of a text."""
        places = self.places[stage]
        column = int(find(places, [key])[0])
        if column < 0:
            return None
        file, row = places[2:, column].tolist()
        return self._opened(self._files[file]).arrays(stage, row)


def _pairs(keys: Sequence[bytes]) -> npt.NDArray[np.int64]:
    """Hashes as two numbers each, (2, hashes)."""
    return np.frombuffer(b"".join(keys), dtype=np.int64).reshape(-1, 2).T


def _sorted_places(found: list[Places]) -> Places:
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
