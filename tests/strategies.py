"""Hypothesis strategies, in one place."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from cohegraph.graph.links.links import Links
from cohegraph.graph.links.noun_links import NounTable


def graph_from_links(size: int, links: list[tuple[int, int]]) -> Links:
    """A sentence graph with these links; the words behind them play no part in counting."""
    links = sorted(set(links))
    source = np.array([u for u, _ in links], dtype=np.int64)
    target = np.array([v for _, v in links], dtype=np.int64)
    kind, strength = np.zeros(len(links), dtype=np.int64), np.ones(len(links), dtype=np.float32)
    return Links(size, ("made up",), source, target, kind, strength, np.full((len(links), 4), -1))


@st.composite
def sentence_graphs(draw: st.DrawFn, most: int = 20) -> Links:
    size = draw(st.integers(0, most))
    pairs = [(u, v) for u in range(size) for v in range(u + 1, size)]
    links = draw(st.lists(st.sampled_from(pairs), max_size=len(pairs))) if pairs else []
    return graph_from_links(size, links)


@st.composite
def noun_tables(draw: st.DrawFn, most_sentences: int = 8, most_nouns: int = 20) -> NounTable:
    size = draw(st.integers(0, most_sentences))
    words = ["cat", "cats", "catalogue", "tiger", "Zürich", "bridge", "bridges", "x"]
    number = draw(st.integers(0, most_nouns)) if size else 0
    sentence = sorted(draw(st.lists(st.integers(0, max(0, size - 1)), min_size=number, max_size=number)))
    word = draw(st.lists(st.integers(0, len(words) - 1), min_size=number, max_size=number))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    vectors = rng.normal(size=(len(words), 3)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    unknown = draw(st.sets(st.integers(0, len(words) - 1)))
    vectors[sorted(unknown)] = 0
    return NounTable(size, np.array(sentence, dtype=np.int64), np.array(word, dtype=np.int64), vectors, words)
