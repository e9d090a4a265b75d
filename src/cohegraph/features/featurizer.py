"""From texts to features: the one place where text and graph meet.

``text -> Document -> Links -> pattern counts`` on one side, ``text -> vector`` on the other.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from cohegraph.errors import CohegraphError
from cohegraph.features.document_features import OF_STRUCTURE, DocumentReading, Features, Material, Sequences
from cohegraph.features.sentences import ReadDocument, Readings, SentenceVectors
from cohegraph.graph.catalogue import Pattern, catalogue, pattern_columns
from cohegraph.graph.entity_grid import EntityGrid, build_entity_grid, role_number
from cohegraph.graph.links import Linker, Links, kinds_of, linkers_of, parts_of, versions_of
from cohegraph.graph.links.nouns import counted_nouns
from cohegraph.graph.subgraphs import GraphBatch, count_patterns
from cohegraph.progress import track
from cohegraph.settings import EncoderSettings, ParserSettings, Settings
from cohegraph.text.document import Document, Parser
from cohegraph.text.encoder import Encoded, Encoder, TransformerEncoder
from cohegraph.text.language import looks_english
from cohegraph.text.readers import DEFAULT_READER, load_reader
from cohegraph.text.spacy_parser import SpacyParser
from cohegraph.text.stanza_parser import StanzaParser
from cohegraph.text.token_sequence import TokenSequence, sequence_of_states, sequence_of_words
from cohegraph.text.word_vectors import WordVectors, load_word_vectors

if TYPE_CHECKING:
    from cohegraph.text.heads import Heads
    from cohegraph.text.reader import Reader

# The heads that come with cohegraph.
DEFAULT_HEADS = Path(__file__).parent.parent / "data" / "readers" / "heads"
_DOCUMENTS_AT_ONCE = 64
_WORD = re.compile(r"\w+")
_BLANK_LINE = re.compile(r"\n\s*\n")
# Pattern counts (N, patterns), and the tallies that need no encoder (N, len(OF_STRUCTURE)).
Structure = tuple[sparse.csr_array, npt.NDArray[np.int64]]


@dataclass(frozen=True)
class LinkedDocument:
    """A document with its sentence graph. Node i of the graph is sentence ``kept[i]``; ``figures`` are tallies."""

    document: Document
    links: Links
    kept: tuple[int, ...]
    figures: Mapping[str, int]


def patterns_of(settings: Settings) -> tuple[Pattern, ...]:
    """What the columns of pattern counts stand for: all patterns, once for each kind of links if these are apart."""
    blocks = kinds_of(settings.links) if settings.links.combine == "side-by-side" else ()
    return pattern_columns(settings.subgraphs.k, settings.subgraphs.patterns, blocks)


# Before the name of a linker whose version is given with the identities of pretrained parts.
OF_LINKER = "linker "


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
    def reader(self) -> Reader:
        """The reader of the settings."""
        if self.settings.reader.source is None:
            raise CohegraphError(
                f"There is no reader: set reader.source={DEFAULT_READER}, or choose other linkers.", code="no-reader"
            )
        return _reader(self.settings.reader.source, self.settings.reader.precision)

    @property
    def heads(self) -> Heads:
        """The heads of the reader."""
        if self.settings.reader.heads is None:
            raise CohegraphError(
                "There are no heads: set reader.heads=default or name a folder, or choose other linkers.",
                code="no-heads",
            )
        return _heads(self.settings.reader.heads)

    @cached_property
    def _sentence_vectors(self) -> SentenceVectors:
        return SentenceVectors(self.encoder)

    @cached_property
    def _readings(self) -> Readings:
        return Readings(self.reader, self.heads, self.encoder.identity, self._sentence_vectors)

    def sentence_vectors(self, document: Document) -> npt.NDArray[np.float32]:
        """The encoder's vectors of the sentences of a document, of length 1."""
        return self._sentence_vectors.of(document)

    def read(self, document: Document) -> ReadDocument:
        """What the reader and its heads say of a document."""
        return self._readings.of([document])[0]

    def readings(self, documents: Sequence[Document]) -> list[DocumentReading]:
        """What is kept of that among the features of documents."""
        alone = self.reader.alone if self.settings.reader.alone else None
        return [
            DocumentReading.of(read, None if alone is None else alone(document))
            for document, read in zip(documents, self._readings.of(documents), strict=True)
        ]

    @cached_property
    def linkers(self) -> tuple[Linker, ...]:
        """What links sentences."""
        return linkers_of(self.settings.links, self)

    def identity(self, part: str) -> str:
        """Name and content of a pretrained part: parser, dependencies, vectors, encoder, reader or heads."""
        properties = {"dependencies": "dependency_parser", "vectors": "word_vectors"}
        found: str = getattr(self, properties.get(part, part)).identity
        return found

    def identities(self, needs: Iterable[Material] = ()) -> dict[str, str]:
        """Name and content of every pretrained part that the settings and the additional material need.

        The versions of linkers, except of those in their first version, are among them.
        """
        of_words = ["vectors"] if "words" in needs else []
        of_reading = ["reader", "heads"] if self.settings.reader.judges else []
        parts = dict.fromkeys(("parser", *parts_of(self.settings.links), *of_words, "encoder", *of_reading))
        linkers = {OF_LINKER + name: version for name, version in versions_of(self.settings.links).items()}
        return {part: self.identity(part) for part in parts} | linkers

    def load(self, needs: Iterable[Material] = ()) -> None:
        """Load all parts now, so that a missing one is noticed before any work is done."""
        self.identities(needs)
        if "grid" in needs:
            self.identity("dependencies")

    def featurize(
        self,
        texts: Sequence[str | Document | LinkedDocument],
        *,
        needs: Iterable[Material] = (),
        show_progress: bool = False,
    ) -> Features:
        """The features of texts, in their order, with the additional material that is needed.

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
        return map(self.link_document, self.parser.parse(texts))

    def count(self, linked: Sequence[LinkedDocument]) -> sparse.csr_array:
        """The pattern counts of linked documents, (documents, patterns); see `patterns_of`."""
        links, subgraphs = self.settings.links, self.settings.subgraphs
        graphs = [one.links for one in linked]
        blocks = [graphs]
        if links.combine == "side-by-side":
            blocks = [[graph.of_kind(kind) for graph in graphs] for kind in kinds_of(links)]
        patterns = catalogue(subgraphs.k, subgraphs.patterns)
        counts = [
            count_patterns(GraphBatch.of(block), patterns, subgraphs.window, subgraphs.subsets) for block in blocks
        ]
        return counts[0] if len(counts) == 1 else sparse.hstack(counts, format="csr")

    def structure(self, documents: Iterable[Document | LinkedDocument]) -> Structure:
        """What linkers and patterns give: the features without those of the encoder."""
        documents = list(documents)
        if "heads" in parts_of(self.settings.links):
            # Side by side, and kept for the linkers.
            self._readings.of([one for one in documents if not isinstance(one, LinkedDocument)])
        linked = [one if isinstance(one, LinkedDocument) else self.link_document(one) for one in documents]
        counts = self.count(linked)
        rows = [_tallies(one, subgraphs) for one, subgraphs in zip(linked, counts.sum(axis=1), strict=True)]
        return counts, np.array(rows, dtype=np.int64).reshape(-1, len(OF_STRUCTURE))

    def encode(self, texts: Sequence[str]) -> Encoded:
        """What the encoder gives."""
        return self.encoder.encode(texts)

    def sequences(self, documents: Iterable[Document], kind: Sequences) -> list[TokenSequence]:
        """The token vectors of parsed documents."""
        if kind == "words":
            return [sequence_of_words(document, self.word_vectors) for document in documents]
        found = ((document, self.encoder.token_states(document.text)) for document in documents)
        return [sequence_of_states(document, tokens.states, tokens.places) for document, tokens in found]

    def grids(self, texts: Sequence[str]) -> list[EntityGrid]:
        """The entity grids of texts. Nouns with the same lemma are one entity."""
        grids = []
        for document in self.dependency_parser.parse(texts):
            mentions = [
                (number, noun.lemma.lower(), role_number(noun.dependency))
                for number, sentence in enumerate(document.sentences)
                for noun in sentence.nouns
            ]
            grids.append(build_entity_grid(len(document.sentences), mentions))
        return grids

    def _features(self, texts: Sequence[str | Document | LinkedDocument], needs: Sequence[Material]) -> Features:
        parsed = self.parser.parse([text for text in texts if isinstance(text, str)])
        read = [next(parsed) if isinstance(text, str) else text for text in texts]
        documents = [one.document if isinstance(one, LinkedDocument) else one for one in read]
        plain = [document.text for document in documents]
        (counts, tallies), encoded = self.structure(read), self.encode(plain)
        tallies = np.column_stack([tallies, encoded.tokens, encoded.cut])
        material: dict[Material, tuple[Any, ...]] = {
            name: tuple(self.grids(plain) if name == "grid" else self.sequences(documents, name))
            for name in needs
            if name != "reading"
        }
        if self.settings.reader.judges:
            material["reading"] = tuple(self.readings(documents))
        return Features(counts, encoded.vectors, tallies, self.identities(needs), self.settings, material)

    def link_document(self, document: Document) -> LinkedDocument:
        """The sentence graph of a parsed document, with links between sentences that share a window."""
        options, reach = self.settings.links, self.settings.subgraphs.window
        kept = tuple(i for i, sentence in enumerate(document.sentences) if sentence.words >= options.min_words)
        found = [linker.link(document, kept, reach=reach) for linker in self.linkers]
        figures = {"nouns": len(counted_nouns(document, kept, options))}
        for linker in self.linkers:
            figures |= linker.figures(document, kept)
        return LinkedDocument(document, Links.together(len(kept), found), kept, figures)


def _tallies(linked: LinkedDocument, subgraphs: int) -> tuple[int, ...]:
    """The figures named in OF_STRUCTURE, in their order."""
    sentences, text = linked.document.sentences, linked.document.text
    words = _WORD.findall(text)
    return (
        len(sentences),
        len(sentences) - len(linked.kept),
        sum(sentence.words for sentence in sentences),
        linked.figures["nouns"],
        linked.figures.get("unknown_nouns", 0),
        len(linked.links.pairs()[0]),
        subgraphs,
        sum(map(len, words)),
        len({word.lower() for word in words}),
        sum(1 for part in _BLANK_LINE.split(text) if part.strip()),
        int(looks_english(text)),
    )


# Pretrained parts are large and never change, so models in one process share them.
@lru_cache(maxsize=4)
def _parser(settings: ParserSettings, dependencies: bool = False) -> Parser:
    kind = StanzaParser if settings.kind == "stanza" else SpacyParser
    return kind(settings.model, dependencies=dependencies)


_word_vectors = lru_cache(maxsize=4)(load_word_vectors)
_reader = lru_cache(maxsize=4)(load_reader)


@lru_cache(maxsize=4)
def _heads(source: str) -> Heads:
    from cohegraph.text.heads import Heads

    return Heads.load(DEFAULT_HEADS if source == "default" else Path(source))


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
