"""The features of documents: all that learning needs of them."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt
from scipy import sparse

from cohegraph.errors import CohegraphError
from cohegraph.features.mapped_vectors import MappedVectors
from cohegraph.graph.entity_grid import EntityGrid
from cohegraph.settings import Settings
from cohegraph.text.reader import FIGURES
from cohegraph.text.token_sequence import TokenSequence

if TYPE_CHECKING:
    from cohegraph.features.sentences import ReadDocument

OF_STRUCTURE = tuple(
    "sentences dropped_sentences words nouns unknown_nouns links subgraphs characters distinct_words paragraphs "
    "english".split()
)
OF_ENCODER = ("tokens", "cut_tokens")
TALLIES = (*OF_STRUCTURE, *OF_ENCODER)
# Kinds of token vectors: the encoder's state or the word vector of every token.
Sequences = Literal["states", "words"]
SEQUENCES: tuple[Sequences, ...] = ("states", "words")
# What only some systems need: token vectors, who does what in a sentence, and what a reader finds.
Material = Sequences | Literal["grid", "reading"]
SURFACE_FIGURES = (
    "words (log)",
    "sentences (log)",
    "words in a sentence",
    "characters in a word",
    "distinct words (share)",
    "paragraphs (log)",
)


@dataclass(frozen=True)
class DocumentReading:
    """What is kept of what a reader and its heads say of a document of S sentences.

    Shapes: ``tokens`` (S,); ``losses`` (S, figures), see `cohegraph.text.reader.FIGURES`; ``boundaries`` (S - 1,),
    ``belonging`` (S,) and ``score`` (1,), see `cohegraph.text.heads.Judgement`; ``states`` (states, width), the mean
    over sentences; ``alone`` (S,), the loss of each sentence by itself, or empty where that was not asked for.
    """

    tokens: npt.NDArray[np.int64]
    losses: npt.NDArray[np.float32]
    boundaries: npt.NDArray[np.float32]
    belonging: npt.NDArray[np.float32]
    score: npt.NDArray[np.float32]
    states: npt.NDArray[np.float16]
    alone: npt.NDArray[np.float32]

    @classmethod
    def of(cls, read: "ReadDocument", alone: npt.NDArray[np.float32] | None = None) -> "DocumentReading":
        """What is kept of a document that was read."""
        reading, judgement = read.reading, read.judgement
        states = reading.states.mean(axis=0) if len(reading.states) else np.zeros(reading.states.shape[1:])
        return cls(
            reading.tokens,
            reading.losses,
            judgement.boundaries,
            judgement.belonging,
            np.array([judgement.score], dtype=np.float32),
            states.astype(np.float16),
            np.zeros(0, dtype=np.float32) if alone is None else alone,
        )

    @classmethod
    def blank(cls, width: int) -> "DocumentReading":
        """That of a document without a sentence; ``width`` is how many numbers its states are."""
        none, numbers = np.zeros(0, dtype=np.float32), np.zeros(0, dtype=np.int64)
        states = np.zeros((1, width), dtype=np.float16)
        return cls(
            numbers,
            np.zeros((0, len(FIGURES)), dtype=np.float32),
            none,
            none,
            np.zeros(1, dtype=np.float32),
            states,
            none,
        )


@dataclass(frozen=True)
class Features:
    """All that learning needs of N documents, and what a result reports of them.

    Shapes: ``counts`` (N, patterns), ``vectors`` (N, dimensions), in memory or mapped into it, ``tallies`` (N,
    len(TALLIES)). ``parts`` are the identities of the pretrained parts; it is empty, and ``settings`` missing, where
    features do not come from a `Featurizer`. ``material`` is what was asked for in addition, one item per document.
    """

    counts: sparse.csr_array
    vectors: npt.NDArray[np.float32] | MappedVectors
    tallies: npt.NDArray[np.int64]
    parts: dict[str, str] = field(default_factory=dict)
    settings: Settings | None = None
    material: dict[Material, tuple[Any, ...]] = field(default_factory=dict)

    @property
    def shape(self) -> tuple[int]:
        """One axis: the documents. It lets scikit-learn split features as it splits arrays."""
        return (len(self.vectors),)

    def __len__(self) -> int:
        return len(self.vectors)

    def __getitem__(self, chosen: Any) -> "Features":
        """The features of some documents: a slice, a mask or numbers."""
        rows = np.atleast_1d(np.arange(len(self))[chosen[0] if isinstance(chosen, tuple) else chosen])
        return Features(
            self.counts[rows],
            self.vectors[rows],
            self.tallies[rows],
            self.parts,
            self.settings,
            {name: tuple(items[row] for row in rows.tolist()) for name, items in self.material.items()},
        )

    @property
    def array(self) -> npt.NDArray[np.float32]:
        """The vectors in memory."""
        return np.asarray(self.vectors)

    def in_memory(self) -> "Features":
        """The same features with the vectors in memory."""
        return replace(self, vectors=self.array)

    def tally(self, name: str) -> npt.NDArray[np.int64]:
        """One of TALLIES, for every document."""
        return self.tallies[:, TALLIES.index(name)]

    def sequences(self, kind: Sequences) -> tuple[TokenSequence, ...]:
        """The token vectors of every document."""
        return self._material(kind)

    @property
    def readings(self) -> tuple[DocumentReading, ...]:
        """What a reader found in every document."""
        return self._material("reading")

    @property
    def grids(self) -> tuple[EntityGrid, ...]:
        """The entity grid of every document."""
        return self._material("grid")

    def _material(self, name: Material) -> tuple[Any, ...]:
        if name not in self.material:
            message = f"These features were made without '{name}': make them with needs=['{name}']."
            raise CohegraphError(message, code="missing-material")
        return self.material[name]

    @property
    def surface(self) -> npt.NDArray[np.float64]:
        """SURFACE_FIGURES of every document, (N, 6): what a text looks like from afar."""
        words, sentences, characters, distinct, paragraphs = (
            self.tally(name).astype(np.float64)
            for name in ("words", "sentences", "characters", "distinct_words", "paragraphs")
        )
        some_words = np.maximum(words, 1)
        figures = (
            np.log1p(words),
            np.log1p(sentences),
            words / np.maximum(sentences, 1),
            characters / some_words,
            distinct / some_words,
            np.log1p(paragraphs),
        )
        return np.stack(figures, axis=1)

    @staticmethod
    def concatenate(parts: Sequence["Features"]) -> "Features":
        """Features of several batches as one."""
        return Features(
            sparse.vstack([part.counts for part in parts], format="csr"),
            np.concatenate([part.array for part in parts]),
            np.concatenate([part.tallies for part in parts]),
            parts[0].parts,
            parts[0].settings,
            {name: tuple(item for part in parts for item in part.material[name]) for name in parts[0].material},
        )
