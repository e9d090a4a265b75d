"""From texts to features: the one place where the text room and the graph room meet.

``text -> Document -> SentenceGraph -> pattern counts`` on one side, ``text -> vector`` on the other.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy import sparse

from cohegraph.errors import CohegraphError
from cohegraph.graph.catalogue import Catalogue, catalogue
from cohegraph.graph.entity_grid import EntityGrid, build_entity_grid, role_number
from cohegraph.graph.sentence_graph import NounTable, SentenceGraph, build_sentence_graph
from cohegraph.graph.subgraphs import GraphBatch, count_patterns
from cohegraph.mapped_vectors import MappedVectors
from cohegraph.progress import track
from cohegraph.settings import EncoderSettings, ParserSettings, Settings
from cohegraph.text.document import Document, Noun, Parser
from cohegraph.text.encoder import Encoded, Encoder, TransformerEncoder
from cohegraph.text.language import looks_english
from cohegraph.text.spacy_parser import SpacyParser
from cohegraph.text.stanza_parser import StanzaParser
from cohegraph.text.token_sequence import TokenSequence, sequence_of_states, sequence_of_words
from cohegraph.text.word_vectors import WordVectors, load_word_vectors

TALLIES = (
    "sentences",
    "dropped_sentences",
    "words",
    "nouns",
    "unknown_nouns",
    "links",
    "subgraphs",
    "characters",
    "distinct_words",
    "paragraphs",
    "english",
    "tokens",
    "cut_tokens",
)
OF_ENCODER = ("tokens", "cut_tokens")
# Kinds of token vectors.
SEQUENCES: tuple[Literal["states", "words"], ...] = ("states", "words")
# What only some systems need: the encoder's state or the word vector of every token, and who does what in a sentence.
Material = Literal["states", "words", "grid"]
SURFACE_FIGURES = (
    "words (log)",
    "sentences (log)",
    "words in a sentence",
    "characters in a word",
    "distinct words (share)",
    "paragraphs (log)",
)
_DOCUMENTS_AT_ONCE = 64
_WORD = re.compile(r"\w+")
_BLANK_LINE = re.compile(r"\n\s*\n")


@dataclass(frozen=True)
class Features:
    """All that learning needs of N documents, and what a result reports of them.

    Shapes: ``counts`` (N, patterns), ``vectors`` (N, dimensions), in memory or mapped into it, ``tallies`` (N,
    len(TALLIES)). ``parts`` names the
    pretrained parts and ``settings`` the settings they come from; neither is known of features made otherwise.
    ``material`` is what was asked for besides, one item a document.
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

    def __getitem__(self, chosen: Any) -> Features:
        """The features of some documents: a slice, a mask or numbers."""
        index = np.arange(len(self))[chosen[0] if isinstance(chosen, tuple) else chosen]
        rows = np.atleast_1d(index)
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

    def in_memory(self) -> Features:
        """The same features with the vectors in memory."""
        return replace(self, vectors=self.array)

    def tally(self, name: str) -> npt.NDArray[np.int64]:
        """One of TALLIES, for every document."""
        return self.tallies[:, TALLIES.index(name)]

    def sequences(self, kind: Literal["states", "words"]) -> tuple[TokenSequence, ...]:
        """The token vectors of every document."""
        return self._material(kind)

    @property
    def grids(self) -> tuple[EntityGrid, ...]:
        """The entity grid of every document."""
        return self._material("grid")

    def _material(self, name: Material) -> tuple[Any, ...]:
        if name not in self.material:
            raise CohegraphError(f"These features were made without '{name}': make them with needs=['{name}'].")
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
    def concatenate(parts: Sequence[Features]) -> Features:
        """Features of several batches as one."""
        return Features(
            sparse.vstack([part.counts for part in parts], format="csr"),
            np.concatenate([part.array for part in parts]),
            np.concatenate([part.tallies for part in parts]),
            parts[0].parts,
            parts[0].settings,
            {name: tuple(item for part in parts for item in part.material[name]) for name in parts[0].material},
        )


@dataclass(frozen=True)
class Structure:
    """Pattern counts (N, patterns), and the tallies that need no encoder."""

    counts: sparse.csr_array
    tallies: npt.NDArray[np.int64]


@dataclass(frozen=True)
class LinkedDocument:
    """A document with its sentence graph. Node i of the graph is sentence ``kept[i]``; nouns are those of the graph.

    ``table`` is what the graph was made from.
    """

    document: Document
    graph: SentenceGraph
    kept: tuple[int, ...]
    nouns: tuple[Noun, ...]
    table: NounTable
    unknown_nouns: int


