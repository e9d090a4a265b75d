"""Algorithm 2: how often each pattern occurs in a sentence graph, for whole batches of documents at once.

A sentence's links to the w-1 sentences after it are a row of w-1 bits, so a window of w sentences is a run of rows. The
masks of all k-subsets of a window are one product of that run with a fixed matrix: a batch of documents costs one
matrix product and one histogram.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from math import comb
from typing import Literal, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse

from cohegraph.graph.catalogue import Catalogue, PatternKind, pairs
from cohegraph.graph.catalogue import catalogue as get_catalogue
from cohegraph.graph.links.links import Links

Subsets = Literal["windows", "all"]
Ints = npt.NDArray[np.int64]

# What so many subsets need stays in a processor's cache; keys below 2**24 are exact in float32.
_MOST_SUBSETS = 2**16
_MOST_KEYS = 2**22


@dataclass(frozen=True)
class GraphBatch:
    """The links of many sentence graphs, one graph after the other: ``links`` counts them for each graph."""

    sizes: Ints
    links: Ints
    source: Ints
    target: Ints

    @classmethod
    def of(cls, graphs: Sequence[Links]) -> Self:
        """A batch of sentence graphs; two sentences that are linked in several ways are linked once."""
        none = np.zeros(0, dtype=np.int64)
        pairs = [graph.pairs() for graph in graphs]
        return cls(
            sizes=np.array([graph.size for graph in graphs], dtype=np.int64),
            links=np.array([len(source) for source, _ in pairs], dtype=np.int64),
            source=np.concatenate([none, *(source for source, _ in pairs)]),
            target=np.concatenate([none, *(target for _, target in pairs)]),
        )


def count_patterns(
    batch: GraphBatch, catalogue: Catalogue, window: int, subsets: Subsets = "windows"
) -> sparse.csr_array:
    """Pattern counts, one row a graph and one column a pattern.

    ``subsets="windows"`` is Algorithm 2 to the letter: windows of ``window`` sentences whose start advances by
    ``window - k + 1``, and every k-subset of each. It skips subsets that lie across two windows.
    ``subsets="all"`` takes every k-subset whose first and last sentence are less than ``window`` apart, once.
    Graphs with fewer than k sentences have no subset and an empty row.
    """
    k, step = catalogue.k, window - catalogue.k + 1 if subsets == "windows" else 1
    windows = np.maximum(0, -(-(batch.sizes - k + 1) // step))
    last_link = np.concatenate([[0], np.cumsum(batch.links)])
    places, counts = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
    for low, high in _chunks(windows, k, len(_subset_positions(k, window, subsets))):
        links = slice(last_link[low], last_link[high])
        part = GraphBatch(batch.sizes[low:high], batch.links[low:high], batch.source[links], batch.target[links])
        found = _by_pattern(part, windows[low:high], catalogue, window, step, subsets).ravel()
        place = np.flatnonzero(found != 0)
        places.append(place + low * len(catalogue))
        counts.append(found[place])
    place = np.concatenate(places)
    shape = (len(batch.sizes), len(catalogue))
    bounds = np.searchsorted(place, np.arange(shape[0] + 1) * shape[1])
    return sparse.csr_array((np.concatenate(counts), place % shape[1], bounds), shape=shape)


def _by_pattern(
    batch: GraphBatch, windows: Ints, catalogue: Catalogue, window: int, step: int, subsets: Subsets
) -> Ints:
    """Counts of a batch small enough for a dense histogram, (graphs, patterns)."""
    k, graphs = catalogue.k, len(batch.sizes)
    band, run = _band(batch, window), (window - 1) * window
    # A view, not a copy: row i holds the ``run`` numbers from place i on.
    runs = np.ndarray((len(band) - run + 1, run), band.dtype, band, strides=2 * band.strides)
    starts, lengths = _windows(batch.sizes, windows, window, step)
    matrix = _mask_matrix(k, window, subsets) * np.float32(graphs)
    matrix[0] = 1
    keys = [np.zeros(0, dtype=np.int64)]
    for length in range(k, window + 1):
        chosen = starts[lengths == length]
        if len(chosen):
            number = comb(length, k) if subsets == "windows" else comb(length - 1, k - 1)
            # Mask times number of graphs, plus graph: whole numbers, exact in float32.
            keys.append((runs[chosen * window] @ matrix[:, :number]).ravel().astype(np.int64))
    masks = len(catalogue.table)
    by_mask = np.bincount(np.concatenate(keys), minlength=masks * graphs).reshape(masks, graphs)
    return np.asarray((_pattern_of_mask(k, catalogue.kind) @ by_mask).T)


def _band(batch: GraphBatch, window: int) -> npt.NDArray[np.float32]:
    """A row of w numbers for each sentence of all graphs, laid end to end.

    The number of its graph, and then, for the 1st to (w-1)th sentence after it, whether it links to it.
    """
    sentences = int(batch.sizes.sum())
    band = np.zeros((sentences + window, window), dtype=np.float32)
    band[:sentences, 0] = np.repeat(np.arange(len(batch.sizes)), batch.sizes)
    sentence = batch.source + np.repeat(np.cumsum(batch.sizes) - batch.sizes, batch.links)
    distance = batch.target - batch.source
    flat = band.ravel()
    # Links out of reach go to the last place, which no window reads.
    flat[np.where(distance < window, sentence * window + distance, -1)] = 1
    return flat


def _windows(sizes: Ints, windows: Ints, window: int, step: int) -> tuple[Ints, Ints]:
    """The first sentence, counted over all graphs, and the length of every window."""
    nth = np.arange(windows.sum()) - np.repeat(np.cumsum(windows) - windows, windows)
    starts = np.repeat(np.cumsum(sizes) - sizes, windows) + nth * step
    return starts, np.minimum(window, np.repeat(sizes, windows) - nth * step)


@cache
def _subset_positions(k: int, window: int, subsets: Subsets) -> Ints:
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
    """From the first w-1 rows of a window in the band to the mask of each subset; column 0 of the band has no part."""
    positions = _subset_positions(k, window, subsets)
    matrix = np.zeros((window - 1, window, len(positions)), dtype=np.float32)
    for bit, (a, b) in enumerate(pairs(k)):
        first, second = positions[:, a], positions[:, b]
        matrix[first, second - first, np.arange(len(positions))] = 2**bit
    return matrix.reshape(-1, len(positions))


@cache
def _pattern_of_mask(k: int, kind: PatternKind) -> sparse.csr_array:
    """The catalogue's table as a matrix of ones, (patterns, masks)."""
    table = get_catalogue(k, kind).table
    masks = np.arange(len(table))
    return sparse.csr_array((np.ones(len(table), dtype=np.int64), (table, masks)))


def _chunks(windows: Ints, k: int, subsets: int) -> Iterator[tuple[int, int]]:
    """Runs of graphs whose subsets and whose histogram are of bounded size; one long document may be a run."""
    most_windows, most_graphs = max(1, _MOST_SUBSETS // subsets), max(1, _MOST_KEYS >> len(pairs(k)))
    before = np.concatenate([[0], np.cumsum(windows)])
    low = 0
    while low < len(windows):
        fitting = int(np.searchsorted(before, before[low] + most_windows, side="right")) - 1
        high = min(max(fitting, low + 1), low + most_graphs, len(windows))
        yield low, high
        low = high
