"""Vectors that stay on disk: their rows are read when they are needed."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class MappedVectors:
    """The vectors of documents that lie in several files, in the documents' order.

    Documents are chosen by a slice, a mask or numbers, and those chosen are still on disk; ``np.asarray`` reads them.

    Args:
        files: The files, one after the other.
        starts: The number of the first document of every file and, at the end, the number of all documents.
        width: How long a vector is.
        opened: Maps a file's vectors into memory.
        rows: Which documents these are; all of them where it is missing.
        beside: Further numbers of these documents, (documents, further), which are in memory and follow the vector.
    """

    files: Sequence[Path]
    starts: npt.NDArray[np.int64]
    width: int
    opened: Callable[[Path], Floats]
    rows: npt.NDArray[np.int64] | None = None
    beside: Floats | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Documents, and numbers of each."""
        return len(self), self.width + (0 if self.beside is None else self.beside.shape[1])

    def __len__(self) -> int:
        return int(self.starts[-1]) if self.rows is None else len(self.rows)

    def __getitem__(self, chosen: Any) -> "MappedVectors":
        rows = np.atleast_1d((np.arange(len(self)) if self.rows is None else self.rows)[chosen])
        return replace(self, rows=rows, beside=None if self.beside is None else self.beside[chosen])

    def with_beside(self, further: Floats) -> "MappedVectors":
        """The same vectors with further numbers behind each."""
        return replace(self, beside=further)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        rows = np.arange(len(self)) if self.rows is None else self.rows
        found = np.empty(self.shape, dtype=np.float32)
        file_of = np.searchsorted(self.starts, rows, side="right") - 1
        for number in np.unique(file_of):
            here = file_of == number
            found[here, : self.width] = self.opened(self.files[number])[rows[here] - self.starts[number]]
        if self.beside is not None:
            found[:, self.width :] = self.beside
        return found if dtype is None else found.astype(dtype)
