"""The vectors of a document's tokens in reading order, by sentence and paragraph: what sequence models read."""

import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from cohegraph.errors import CohegraphError
from cohegraph.text.document import Document
from cohegraph.text.word_vectors import WordVectors

Vectors = npt.NDArray[np.float16]

_BLANK_LINE = re.compile(r"\n\s*\n")
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")


@dataclass(frozen=True)
class MappedRows:
    """Rows of a file of float16 vectors, which are read when they are needed; another process can open them too."""

    file: Path
    start: int
    rows: int
    width: int

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        if not self.rows:
            return np.zeros((0, self.width), dtype or np.float16)
        begin = self.start * self.width
        flat = _mapped(self.file, begin + self.rows * self.width)[begin : begin + self.rows * self.width]
        return np.asarray(flat.reshape(self.rows, self.width), dtype=dtype)


@lru_cache(maxsize=8)
def _opened(file: Path, size: int) -> npt.NDArray[np.float16]:
    return np.memmap(file, dtype=np.float16, mode="r", shape=(size // 2,))


def _mapped(file: Path, numbers: int) -> npt.NDArray[np.float16]:
    """The file as one flat array; it may have grown since it was last opened."""
    size = file.stat().st_size
    if size < 2 * numbers:
        raise OSError(f"{file} has been cut.")
    return _opened(file, size)


@dataclass(frozen=True)
class TokenSequence:
    """The tokens of a document.

    Shapes: ``vectors`` (tokens, width); ``sentences`` (sentences,), how many tokens each has, none of them 0;
    ``paragraphs`` (paragraphs,), how many sentences each has.
    """

    vectors: Vectors | MappedRows
    sentences: npt.NDArray[np.int64]
    paragraphs: npt.NDArray[np.int64]

    def sentence_means(self) -> npt.NDArray[np.float32]:
        """The mean of the vectors of each sentence, (sentences, width)."""
        vectors = np.asarray(self.vectors, dtype=np.float32)
        if not len(self.sentences):
            return vectors
        starts = np.cumsum(self.sentences) - self.sentences
        return np.asarray(np.add.reduceat(vectors, starts, axis=0) / self.sentences[:, None], dtype=np.float32)


def sequence_of_states(
    document: Document, states: npt.NDArray[np.floating], places: npt.NDArray[np.int64]
) -> TokenSequence:
    """The encoder's states, each in the sentence that its token stands in.

    Args:
        document: The parsed text.
        states: (tokens, width).
        places: Where each token ends in the text.
    """
    if not document.sentences or not len(states):
        return _empty(states.shape[1])
    starts = [sentence.start for sentence in document.sentences]
    owner = np.maximum(np.searchsorted(starts, places, side="right") - 1, 0)
    return _arranged(document, states, owner)


def sequence_of_words(document: Document, vectors: WordVectors) -> TokenSequence:
    """The word vectors of the words; a word without one is a row of zeros."""
    words = [_WORD.findall(sentence.text) for sentence in document.sentences]
    rows = [vectors.row(word) for sentence in words for word in sentence]
    owner = np.repeat(np.arange(len(words)), [len(sentence) for sentence in words])
    return _arranged(document, vectors.unit(rows), owner) if rows else _empty(vectors.dimensions)


def _arranged(document: Document, vectors: npt.NDArray[np.floating], owner: npt.NDArray[np.int64]) -> TokenSequence:
    """Tokens by sentence; sentences without a token (the text was cut, or they are marks alone) are left out."""
    with np.errstate(over="ignore"):
        half = np.asarray(vectors, dtype=np.float16)
    if not np.isfinite(half).all():
        raise CohegraphError(
            "The encoder's states are too large for half precision: choose another encoder.", code="states-too-large"
        )
    tokens = np.bincount(owner, minlength=len(document.sentences))
    breaks = [match.start() for match in _BLANK_LINE.finditer(document.text)]
    starts = [sentence.start for sentence in document.sentences]
    paragraph = np.searchsorted(breaks, starts)[tokens > 0]
    return TokenSequence(
        vectors=half,
        sentences=tokens[tokens > 0],
        paragraphs=np.unique(paragraph, return_counts=True)[1],
    )


def _empty(width: int) -> TokenSequence:
    none = np.zeros(0, dtype=np.int64)
    return TokenSequence(np.zeros((0, width), dtype=np.float16), none, none)
