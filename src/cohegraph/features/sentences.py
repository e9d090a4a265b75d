"""What pretrained parts find in sentences, kept for a while: several stages and linkers ask for it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np

from cohegraph.errors import CohegraphError
from cohegraph.text.document import Document
from cohegraph.text.encoder import Encoder

if TYPE_CHECKING:
    from cohegraph.text.heads import Heads, Judgement
    from cohegraph.text.heads_network import Floats
    from cohegraph.text.reader import Reader, Reading

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")

# Vectors of so many sentences are kept, and readings of so many documents: texts with a sentence removed or moved
# consist of the same sentences.
_SENTENCES, _DOCUMENTS = 4096, 128


class _Kept(Generic[Key, Value]):
    """What was computed last, by what it was computed from. Several threads may ask at the same time."""

    def __init__(self, most: int, compute: Callable[[list[Key]], Sequence[Value]]) -> None:
        self._most, self._compute = most, compute
        self._values = OrderedDict[Key, Value]()
        self._lock = Lock()

    def __call__(self, keys: Sequence[Key]) -> list[Value]:
        with self._lock:
            found = {key: self._values[key] for key in keys if key in self._values}
        new = [key for key in dict.fromkeys(keys) if key not in found]
        found |= zip(new, self._compute(new) if new else (), strict=True)
        with self._lock:
            for key in found:
                self._values[key] = found[key]
                self._values.move_to_end(key)
            while len(self._values) > self._most:
                self._values.popitem(last=False)
        return [found[key] for key in keys]


class SentenceVectors:
    """The encoder's vectors of sentences, of length 1, or 0 where a sentence has none."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self._vectors = _Kept[str, "Floats"](_SENTENCES, self._encode)

    def of(self, document: Document) -> Floats:
        """Those of a document, (sentences, dimensions)."""
        found = self._vectors([sentence.text for sentence in document.sentences])
        return np.array(found, dtype=np.float32).reshape(len(found), self._encoder.dimensions)

    def _encode(self, texts: list[str]) -> Sequence[Floats]:
        vectors = self._encoder.encode(texts).vectors.astype(np.float64)
        length = np.linalg.norm(vectors, axis=1, keepdims=True)
        return list((vectors / np.where(length > 0, length, 1)).astype(np.float32))


@dataclass(frozen=True)
class ReadDocument:
    """What a reader found in a document, and what its heads say of it."""

    reading: Reading
    judgement: Judgement


class Readings:
    """What a reader and its heads say of documents.

    Args:
        reader: Reads them.
        heads: Judge what it found; they must be those of this reader and this encoder.
        encoder: The identity of the encoder.
        vectors: Its vectors of sentences.
    """

    def __init__(self, reader: Reader, heads: Heads, encoder: str, vectors: SentenceVectors) -> None:
        for name, theirs, own in (("reader", heads.reader, reader.identity), ("encoder", heads.encoder, encoder)):
            # With whole numbers a part is nearly the same, and its heads are.
            if theirs.partition("+")[0] != own.partition("+")[0]:
                message = f"The heads were trained with another {name}: choose that one, or train heads for this one"
                raise CohegraphError(
                    f"{message} with 'cohegraph train-reader'; reader.heads=null reads without heads, for the linker "
                    "context-exact.",
                    code="other-heads",
                )
        self._reader, self._heads, self._vectors = reader, heads, vectors
        self._read = _Kept[Document, ReadDocument](_DOCUMENTS, self._new)

    def of(self, documents: Sequence[Document]) -> list[ReadDocument]:
        """Those of documents, in their order."""
        return self._read(documents)

    def _new(self, documents: list[Document]) -> list[ReadDocument]:
        readings = self._reader.read(documents, self._heads.states)
        judgements = (
            self._heads.judge(reading, self._vectors.of(document))
            for document, reading in zip(documents, readings, strict=True)
        )
        return list(map(ReadDocument, readings, judgements))
