"""The two halves of a document's features as named arrays: the form in which they are kept and sent.

One half needs parser and word vectors, the other the encoder.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from cohegraph.features import OF_ENCODER, TALLIES, Structure
from cohegraph.text.encoder import Encoded

Arrays = dict[str, npt.NDArray[Any]]

_OF_STRUCTURE = len(TALLIES) - len(OF_ENCODER)


def structure_halves(made: Structure) -> list[Arrays]:
    """One half a document."""
    counts = made.counts
    patterns = np.array([counts.shape[1]])
    rows = []
    for number, (low, high) in enumerate(zip(counts.indptr[:-1], counts.indptr[1:], strict=True)):
        indices, data = counts.indices[low:high].astype(np.int32), counts.data[low:high].astype(np.int64)
        rows.append({"patterns": patterns, "indices": indices, "data": data, "tallies": made.tallies[number]})
    return rows


def structure_of(halves: Sequence[Arrays]) -> Structure:
    """The structure of one document or more."""
    ends = np.cumsum([0, *(len(half["data"]) for half in halves)])
    counts = sparse.csr_array(
        (np.concatenate([half["data"] for half in halves]), np.concatenate([half["indices"] for half in halves]), ends),
        shape=(len(halves), int(halves[0]["patterns"][0])),
    )
    return Structure(counts, np.stack([half["tallies"] for half in halves]))


def fits_structure(arrays: Arrays) -> bool:
    """Whether arrays are the structure of a document."""
    match shapes(arrays, "patterns", "indices", "data", "tallies"):
        case ((1,), (first,), (second,), (found,)):
            inside = not first or arrays["indices"].max() < arrays["patterns"][0]
            return first == second and found == _OF_STRUCTURE and bool(inside)
    return False


def vector_halves(made: Encoded) -> list[Arrays]:
    """One half a document."""
    rows = zip(made.vectors, made.tokens, made.cut, strict=True)
    return [{"vector": vector, "tokens": np.array([tokens, cut])} for vector, tokens, cut in rows]


def encoded_of(halves: Sequence[Arrays]) -> Encoded:
    """The vectors of one document or more."""
    tokens = np.stack([half["tokens"] for half in halves])
    return Encoded(np.stack([half["vector"] for half in halves]), tokens[:, 0], tokens[:, 1])


def fits_vector(arrays: Arrays) -> bool:
    """Whether arrays are the vector of a document."""
    match shapes(arrays, "vector", "tokens"):
        case ((_,), (2,)):
            return bool(np.isfinite(arrays["vector"]).all())
    return False


def shapes(arrays: Arrays, *names: str) -> tuple[tuple[int, ...], ...] | None:
    """The shapes of arrays with these names, and nothing where the names are others."""
    return tuple(arrays[name].shape for name in names) if set(arrays) == set(names) else None
