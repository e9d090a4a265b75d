"""Links that a reader makes: what a sentence takes up from another, and which sentences are of one text.

Default thresholds belong to the packaged reader and heads: they give graphs about as dense as those of nouns
(``benchmarks/link_density.py``).
"""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from cohegraph.errors import CohegraphError
from cohegraph.graph.links.linker import BoolArray, Linker, Part
from cohegraph.graph.links.links import FloatArray
from cohegraph.text.document import Document
from cohegraph.text.reader import exact_gains


class ContextLinker(Linker):
    """Links a sentence to a later one that is easier to foresee after it, by the gain that the reader's heads predict.

    The gain is the mean loss per token of the later sentence alone, minus the same after the earlier one, in nats. The
    heads have learnt from gains as `ExactContextLinker` computes them. The strength is the share by which the
    perplexity falls, which is 1 - exp(-gain).
    """

    name = "context"
    about = "a sentence is easier to foresee after another one: the heads of the reader predict a lower loss"
    parts_needed: ClassVar[tuple[Part, ...]] = ("reader", "heads", "encoder")
    version = "2"
    threshold = 0.6

    def strengths(self, document: Document, sources: Sequence[int], targets: Sequence[int]) -> FloatArray:
        """The share by which the perplexity of the later of two sentences falls; 0 if it does not."""
        gains = self.parts.read(document).judgement.gains
        if gains is None:
            raise CohegraphError(
                "These heads have not learnt gains: train heads with 'cohegraph train-reader' and --gains above 0, or "
                "use the linker context-exact, which needs none.",
                code="no-gains",
            )
        return _fall(gains, sources, targets)


class ExactContextLinker(Linker):
    """Links as `ContextLinker` does, by exact gains: every pair of sentences is read, which is slow."""

    name = "context-exact"
    about = "a sentence is easier to foresee after another one: the reader's loss is lower, every pair is read (slow)"
    parts_needed: ClassVar[tuple[Part, ...]] = ("reader",)
    threshold = 0.55

    def strengths(self, document: Document, sources: Sequence[int], targets: Sequence[int]) -> FloatArray:
        """The share by which the perplexity of the later of two sentences falls; 0 if it does not."""
        return self.near_strengths(document, sources, targets, np.not_equal.outer(sources, targets))

    def near_strengths(
        self, document: Document, sources: Sequence[int], targets: Sequence[int], near: BoolArray
    ) -> FloatArray:
        """The same; only pairs that can link are read."""
        found = ((sources[row], targets[column]) for row, column in np.argwhere(near))
        pairs = {(min(u, v), max(u, v)) for u, v in found}
        return _fall(np.nan_to_num(exact_gains(self.parts.reader, document, pairs)), sources, targets)


def _fall(gains: FloatArray, sources: Sequence[int], targets: Sequence[int]) -> FloatArray:
    """The share by which the perplexity falls."""
    chosen = _of_both(gains, sources, targets)
    return np.asarray(-np.expm1(-np.maximum(chosen, 0)), dtype=np.float32)


def _of_both(values: FloatArray, sources: Sequence[int], targets: Sequence[int]) -> FloatArray:
    """Values of an earlier and a later sentence, whichever of the two comes first."""
    return np.asarray(values[np.minimum.outer(sources, targets), np.maximum.outer(sources, targets)])


class ReadingLinker(Linker):
    """Links sentences that the reader's heads take for sentences of one text.

    The heads have learnt it from texts with foreign sentences and from joined texts.
    """

    name = "reading"
    about = "two sentences belong together: the heads of the reader take them for sentences of one text"
    parts_needed: ClassVar[tuple[Part, ...]] = ("reader", "heads", "encoder")
    version = "2"
    threshold = 0.72

    def strengths(self, document: Document, sources: Sequence[int], targets: Sequence[int]) -> FloatArray:
        """The probability that two sentences are from the same text."""
        return _of_both(self.parts.read(document).judgement.related, sources, targets)
