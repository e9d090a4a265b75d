"""Word vectors from a package, a GloVe text file or a spaCy pipeline, all behind one class."""

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from cohegraph.errors import MissingPartError
from cohegraph.text.glove_file import open_glove_file
from cohegraph.text.packaged import PACKAGED_VECTORS, Packaged

_SPACY = "spacy:"


class WordVectors:
    """Vectors by word.

    Args:
        matrix: One row a word; may be memory-mapped, rows are read when asked for.
        row_of: From a word, exactly as spelled, to its row, or nothing.
        identity: Name and content of the vectors.
    """

    def __init__(self, matrix: npt.NDArray[np.float32], row_of: Callable[[str], int | None], identity: str) -> None:
        self._matrix = matrix
        self._row_of = row_of
        self._rows: dict[str, int] = {}
        self.identity = identity

    @property
    def dimensions(self) -> int:
        """Length of a vector."""
        return int(self._matrix.shape[1])

    def row(self, word: str) -> int:
        """The row of a word as it is spelled, or else in lower case; -1 where it has no vector."""
        row = self._rows.get(word)
        if row is None:
            found = self._row_of(word)
            if found is None:
                found = self._row_of(word.lower())
            row = self._rows[word] = -1 if found is None else found
        return row

    def unit(self, rows: Sequence[int]) -> npt.NDArray[np.float32]:
        """The vectors of these rows at length 1; a row of zeros for -1 or for a vector of zeros."""
        index = np.asarray(rows, dtype=np.int64)
        vectors = np.zeros((len(index), self.dimensions), dtype=np.float32)
        vectors[index >= 0] = self._matrix[index[index >= 0]]
        length = np.sqrt(np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64))
        return (vectors / np.where(length > 0, length, 1)[:, None]).astype(np.float32)


def load_word_vectors(source: str) -> WordVectors:
    """Vectors by a packaged name (`glove-6b-50d`), a GloVe text file, or `spacy:NAME`."""
    if source in PACKAGED_VECTORS:
        return _packaged(PACKAGED_VECTORS[source], source)
    if source.startswith(_SPACY):
        return _from_spacy(source.removeprefix(_SPACY))
    file = Path(source)
    if not file.is_file():
        raise MissingPartError(
            f"There are no word vectors '{source}': name a GloVe text file, spacy:NAME, or one of "
            f"{', '.join(PACKAGED_VECTORS)}.",
            code="no-vectors",
        )
    stored = open_glove_file(file)
    return WordVectors(stored.vectors, stored.row_of, f"glove:{stored.sha256}")


def _packaged(part: Packaged, name: str) -> WordVectors:
    import pyarrow.parquet

    folder = part.path
    words = pyarrow.parquet.read_table(folder / "glove_6B_index.parquet").column(0).to_pylist()
    rows = dict(zip(words, range(len(words)), strict=True))
    matrix = np.load(folder / "glove_6B_50d_emb.npy", mmap_mode="r", allow_pickle=False)
    return WordVectors(matrix, rows.get, f"{name}:{part.sha256['glove_6B_50d_emb.npy']}")


def _from_spacy(name: str) -> WordVectors:
    import spacy

    try:
        nlp = spacy.load(
            name, exclude=["tok2vec", "tagger", "parser", "senter", "attribute_ruler", "lemmatizer", "ner"]
        )
    except OSError:
        raise MissingPartError(
            f"There is no spaCy pipeline '{name}' to take word vectors from: install it.", code="no-pipeline"
        ) from None
    vectors, strings = nlp.vocab.vectors, nlp.vocab.strings
    if not vectors.shape[0] or not vectors.shape[1]:
        raise MissingPartError(
            f"The spaCy pipeline '{name}' has no word vectors: choose one with vectors, such as md or lg.",
            code="pipeline-without-vectors",
        )

    def row_of(word: str) -> int | None:
        row = int(vectors.find(key=strings[word]))
        return row if row >= 0 else None

    meta = nlp.meta
    data = np.asarray(vectors.data)
    content = hashlib.sha256(np.ascontiguousarray(data).tobytes())
    content.update(repr(sorted(vectors.key2row.items())).encode())
    return WordVectors(data, row_of, f"spacy:{meta['lang']}_{meta['name']}:{content.hexdigest()}")
