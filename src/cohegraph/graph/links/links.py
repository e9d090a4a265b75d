"""Links between the sentences of a document: the sentence graph, whatever made them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Links:
    """Links from sentences to later ones, ordered by source and target.

    Args:
        size: How many sentences the graph has.
        kinds: The names of all kinds that there can be.
        source: The earlier sentence of every link, (links,).
        target: The later one, (links,).
        kind: The number of its kind, (links,).
        strength: From 0 to 1, (links,).
        evidence: The words behind it, (links, 4): their start and end in the text, in the source and then in the target
            sentence; -1 where no words stand for it.
    """

    size: int
    kinds: tuple[str, ...]
    source: IntArray
    target: IntArray
    kind: IntArray
    strength: FloatArray
    evidence: IntArray

    def __len__(self) -> int:
        return len(self.source)

    @classmethod
    def none(cls, size: int, kinds: tuple[str, ...]) -> Links:
        """No links."""
        empty = np.zeros(0, dtype=np.int64)
        return cls(size, kinds, empty, empty, empty, empty.astype(np.float32), np.zeros((0, 4), dtype=np.int64))

    @classmethod
    def together(cls, size: int, parts: Sequence[Links]) -> Links:
        """The links of several linkers as one graph."""
        if len(parts) == 1:
            return parts[0]
        kinds = tuple(kind for part in parts for kind in part.kinds)
        first = np.cumsum([0, *(len(part.kinds) for part in parts)])
        empty = cls.none(size, kinds)
        kind = np.concatenate([empty.kind, *(part.kind + start for part, start in zip(parts, first, strict=False))])
        source, target, strength, evidence = (
            np.concatenate([getattr(one, name) for one in (empty, *parts)])
            for name in ("source", "target", "strength", "evidence")
        )
        order = np.lexsort((kind, target, source))
        return cls(size, kinds, source[order], target[order], kind[order], strength[order], evidence[order])

    def of_kind(self, kind: str) -> Links:
        """The links of one kind alone."""
        chosen = self.kind == self.kinds.index(kind)
        return Links(
            self.size,
            (kind,),
            self.source[chosen],
            self.target[chosen],
            np.zeros(int(chosen.sum()), dtype=np.int64),
            self.strength[chosen],
            self.evidence[chosen],
        )

    def pairs(self) -> tuple[IntArray, IntArray]:
        """Source and target of every two linked sentences, each once, however many links they have."""
        if len(self.kinds) == 1 or not len(self):
            return self.source, self.target
        first = np.ones(len(self), dtype=bool)
        first[1:] = (np.diff(self.source) != 0) | (np.diff(self.target) != 0)
        return self.source[first], self.target[first]

    def adjacency(self) -> npt.NDArray[np.bool_]:
        """The matrix G of Algorithm 1."""
        matrix = np.zeros((self.size, self.size), dtype=bool)
        matrix[self.source, self.target] = True
        return matrix