class Featurizer:
    """Pretrained parts and settings. The parts are loaded when first needed.

    Args:
        settings: Which parts, and how documents become graphs and counts.
        device: Where the encoder runs.
        batch_size: See `TransformerEncoder`.
    """

    def __init__(self, settings: Settings, *, device: str = "auto", batch_size: int | None = None) -> None:
        self.settings = settings
        self.device = device
        self._batch_size = batch_size

    @property
    def parser(self) -> Parser:
        """The parser of the settings."""
        return _parser(self.settings.parser)

    @property
    def dependency_parser(self) -> Parser:
        """The same parser with the dependencies of nouns."""
        return _parser(self.settings.parser, dependencies=True)

    @property
    def word_vectors(self) -> WordVectors:
        """The word vectors of the settings."""
        return _word_vectors(self.settings.vectors.source)

    @property
    def encoder(self) -> Encoder:
        """The document encoder of the settings."""
        return _encoder(self.settings.encoder, self.device, self._batch_size)

    @property
    def catalogue(self) -> Catalogue:
        """The patterns that the columns of the counts stand for."""
        return catalogue(self.settings.subgraphs.k, self.settings.subgraphs.patterns)

    @property
    def identities(self) -> dict[str, str]:
        """Name and content of every pretrained part."""
        return {
            "parser": self.parser.identity,
            "vectors": self.word_vectors.identity,
            "encoder": self.encoder.identity,
        }

    def load(self, needs: Iterable[Material] = ()) -> None:
        """Load all parts now, so that a missing one is noticed before any work is done."""
        _ = self.identities
        if "grid" in needs:
            _ = self.dependency_parser

    def featurize(
        self,
        texts: Sequence[str | Document | LinkedDocument],
        *,
        needs: Iterable[Material] = (),
        show_progress: bool = False,
    ) -> Features:
        """The features of texts, in their order, with the material that is needed besides.

        A text that is parsed or linked already is not parsed or linked again; it must come from a featurizer with the
        same settings.
        """
        wanted = tuple(sorted(set(needs)))
        starts = range(0, len(texts), _DOCUMENTS_AT_ONCE)
        batches = (self._features(texts[start : start + _DOCUMENTS_AT_ONCE], wanted) for start in starts)
        parts = list(track(batches, "reading documents", len(texts), size=len, show=show_progress))
        return Features.concatenate(parts or [self._features([], wanted)])

    def link(self, texts: Sequence[str]) -> Iterator[LinkedDocument]:
        """The sentence graph of every text."""
        for document in self.parser.parse(texts):
            yield self.link_document(document)

    def count(self, linked: Sequence[LinkedDocument]) -> sparse.csr_array:
        """The pattern counts of linked documents, (documents, patterns)."""
        subgraphs = self.settings.subgraphs
        batch = GraphBatch.of([one.graph for one in linked])
        return count_patterns(batch, self.catalogue, subgraphs.window, subgraphs.subsets)

    def structure(self, documents: Iterable[Document | LinkedDocument]) -> Structure:
        """The half of the features that needs parsed documents and word vectors."""
        linked = [one if isinstance(one, LinkedDocument) else self.link_document(one) for one in documents]
        counts = self.count(linked)
        rows = [_tallies(one, subgraphs) for one, subgraphs in zip(linked, counts.sum(axis=1), strict=True)]
        return Structure(counts, np.array(rows, dtype=np.int64).reshape(-1, len(TALLIES) - len(OF_ENCODER)))

    def encode(self, texts: Sequence[str]) -> Encoded:
        """The half of the features that needs the encoder."""
        return self.encoder.encode(texts)

    def joined(self, structure: Structure, encoded: Encoded) -> Features:
        """The two halves of the features of the same texts."""
        tallies = np.column_stack([structure.tallies, encoded.tokens, encoded.cut])
        return Features(structure.counts, encoded.vectors, tallies, self.identities, self.settings)

    def sequences(self, documents: Iterable[Document], kind: Literal["states", "words"]) -> list[TokenSequence]:
        """The token vectors of parsed documents."""
        if kind == "words":
            return [sequence_of_words(document, self.word_vectors) for document in documents]
        found = ((document, self.encoder.token_states(document.text)) for document in documents)
        return [sequence_of_states(document, tokens.states, tokens.places) for document, tokens in found]

    def grids(self, texts: Sequence[str]) -> list[EntityGrid]:
        """The entity grids of texts. Nouns with the same lemma are one entity."""
        return [
            build_entity_grid(
                len(document.sentences),
                (
                    (number, noun.lemma.lower(), role_number(noun.dependency))
                    for number, sentence in enumerate(document.sentences)
                    for noun in sentence.nouns
                ),
            )
            for document in self.dependency_parser.parse(texts)
        ]

    def material(self, name: Material, documents: Sequence[Document]) -> Sequence[Any]:
        """What is asked for by a name, of parsed documents."""
        if name == "grid":
            return self.grids([document.text for document in documents])
        return self.sequences(documents, name)

    def _features(self, texts: Sequence[str | Document | LinkedDocument], needs: Sequence[Material]) -> Features:
        parsed = self.parser.parse([text for text in texts if isinstance(text, str)])
        read = [next(parsed) if isinstance(text, str) else text for text in texts]
        documents = [one.document if isinstance(one, LinkedDocument) else one for one in read]
        features = self.joined(self.structure(read), self.encode([document.text for document in documents]))
        return replace(features, material={name: tuple(self.material(name, documents)) for name in needs})

    def link_document(self, document: Document) -> LinkedDocument:
        """The sentence graph of a parsed document, with links between sentences that share a window."""
        links, reach = self.settings.links, self.settings.subgraphs.window
        kept = tuple(i for i, sentence in enumerate(document.sentences) if sentence.words >= links.min_words)
        nouns = [
            (node, noun)
            for node, sentence in enumerate(kept)
            for noun in document.sentences[sentence].nouns
            if links.proper_nouns or noun.tag == "NOUN"
        ]
        forms = [noun.lemma if links.noun_form == "lemma" else noun.text for _, noun in nouns]
        vectors = self.word_vectors
        rows = [vectors.row(form) for form in forms]
        # A word with a vector is its row; one without is its spelling, so that a repetition is found again.
        keys = [row if row >= 0 else form.lower() for row, form in zip(rows, forms, strict=True)]
        number = {key: index for index, key in enumerate(dict.fromkeys(keys))}
        spelled = dict(zip(reversed(keys), reversed(forms), strict=True))
        table = NounTable(
            size=len(kept),
            sentence=np.array([node for node, _ in nouns], dtype=np.int64),
            word=np.array([number[key] for key in keys], dtype=np.int64),
            vectors=vectors.unit([key if isinstance(key, int) else -1 for key in number]),
            words=[spelled[key] for key in number],
        )
        graph = build_sentence_graph(
            table, links.delta, inclusive=links.inclusive, spelling=links.spelling, reach=reach
        )
        unknown = sum(row < 0 for row in rows)
        return LinkedDocument(document, graph, kept, tuple(noun for _, noun in nouns), table, unknown)


