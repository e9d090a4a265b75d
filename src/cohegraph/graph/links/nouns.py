"""Algorithm 1 as a linker: sentences link through their most similar nouns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from cohegraph.graph.links.linker import Linker, Parts
from cohegraph.graph.links.links import FloatArray, Links
from cohegraph.graph.links.noun_links import NounTable, link_nouns, similarities
from cohegraph.settings import LinkSettings
from cohegraph.text.document import Document, Noun


@dataclass(frozen=True)
class _Nouns:
    """The nouns of a document that take part, their table, and how many of them have no vector."""

    nouns: tuple[Noun, ...]
    table: NounTable
    unknown: int


class NounLinker(Linker):
    """The paper's links. Their threshold is ``links.delta``; links by spelling are a kind of their own."""

    name = "nouns"
    about = "the paper's links: two sentences have nouns that mean the same, or nearly the same"
    parts_needed = ("vectors",)

    def __init__(self, settings: LinkSettings, parts: Parts) -> None:
        super().__init__(settings, parts)
        self._last: tuple[Document, tuple[int, ...], _Nouns] | None = None

    @classmethod
    def kinds_of(cls, settings: LinkSettings) -> tuple[str, ...]:
        """Nouns, and spelling where it counts."""
        return ("nouns",) if settings.spelling is None else ("nouns", "spelling")

    def strengths(self, document: Document, sources: Sequence[int], targets: Sequence[int]) -> FloatArray:
        """The best cosine of two nouns."""
        everything = range(len(document.sentences))
        rows = [self.related(document, everything, source)[list(targets)] for source in sources]
        return np.stack(rows) if rows else np.zeros((0, len(targets)), dtype=np.float32)

    def figures(self, document: Document, kept: Sequence[int]) -> Mapping[str, int]:
        """Nouns without a vector."""
        return {"unknown_nouns": self._nouns(document, kept).unknown}

    def link(
        self, document: Document, kept: Sequence[int], *, reach: int | None = None, threshold: float | None = None
    ) -> Links:
        """See `Linker`; with another threshold, spelling plays no part."""
        found, options = self._nouns(document, kept), self.settings
        if threshold is None:
            made = link_nouns(
                found.table, options.delta, inclusive=options.inclusive, spelling=options.spelling, reach=reach
            )
        else:
            made = link_nouns(found.table, threshold, reach=reach)
        spans = np.array([(noun.start, noun.end) for noun in found.nouns], dtype=np.int64).reshape(-1, 2)
        return Links(
            made.size,
            self.kinds,
            made.source,
            made.target,
            made.by_spelling.astype(np.int64),
            made.similarity,
            np.hstack([spans[made.source_noun], spans[made.target_noun]]),
        )

    def related(self, document: Document, kept: Sequence[int], sentence: int) -> FloatArray:
        """The best cosine of a sentence's nouns with those of each other one."""
        return similarities(self._nouns(document, kept).table, sentence)

    def _nouns(self, document: Document, kept: Sequence[int]) -> _Nouns:
        """The nouns of a document; those of the last one are kept, since it is often asked about again."""
        last = self._last
        if last is None or last[0] is not document or last[1] != tuple(kept):
            # Read and replaced as a whole: other threads may ask about other documents at the same time.
            self._last = last = (document, tuple(kept), self._read(document, kept))
        return last[2]

    def _read(self, document: Document, kept: Sequence[int]) -> _Nouns:
        nouns = counted_nouns(document, kept, self.settings)
        forms = [noun.lemma if self.settings.noun_form == "lemma" else noun.text for _, noun in nouns]
        vectors = self.parts.word_vectors
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
        return _Nouns(tuple(noun for _, noun in nouns), table, sum(row < 0 for row in rows))


def counted_nouns(document: Document, kept: Sequence[int], settings: LinkSettings) -> list[tuple[int, Noun]]:
    """The nouns that count, each with its node in the graph."""
    return [
        (node, noun)
        for node, sentence in enumerate(kept)
        for noun in document.sentences[sentence].nouns
        if settings.proper_nouns or noun.tag == "NOUN"
    ]
