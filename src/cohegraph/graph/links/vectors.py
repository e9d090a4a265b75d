"""Links by sentence vectors: sentences link if the encoder places them close to each other."""

from collections.abc import Sequence

import numpy as np

from cohegraph.graph.links.linker import Linker
from cohegraph.graph.links.links import FloatArray
from cohegraph.text.document import Document


class VectorLinker(Linker):
    """Links sentences by the cosine of their vectors.

    The default threshold belongs to the packaged encoder: it gives graphs about as dense as those of nouns
    (``benchmarks/link_density.py``).
    """

    name = "vectors"
    about = "two sentences are similar as a whole: their vectors, by the encoder, have a high cosine"
    parts_needed = ("encoder",)
    threshold = 0.32

    def strengths(self, document: Document, sources: Sequence[int], targets: Sequence[int]) -> FloatArray:
        """The cosine of two sentences; 0 if it is negative."""
        units = self.parts.sentence_vectors(document).astype(np.float64)
        # In float64, so that float32 digits do not depend on how many sentences are multiplied at once.
        cosine = units[np.array(sources, dtype=np.int64)] @ units[np.array(targets, dtype=np.int64)].T
        return np.clip(cosine, 0, 1).astype(np.float32)