def _tallies(linked: LinkedDocument, subgraphs: int) -> tuple[int, ...]:
    """The figures named in TALLIES, in their order, without those of the encoder."""
    sentences = linked.document.sentences
    return (
        len(sentences),
        len(sentences) - len(linked.kept),
        sum(sentence.words for sentence in sentences),
        len(linked.nouns),
        linked.unknown_nouns,
        len(linked.graph),
        subgraphs,
        *_spelled(linked.document.text),
        int(looks_english(linked.document.text)),
    )


def _spelled(text: str) -> tuple[int, int, int]:
    """Characters in words, distinct words, and paragraphs, which blank lines part."""
    words = _WORD.findall(text)
    paragraphs = sum(1 for part in _BLANK_LINE.split(text) if part.strip())
    return sum(map(len, words)), len({word.lower() for word in words}), paragraphs


# Pretrained parts are large and never change, so models in one process share them.
@lru_cache(maxsize=4)
def _parser(settings: ParserSettings, dependencies: bool = False) -> Parser:
    kind = StanzaParser if settings.kind == "stanza" else SpacyParser
    return kind(settings.model, dependencies=dependencies)


_word_vectors = lru_cache(maxsize=4)(load_word_vectors)


@lru_cache(maxsize=4)
def _encoder(settings: EncoderSettings, device: str, batch_size: int | None) -> Encoder:
    return TransformerEncoder(
        settings.source,
        max_tokens=settings.max_tokens,
        overflow=settings.overflow,
        precision=settings.precision,
        device=device,
        batch_size=batch_size,
    )
