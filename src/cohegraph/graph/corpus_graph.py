"""Equations 1 to 3: the graph that joins documents to the patterns they contain, and patterns to each other.

Only its parts are kept, never the (N+M) x (N+M) matrix: the document-pattern weights B, the pattern-pattern block P
and the degrees of A + I.

Patterns that no training document contains have no idf in Equation 1. With ``unseen="ignore"`` their idf is 0: they
have no edges and carry nothing, though they still count in the normalisation of the document that shows them.
``unseen="released"`` is the released code's log(N / 1e-6), which can outweigh all else in a document.

``weighting="tf"`` leaves out the idf of Equation 1: every pattern of the training documents has the factor 1, so that
a pattern which all documents contain connects them too. ``weighting="none"`` leaves out the edges altogether.
``strength`` multiplies the weights: in the normalised graph it says how much a document listens to its patterns rather
than to itself, whose weight is 1.

A document without any subset has no pattern. With ``too_short="isolated"`` it has no edges either, so that its text
alone decides; ``too_short="pattern"`` (the released code) gives all such documents one more pattern in common.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy import sparse

Weighting = Literal["tfidf", "tf", "none"]
Unseen = Literal["ignore", "released"]
TooShort = Literal["isolated", "pattern"]
FloatArray = npt.NDArray[np.float64]

_RELEASED_UNSEEN_FREQUENCY = 1e-6
_DOCUMENTS_AT_ONCE = 65_536


@dataclass(frozen=True)
class CorpusGraph:
    """The graph of N training documents, or of the part of it that has N of them, and M patterns.

    Shapes: ``weights`` (N, M), ``frequency`` (M,), ``pmi`` (M, M), ``document_degrees`` (N,),
    ``pattern_degrees`` (M,). ``frequency`` counts the documents that contain a pattern.
    """

    weights: sparse.csr_array
    frequency: npt.NDArray[np.int64]
    pmi: sparse.csr_array
    document_degrees: FloatArray
    pattern_degrees: FloatArray


def build_corpus_graph(
    counts: sparse.csr_array,
    *,
    weighting: Weighting = "tfidf",
    strength: float = 1.0,
    pmi: bool = True,
    unseen: Unseen = "ignore",
    too_short: TooShort = "isolated",
    rows: slice | None = None,
) -> CorpusGraph:
    """The corpus graph of the documents whose pattern counts are the rows of ``counts``.

    With ``rows``, weights and degrees of these documents alone; those of patterns still are of all.
    """
    counts = _with_too_short(counts, too_short)
    documents, patterns = counts.shape
    frequency = np.bincount(counts.indices[counts.data > 0], minlength=patterns)
    factors = pattern_factors(frequency, documents, weighting, unseen, strength)
    weights = _weights(counts if rows is None else counts[rows], factors)
    block = _pmi(counts, frequency) if pmi else sparse.csr_array((patterns, patterns))
    parts = [weights] if rows is None else (_weights(piece, factors) for piece in _pieces(counts))
    return CorpusGraph(
        weights=weights,
        frequency=frequency,
        pmi=block,
        document_degrees=1 + np.asarray(weights.sum(axis=1)),
        pattern_degrees=1 + sum(np.asarray(part.sum(axis=0)) for part in parts) + np.asarray(block.sum(axis=1)),
    )


def pattern_factors(
    frequency: npt.NDArray[np.int64],
    documents: int,
    weighting: Weighting = "tfidf",
    unseen: Unseen = "ignore",
    strength: float = 1.0,
) -> FloatArray:
    """The second factor of Equation 1, idf, times ``strength``; a pattern without any document gets ``unseen``."""
    seen = frequency > 0
    if weighting == "none":
        return np.zeros(len(frequency))
    rarest = _RELEASED_UNSEEN_FREQUENCY if unseen == "released" else documents
    idf = np.log(documents / np.where(seen, frequency, rarest))
    return np.asarray(strength * (idf if weighting == "tfidf" else np.where(seen, 1.0, idf)))


def document_weights(
    counts: sparse.csr_array, factors: FloatArray, too_short: TooShort = "isolated"
) -> sparse.csr_array:
    """Equation 1 for documents that need not be in the graph: share of the document's subsets, times the factors."""
    return _weights(_with_too_short(counts, too_short), factors)


def _weights(counts: sparse.csr_array, factors: FloatArray) -> sparse.csr_array:
    subsets = np.asarray(counts.sum(axis=1), dtype=np.float64)
    row_of = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
    data = counts.data / subsets[row_of] * factors[counts.indices]
    # A copy: removing the zeros would change the counts, whose indices these are.
    weights = sparse.csr_array((data, counts.indices, counts.indptr), shape=counts.shape, copy=True)
    weights.eliminate_zeros()
    return weights


def _with_too_short(counts: sparse.csr_array, too_short: TooShort) -> sparse.csr_array:
    if too_short == "isolated":
        return counts
    empty = (np.asarray(counts.sum(axis=1)) == 0).astype(counts.dtype)
    return sparse.hstack([counts, sparse.csr_array(empty[:, None])], format="csr")


def _pieces(counts: sparse.csr_array) -> Iterator[sparse.csr_array]:
    for start in range(0, counts.shape[0], _DOCUMENTS_AT_ONCE):
        yield counts[start : start + _DOCUMENTS_AT_ONCE]


def _pmi(counts: sparse.csr_array, frequency: npt.NDArray[np.int64]) -> sparse.csr_array:
    """Equations 2 and 3, negative values cut to 0."""
    together = sparse.csr_array((counts.shape[1],) * 2)
    # In pieces: all at once would hold a transposed copy of the counts of every document.
    for piece in _pieces(counts):
        present = (piece > 0).astype(np.float64)
        together = together + present.T @ present
    together = together.tocoo()
    row, column = together.coords
    value = np.log(together.data * counts.shape[0] / (frequency[row].astype(np.float64) * frequency[column]))
    kept = (row != column) & (value > 0)
    return sparse.coo_array((value[kept], (row[kept], column[kept])), shape=together.shape).tocsr()
