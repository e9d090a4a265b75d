"""The patterns that a subgraph of k sentences can have.

Links only run forward, so k sentences in text order have k(k-1)/2 possible links and a subgraph is a bit mask of
that many bits: 6 for k=4, 10 for k=5, 15 for k=6. A table from mask to pattern replaces graph canonisation.

Two readings of "the same pattern":

- ``isomorphic`` (the paper): unlabelled digraphs. 6, 31, 302 and 5,984 patterns for k = 3 to 6.
- ``ordered`` (the released code): the order of the sentences counts. Every mask is its own pattern.
"""

from dataclasses import dataclass, field, replace
from functools import cache
from itertools import combinations
from typing import Literal

import numpy as np
import numpy.typing as npt

from cohegraph.errors import CohegraphError

PatternKind = Literal["isomorphic", "ordered"]
SIZES = (3, 4, 5, 6)


@dataclass(frozen=True)
class Pattern:
    """One class of subgraphs.

    ``edges`` are pairs of positions in text order, counted from 1, of one representative. ``links`` is the kind of
    links that it is made of, where kinds are counted by themselves.
    """

    name: str
    k: int
    edges: tuple[tuple[int, int], ...]
    connected: bool
    links: str = ""


@dataclass(frozen=True)
class Catalogue:
    """All patterns of size k. ``table[mask]`` is the index in ``patterns`` of the subgraph with that mask."""

    k: int
    kind: PatternKind
    patterns: tuple[Pattern, ...] = field(repr=False)
    table: npt.NDArray[np.int64] = field(repr=False)

    def __len__(self) -> int:
        return len(self.patterns)


def pairs(k: int) -> list[tuple[int, int]]:
    """The possible links among k sentences, counted from 0; the place in this list is the bit in a mask."""
    return list(combinations(range(k), 2))


@cache
def catalogue(k: int, kind: PatternKind = "isomorphic") -> Catalogue:
    """The catalogue of patterns with k sentences, the same on every machine and in every version."""
    if k not in SIZES:
        raise CohegraphError(f"Subgraphs have 3 to 6 sentences, not {k}: choose k from 3, 4, 5 or 6.", code="bad-size")
    representative = _smallest_equal_mask(k) if kind == "isomorphic" else np.arange(2 ** len(pairs(k)))
    masks, inverse = np.unique(representative, return_inverse=True)
    connected = _weakly_connected(masks, k)
    prefix = "" if kind == "isomorphic" else "o"
    patterns = []
    for mask, is_connected in zip(masks.tolist(), connected.tolist(), strict=True):
        edges = tuple((a + 1, b + 1) for bit, (a, b) in enumerate(pairs(k)) if mask >> bit & 1)
        name = f"{prefix}{k}:" + (".".join(f"{a}{b}" for a, b in edges) or "-")
        patterns.append(Pattern(name, k, edges, is_connected))
    table: npt.NDArray[np.int64] = inverse.astype(np.int64)
    table.setflags(write=False)
    return Catalogue(k, kind, tuple(patterns), table)


def pattern_named(name: str) -> Pattern:
    """The pattern that has this name in a catalogue; its kind of links may stand before it, as in nouns/4:12.13."""
    links, _, own = name.rpartition("/")
    kind: PatternKind = "ordered" if own.startswith("o") else "isomorphic"
    k = own.removeprefix("o").partition(":")[0]
    if k in map(str, SIZES):
        for pattern in catalogue(int(k), kind).patterns:
            if pattern.name == own:
                return replace(pattern, name=name, links=links)
    raise CohegraphError(f"There is no pattern '{name}': a name is like 4:12.13.23, or o4:12.13.23.", code="no-pattern")


@cache
def pattern_columns(k: int, kind: PatternKind, blocks: tuple[str, ...] = ()) -> tuple[Pattern, ...]:
    """The patterns of a catalogue and, for several kinds of links, as many times one after the other."""
    patterns = catalogue(k, kind).patterns
    if len(blocks) < 2:
        return patterns
    return tuple(
        replace(pattern, name=f"{block}/{pattern.name}", links=block) for block in blocks for pattern in patterns
    )


def _smallest_equal_mask(k: int) -> npt.NDArray[np.int64]:
    """For every mask the smallest mask of an isomorphic graph.

    Two forward graphs are isomorphic exactly if one becomes the other by reordering its nodes such that links still
    run forward. Any two such orders of one graph (linear extensions of its partial order) are joined by swaps of two
    neighbours without a link between them, so the classes are the connected components under k-1 kinds of swap.
    """
    masks = np.arange(2 ** len(pairs(k)))
    bit_of = {pair: bit for bit, pair in enumerate(pairs(k))}
    swapped = []
    for i in range(k - 1):
        image = np.zeros_like(masks)
        exchange = {i: i + 1, i + 1: i}
        for (a, b), bit in bit_of.items():
            target = tuple(sorted((exchange.get(a, a), exchange.get(b, b))))
            image |= (masks >> bit & 1) << bit_of[target]  # type: ignore[index]
        linked = masks >> bit_of[i, i + 1] & 1 == 1
        swapped.append(np.where(linked, masks, image))
    smallest = masks
    while True:
        lower = np.minimum.reduce([smallest, *(smallest[image] for image in swapped)])
        lower = lower[lower]
        if np.array_equal(lower, smallest):
            return smallest
        smallest = lower


def _weakly_connected(masks: npt.NDArray[np.int64], k: int) -> npt.NDArray[np.bool_]:
    reach = np.broadcast_to(np.eye(k, dtype=np.int64), (len(masks), k, k)).copy()
    for bit, (a, b) in enumerate(pairs(k)):
        reach[:, a, b] = reach[:, b, a] = masks >> bit & 1
    for _ in range(k.bit_length()):
        reach = np.minimum(reach @ reach, 1)
    return np.asarray(reach.all(axis=(1, 2)))
