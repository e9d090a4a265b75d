"""What a linker is: something that says which sentences of a document are related, how strongly, and by which words.

A new linker is one file with one subclass, and one line in `cohegraph.graph.links.LINKERS`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Literal, Protocol

import numpy as np
import numpy.typing as npt

from cohegraph.graph.links.links import FloatArray, IntArray, Links
from cohegraph.settings import LinkSettings

if TYPE_CHECKING:
    from cohegraph.features.sentences import ReadDocument
    from cohegraph.text.document import Document
    from cohegraph.text.encoder import Encoder
    from cohegraph.text.reader import Reader
    from cohegraph.text.word_vectors import WordVectors

BoolArray = npt.NDArray[np.bool_]
# The pretrained parts that a linker can ask for, in addition to the parser.
Part = Literal["dependencies", "vectors", "encoder", "reader", "heads"]
FIRST_VERSION = "1"
# Sentences that are compared with others at once.
_AT_ONCE = 256
_NO_WORDS = (-1, -1, -1, -1)


class Parts(Protocol):
    """Where linkers find pretrained parts, which are loaded when they are first asked for."""

    @property
    def word_vectors(self) -> WordVectors:
        """The word vectors (part ``vectors``)."""

    @property
    def encoder(self) -> Encoder:
        """The document encoder (part ``encoder``)."""

    @property
    def reader(self) -> Reader:
        """The reader (part ``reader``)."""

    def sentence_vectors(self, document: Document) -> FloatArray:
        """The encoder's vectors of sentences, of length 1, (sentences, dimensions) (part ``encoder``)."""

    def read(self, document: Document) -> ReadDocument:
        """What the reader and its heads say of a document (parts ``reader``, ``heads`` and ``encoder``)."""


class Linker(ABC):
    """Relates the sentences of a document.

    A subclass names the kind of its links and the parts it needs, and says how strongly sentences are related. Keys of
    caches and stores follow from ``parts_needed`` and ``version``.

    Args:
        settings: When sentences link. ``settings.thresholds`` may give a threshold for the linker by its name.
        parts: The pretrained parts.
    """

    name: ClassVar[str]
    # What it is, in a line, for people.
    about: ClassVar[str]
    parts_needed: ClassVar[tuple[Part, ...]] = ()
    # Change it whenever the same document gets other links, by another threshold or other code: what is cached or
    # stored is then computed again.
    version: ClassVar[str | int] = FIRST_VERSION
    # Sentences related more strongly than this are linked.
    threshold: ClassVar[float] = 0.5

    def __init__(self, settings: LinkSettings, parts: Parts) -> None:
        self.settings, self.parts = settings, parts

    @classmethod
    def kinds_of(cls, settings: LinkSettings) -> tuple[str, ...]:
        """The kinds of links that it makes with these settings."""
        return (cls.name,)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of links that it makes."""
        return self.kinds_of(self.settings)

    @abstractmethod
    def strengths(self, document: Document, sources: Sequence[int], targets: Sequence[int]) -> FloatArray:
        """How strongly sentences are related, (sources, targets), from 0 to 1; sentences are given by number."""

    def near_strengths(
        self, document: Document, sources: Sequence[int], targets: Sequence[int], near: BoolArray
    ) -> FloatArray:
        """The same where only some pairs can link, ``near`` (sources, targets): a slow linker leaves out the others."""
        return self.strengths(document, sources, targets)

    def words(self, document: Document, source: int, target: int) -> tuple[int, int, int, int]:
        """The words behind a link: start and end in the text, in the source and in the target; -1 for none."""
        return _NO_WORDS

    def kind(self, document: Document, source: int, target: int) -> int:
        """The number of a link's kind among `kinds`; of interest to linkers with several kinds."""
        return 0

    def figures(self, document: Document, kept: Sequence[int]) -> Mapping[str, int]:
        """Tallies of a document that only this linker knows."""
        return {}

    def link(
        self, document: Document, kept: Sequence[int], *, reach: int | None = None, threshold: float | None = None
    ) -> Links:
        """The links between sentences of a document; node i of the graph is sentence ``kept[i]``.

        Args:
            document: A parsed document.
            kept: The sentences that take part.
            reach: Only link sentences less than this far apart.
            threshold: Another threshold than the linker's own.
        """
        limit = self.settings.thresholds.get(self.name, self.threshold) if threshold is None else threshold
        found: list[tuple[IntArray, IntArray, FloatArray]] = []
        for first in range(0, len(kept), _AT_ONCE):
            rows = np.arange(first, min(first + _AT_ONCE, len(kept)))
            last = len(kept) if reach is None else min(len(kept), first + _AT_ONCE + reach)
            columns = np.arange(first, last)
            distance = columns - rows[:, None]
            near = (distance > 0) if reach is None else (distance > 0) & (distance < reach)
            strength = self.near_strengths(document, kept[first : first + _AT_ONCE], kept[first:last], near)
            row, column = np.nonzero(near & (strength > np.float32(limit)))
            found.append((rows[row], columns[column], strength[row, column].astype(np.float32)))
        if not found:
            return Links.none(len(kept), self.kinds)
        source, target, strength = (np.concatenate(part) for part in zip(*found, strict=True))
        ends = [(kept[u], kept[v]) for u, v in zip(source.tolist(), target.tolist(), strict=True)]
        return Links(
            len(kept),
            self.kinds,
            source,
            target,
            np.array([self.kind(document, u, v) for u, v in ends], dtype=np.int64),
            np.minimum(strength, 1),
            np.array([self.words(document, u, v) for u, v in ends], dtype=np.int64).reshape(-1, 4),
        )

    def related(self, document: Document, kept: Sequence[int], sentence: int) -> FloatArray:
        """How strongly one of the kept sentences is related to each of them, (kept,); 0 to itself."""
        found: FloatArray = self.strengths(document, [kept[sentence]], kept)[0].astype(np.float32)
        found[sentence] = 0
        return found
