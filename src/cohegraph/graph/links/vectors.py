"""Links by sentence vectors: sentences link if the encoder places them close to each other."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from cohegraph.graph.links.linker import Linker, Parts
from cohegraph.graph.links.links import FloatArray
from cohegraph.settings import LinkSettings
from cohegraph.text.document import Document

# Vectors of so many sentences are kept: texts with a sentence removed or moved consist of the same sentences.
_MOST_KEPT = 4096
_Units = npt.NDArray[np.float64]


class VectorLinker(Linker):
    """Links sentences by the cosine of their vectors.

    The default threshold belongs to the packaged encoder: it gives graphs about as dense as those of nouns
    (``benchmarks/link_density.py``).
    """

    name = "vectors"
    about = "two sentences are similar as a whole: their vectors, by the encoder, have a high cosine"
    parts_needed = ("encoder",)
    threshold = 0.32

    def __init__(self, settings: LinkSettings, parts: Parts) -> None:
        super().__init__(settings, parts)
        self._last: tuple[Document, _Units] | None = None
        self._kept: dict[str, _Units] = {}

    def strengths(self, document: Document, sources: Sequence[int], targets: Sequence[int]) -> FloatArray:
        """The cosine of two sentences; 0 if it is negative."""
        units = self._units(document)
        # In float64, so that float32 digits do not depend on how many sentences are multiplied at once.
        cosine = units[np.array(sources, dtype=np.int64)] @ units[np.array(targets, dtype=np.int64)].T
        return np.clip(cosine, 0, 1).astype(np.float32)

    def _units(self, document: Document) -> _Units:
        """The vectors of a document's sentences, of length 1; those of the last document are kept."""
        last = self._last
        if last is None or last[0] is not document:
            # Read and replaced as a whole: other threads may ask about other documents at the same time.
            self._last = last = (document, self._read([sentence.text for sentence in document.sentences]))
        return last[1]

    def _read(self, texts: Sequence[str]) -> _Units:
        kept = self._kept
        new = [text for text in dict.fromkeys(texts) if text not in kept]
        vectors = self.parts.encoder.encode(new).vectors.astype(np.float64)
        length = np.linalg.norm(vectors, axis=1, keepdims=True)
        found = dict(zip(new, vectors / np.where(length > 0, length, 1), strict=True))
        units = np.array([found[text] if text in found else kept[text] for text in texts])
        units = units.reshape(len(texts), vectors.shape[1])
        if len(kept) + len(found) > _MOST_KEPT:
            kept = self._kept = {}
        kept.update(list(found.items())[:_MOST_KEPT])
        return units
