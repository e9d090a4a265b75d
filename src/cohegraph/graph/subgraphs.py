"""Algorithm 2: how often each pattern occurs in a sentence graph, for whole batches of documents at once.

A window of w sentences has w(w-1)/2 possible links. The masks of all its k-subsets are one product of those bits
with a fixed matrix, so a batch of documents costs one matrix product and one histogram.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import combinations
from math import comb
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy import sparse

from cohegraph.graph.catalogue import Catalogue, pairs
from cohegraph.graph.sentence_graph import SentenceGraph

Subsets = Literal["windows", "all"]

# Keys of a histogram stay exact in float32 below 2**24; a chunk of this many subsets stays in the cache.
_MOST_KEYS = 2**22
_MOST_SUBSETS = 2**18


def count_patterns(
    graphs: Sequence[SentenceGraph], catalogue: Catalogue, window: int, subsets: Subsets = "windows"
) -> sparse.csr_array:
    """Pattern counts, one row a graph and one column a pattern.

    ``subsets="windows"`` is Algorithm 2 to the letter: windows of ``window`` sentences whose start advances by
    ``window - k + 1``, and every k-subset of each. It skips subsets that lie across two windows.
    ``subsets="all"`` takes every k-subset whose first and last sentence are less than ``window`` apart, once.
    Graphs with fewer than k sentences have no subset and an empty row.
    """
    k = catalogue.k
    sizes = np.array([graph.size for graph in graphs], dtype=np.int64)
    step = window - k + 1 if subsets == "windows" else 1
    band = _band(graphs, sizes, window)
    documents, starts, lengths = _windows(sizes, k, window, step)
    codes = 2 ** len(pairs(k))
    parts: list[sparse.coo_array] = []
    for low, high in _chunks(documents, codes, len(_subset_positions(k, window, subsets))):
        first = int(documents[low])
        rows = int(documents[high - 1]) - first + 1
        histogram = np.zeros(rows * codes, dtype=np.int64)
        for length in np.unique(lengths[low:high]):
            chosen = low + np.flatnonzero(lengths[low:high] == length)
            keys = _keys(band, documents[chosen] - first, starts[chosen], int(length), k, window, subsets)
            histogram += np.bincount(keys, minlength=len(histogram))
        used = np.flatnonzero(histogram)
        row, mask = np.divmod(used, codes)
        shape = (len(graphs), len(catalogue))
        parts.append(sparse.coo_array((histogram[used], (row + first, catalogue.table[mask])), shape=shape))
    total = sparse.csr_array((len(graphs), len(catalogue)), dtype=np.int64)
    if parts:
        data, row, column = (np.concatenate([getattr(part, name) for part in parts]) for name in ("data", "row", "col"))
        total = sparse.coo_array((data, (row, column)), shape=total.shape).tocsr()
        total.sum_duplicates()
    return total


@cache
def _subset_positions(k: int, window: int, subsets: Subsets) -> npt.NDArray[np.int64]:
    """The k-subsets of a window, those with the smallest last sentence first.

    So the subsets of a shorter window are the beginning of this list.
    """
    if subsets == "windows":
        chosen = list(combinations(range(window), k))
    else:
        chosen = [(0, *rest) for rest in combinations(range(1, window), k - 1)]
    return np.array(sorted(chosen, key=lambda subset: subset[::-1]), dtype=np.int64)


@cache
def _mask_matrix(k: int, window: int, subsets: Subsets) -> npt.NDArray[np.float32]:
    """From the bits of a window's links, and the document's row, to the histogram key of each subset."""
    positions = _subset_positions(k, window, subsets)
    place = {pair: row for row, pair in enumerate(pairs(window))}
    matrix = np.zeros((len(place) + 1, len(positions)), dtype=np.float32)
    for column, subset in enumerate(positions.tolist()):
        for bit, (a, b) in enumerate(pairs(k)):
            matrix[place[subset[a], subset[b]], column] = 2**bit
    matrix[-1] = 2 ** len(pairs(k))
    return matrix


def _band(graphs: Sequence[SentenceGraph], sizes: npt.NDArray[np.int64], window: int) -> npt.NDArray[np.float32]:
    """``band[i, d]`` is 1 where sentence i of all sentences in a row links to sentence i + d + 1."""
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    band = np.zeros((int(offsets[-1]) + window, window - 1), dtype=np.float32)
    source = [graph.source + offset for graph, offset in zip(graphs, offsets[:-1], strict=True)]
    distance = [graph.target - graph.source for graph in graphs]
    if source:
        rows, columns = np.concatenate(source), np.concatenate(distance) - 1
        near = columns < window - 1
        band[rows[near], columns[near]] = 1
    return band


def _windows(
    sizes: npt.NDArray[np.int64], k: int, window: int, step: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Document, first sentence (counted over all documents) and length of every window."""
    per_document = np.maximum(0, -(-(sizes - k + 1) // step))
    documents = np.repeat(np.arange(len(sizes)), per_document)
    nth = np.arange(len(documents)) - np.repeat(np.cumsum(per_document) - per_document, per_document)
    local = nth * step
    lengths = np.minimum(window, sizes[documents] - local)
    return documents, local + (np.cumsum(sizes) - sizes)[documents], lengths


def _chunks(documents: npt.NDArray[np.int64], codes: int, subsets: int) -> list[tuple[int, int]]:
    """Runs of windows whose subsets and whose histogram are of bounded size."""
    most_windows, most_documents = max(1, _MOST_SUBSETS // subsets), max(1, _MOST_KEYS // codes)
    bounds, low = [], 0
    while low < len(documents):
        last_document = documents[low] + most_documents - 1
        high = min(low + most_windows, int(np.searchsorted(documents, last_document, side="right")))
        bounds.append((low, high))
        low = high
    return bounds


def _keys(
    band: npt.NDArray[np.float32],
    rows: npt.NDArray[np.int64],
    starts: npt.NDArray[np.int64],
    length: int,
    k: int,
    window: int,
    subsets: Subsets,
) -> npt.NDArray[np.int64]:
    """Row times number of masks, plus mask: the key of every subset of windows that all have the same length."""
    first, second = np.array(pairs(window)).T
    bits = np.empty((len(starts), len(first) + 1), dtype=np.float32)
    bits[:, :-1] = band.ravel()[starts[:, None] * (window - 1) + (first * (window - 1) + second - first - 1)]
    bits[:, -1] = rows
    number = comb(length, k) if subsets == "windows" else comb(length - 1, k - 1)
    keys = bits @ _mask_matrix(k, window, subsets)[:, :number]
    return keys.ravel().astype(np.int64)
