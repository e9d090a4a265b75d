"""The training documents that a model keeps beside it, to show those that connect their sentences as a new one does."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse

from cohegraph.explain.explanation import NeighbourView
from cohegraph.graph.corpus_graph import document_weights, pattern_factors

_ARRAYS = ("neighbour_rows", "neighbour_patterns", "neighbour_counts", "neighbour_classes")


@dataclass(frozen=True)
class Neighbours:
    """Training documents: pattern counts (N, patterns), the numbers of their levels (N,), ids and, if wanted, texts."""

    counts: sparse.csr_array
    levels: npt.NDArray[np.int64]
    ids: tuple[str, ...]
    texts: tuple[str, ...] | None = None

    @cached_property
    def _factors(self) -> npt.NDArray[np.float64]:
        frequency = np.bincount(self.counts.indices[self.counts.data > 0], minlength=self.counts.shape[1])
        return pattern_factors(frequency, self.counts.shape[0])

    @cached_property
    def _directions(self) -> sparse.csr_array:
        return _unit(document_weights(self.counts, self._factors))

    def nearest(self, counts: sparse.csr_array, levels: Sequence[Any], most: int) -> list[NeighbourView]:
        """The documents most similar to one with these counts, (1, patterns); none that shares no pattern with it.

        Similarity is the cosine of pattern weights (Equation 1).
        """
        weights = _unit(document_weights(counts, self._factors))
        similarity = np.asarray((self._directions @ weights.T).todense()).ravel()
        order = np.argsort(-similarity, kind="stable")[:most].tolist()
        return [
            NeighbourView(
                id=self.ids[row],
                level=levels[int(self.levels[row])],
                similarity=min(float(similarity[row]), 1.0),
                text=None if self.texts is None else self.texts[row],
            )
            for row in order
            if similarity[row] > 0
        ]

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """What a model saves of it as arrays."""
        counts = self.counts
        values = (counts.indptr.astype(np.int64), counts.indices.astype(np.int32), counts.data, self.levels)
        return dict(zip(_ARRAYS, values, strict=True))

    def in_words(self) -> str:
        """What a model's card says of it."""
        with_texts = ", and their texts: whoever has this folder can read them" if self.texts is not None else ""
        return (
            f"This folder holds ids, levels and pattern counts of {len(self.ids)} documents{with_texts}, to show those "
            "most similar to a new one."
        )

    def lines(self) -> list[dict[str, str]]:
        """What a model saves of it as text, one line per document."""
        texts = [{}] * len(self.ids) if self.texts is None else [{"text": text} for text in self.texts]
        return [{"id": name, **text} for name, text in zip(self.ids, texts, strict=True)]

    @classmethod
    def taken_from(
        cls, arrays: dict[str, npt.NDArray[Any]], lines: list[dict[str, Any]] | None, patterns: int, levels: int
    ) -> Self | None:
        """Take what `arrays` gave out of others; a ValueError where it is not whole."""
        found = {name: arrays.pop(name) for name in _ARRAYS if name in arrays}
        if not found and lines is None:
            return None
        if len(found) < len(_ARRAYS) or lines is None:
            raise ValueError("the training documents that it keeps are not whole")
        rows, columns, data, codes = (found[name] for name in _ARRAYS)
        if any(array.dtype.kind != "i" or array.ndim != 1 for array in (rows, columns, data, codes)):
            raise ValueError("the training documents that it keeps have no counts")
        counts = sparse.csr_array((data, columns, rows), shape=(len(lines), patterns))
        counts.check_format(full_check=True)
        if len(codes) != len(lines) or min(codes.min(initial=0), data.min(initial=0)) < 0 or codes.max() >= levels:
            raise ValueError("the training documents that it keeps have other levels than the model")
        ids = tuple(line["id"] for line in lines)
        texts = tuple(line["text"] for line in lines) if lines and "text" in lines[0] else None
        if not all(isinstance(value, str) for value in (*ids, *(texts or ()))):
            raise ValueError("the training documents that it keeps have no ids")
        return cls(counts, codes, ids, texts)


def _unit(weights: sparse.csr_array) -> sparse.csr_array:
    """Rows of length 1; an empty row stays empty."""
    length = np.sqrt(np.asarray((weights * weights).sum(axis=1), dtype=np.float64))
    rows = np.repeat(np.where(length > 0, length, 1.0), np.diff(weights.indptr))
    return sparse.csr_array((weights.data / rows, weights.indices, weights.indptr), shape=weights.shape)
