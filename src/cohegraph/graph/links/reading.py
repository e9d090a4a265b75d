"""Links that a reader makes: what a sentence takes up from another, and which sentences are of one text."""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from cohegraph.graph.links.linker import Linker, Part
from cohegraph.graph.links.links import FloatArray
from cohegraph.text.document import Document


class ContextLinker(Linker):
    """Links a sentence to a later one that is easier to foresee after it.

    The gain is the mean loss per token of the later sentence alone, minus the same after the earlier one, in nats. The
    strength is the share of the loss that is gained. Every pair of sentences is read: exact, and slow.
    """

    name = "context"
    about = "a sentence is easier to foresee after another one: the reader's loss is lower"
    parts_needed: ClassVar[tuple[Part, ...]] = ("reader",)
    threshold = 0.05

    def strengths(self, document: Document, sources: Sequence[int], targets: Sequence[int]) -> FloatArray:
        """The share of the loss of a sentence that another one takes away; 0 if it takes away none."""
        alone = self.parts.reader.alone(document)[list(targets)]
        found = np.zeros((len(sources), len(targets)), dtype=np.float32)
        for row, source in enumerate(sources):
            later = [column for column, target in enumerate(targets) if target > source]
            if later:
                after = self.parts.reader.after(document, source, [targets[column] for column in later])
                found[row, later] = 1 - after / np.maximum(alone[later], np.finfo(np.float32).tiny)
        return np.clip(found, 0, 1)


class ReadingLinker(Linker):
    """Links sentences that the reader's heads take for sentences of one text.

    The heads have learnt it from texts with foreign sentences and from joined texts.
    """

    name = "reading"
    about = "two sentences belong together: the heads of the reader take them for sentences of one text"
    parts_needed: ClassVar[tuple[Part, ...]] = ("reader", "heads", "encoder")
    threshold = 0.5

    def strengths(self, document: Document, sources: Sequence[int], targets: Sequence[int]) -> FloatArray:
        """The probability that two sentences are from the same text."""
        related = self.parts.read(document).judgement.related
        # Of two sentences the heads are asked about the earlier and the later.
        both = np.triu(related) + np.triu(related, 1).T
        return np.asarray(both[np.ix_(sources, targets)], dtype=np.float32)
