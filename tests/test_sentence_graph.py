"""Algorithm 1 against a plain transcription, and the reasons behind each link."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import noun_tables

from cohegraph.graph.links import noun_links
from cohegraph.graph.links.noun_links import NounTable, link_nouns
from cohegraph.graph.links.spelling import spelling_similarity


def cosine(table, a, b):
    if table.word[a] == table.word[b]:
        return 1.0
    return float(table.vectors[table.word[a]] @ table.vectors[table.word[b]])


def algorithm_1(table, delta, inclusive=False, spelling=None):
    """Algorithm 1, line by line, with the released code's second test where spelling is given."""
    graph = np.zeros((table.size, table.size), dtype=bool)
    nouns = [np.flatnonzero(table.sentence == sentence) for sentence in range(table.size)]
    for u in range(table.size - 1):
        for v in range(u + 1, table.size):
            scores = [cosine(table, a, b) for a in nouns[u] for b in nouns[v]]
            best = max(scores, default=-2)
            graph[u, v] = best >= delta if inclusive else best > delta
            if spelling is not None and not graph[u, v]:
                words = [(table.words[table.word[a]], table.words[table.word[b]]) for a in nouns[u] for b in nouns[v]]
                graph[u, v] = any(spelling_similarity([x], [y])[0, 0] >= spelling for x, y in words)
    return graph


@settings(max_examples=150, deadline=None)
@given(
    table=noun_tables(),
    delta=st.integers(-99, 99).map(lambda percent: percent / 100),
    inclusive=st.booleans(),
    spelling=st.sampled_from([None, 0.75, 0.3]),
)
def test_links_are_those_of_algorithm_1(table, delta, inclusive, spelling):
    graph = link_nouns(table, delta, inclusive=inclusive, spelling=spelling)
    assert np.array_equal(graph.adjacency(), algorithm_1(table, delta, inclusive, spelling))


@settings(max_examples=80, deadline=None)
@given(table=noun_tables(), delta=st.integers(-90, 90).map(lambda percent: percent / 100))
def test_the_noun_pair_behind_a_link_is_its_most_similar_one(table, delta):
    graph = link_nouns(table, delta)
    for u, v, a, b, similarity in zip(
        graph.source, graph.target, graph.source_noun, graph.target_noun, graph.similarity, strict=True
    ):
        assert table.sentence[a] == u
        assert table.sentence[b] == v
        assert similarity == pytest.approx(cosine(table, a, b), abs=1e-6)
        others = [
            cosine(table, i, j)
            for i in np.flatnonzero(table.sentence == u)
            for j in np.flatnonzero(table.sentence == v)
        ]
        assert similarity == pytest.approx(max(others), abs=1e-6)


@settings(max_examples=50, deadline=None)
@given(table=noun_tables(), reach=st.integers(1, 8))
def test_reach_keeps_exactly_the_near_links(table, reach):
    whole, near = link_nouns(table, 0.3), link_nouns(table, 0.3, reach=reach)
    kept = whole.target - whole.source < reach
    assert np.array_equal(whole.source[kept], near.source)
    assert np.array_equal(whole.target[kept], near.target)
    assert np.array_equal(whole.similarity[kept], near.similarity)


def test_a_long_document_in_blocks_has_the_links_of_algorithm_1():
    rng = np.random.default_rng(3)
    size, words = 700, 40
    sentence = np.sort(rng.integers(0, size, 900))
    vectors = rng.normal(size=(words, 6)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    table = NounTable(size, sentence, rng.integers(0, words, 900), vectors, [f"w{i}" for i in range(words)])
    similarity = vectors @ vectors.T
    np.fill_diagonal(similarity, 1)
    related = similarity[table.word[:, None], table.word] > 0.7
    expected = np.zeros((size, size), dtype=bool)
    a, b = np.nonzero(related & (sentence[:, None] < sentence))
    expected[sentence[a], sentence[b]] = True
    assert np.array_equal(link_nouns(table, 0.7).adjacency(), expected)
    near = np.triu(expected) & ~np.triu(expected, 8)
    assert np.array_equal(link_nouns(table, 0.7, reach=8).adjacency(), near)


@settings(max_examples=60, deadline=None)
@given(table=noun_tables(), spelling=st.sampled_from([None, 0.3]), reach=st.sampled_from([None, 3]))
def test_blocks_of_any_size_give_the_same_graph(table, spelling, reach):
    whole = link_nouns(table, 0.2, spelling=spelling, reach=reach)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(noun_links, "_MOST_ROWS", 2)
        patch.setattr(noun_links, "_MOST_COLUMNS", 3)
        patch.setattr(noun_links, "_MOST_SENTENCES_AT_ONCE", 4)
        tiled = link_nouns(table, 0.2, spelling=spelling, reach=reach)
    assert np.array_equal(whole.adjacency(), tiled.adjacency())
    np.testing.assert_allclose(whole.similarity, tiled.similarity, atol=1e-6)
    assert np.array_equal(whole.by_spelling, tiled.by_spelling)


def test_a_word_without_a_vector_is_similar_to_itself_alone():
    vectors = np.array([[0, 0], [0, 0], [1, 0]], dtype=np.float32)
    table = NounTable(3, np.array([0, 1, 2]), np.array([0, 1, 0]), vectors, ["zorp", "blick", "dog"])
    graph = link_nouns(table, 0.1)
    assert list(zip(graph.source, graph.target, graph.similarity, strict=True)) == [(0, 2, 1.0)]


def test_equality_links_only_if_inclusive():
    vectors = np.array([[1, 0], [0.5, 0.75**0.5]], dtype=np.float32)
    table = NounTable(2, np.array([0, 1]), np.array([0, 1]), vectors, ["a", "b"])
    assert len(link_nouns(table, 0.5)) == 0
    assert len(link_nouns(table, 0.5, inclusive=True)) == 1


def test_a_link_by_spelling_says_so():
    table = NounTable(
        2, np.array([0, 1]), np.array([0, 1]), np.zeros((2, 2), dtype=np.float32), ["Springfield", "Springfields"]
    )
    graph = link_nouns(table, 0.65, spelling=0.75)
    assert graph.by_spelling.tolist() == [True]
    assert graph.similarity[0] == spelling_similarity(["Springfield"], ["Springfields"])[0, 0]


def test_spelling_similarity_by_hand():
    # "bridges" against "bridge": 6 of 7 letters, 5 of 6 pairs, 4 of 5 triples, 3 of 4 quadruples; no brevity penalty.
    expected = (6 / 7) ** 0.1 * (5 / 6) ** 0.2 * (4 / 5) ** 0.3 * (3 / 4) ** 0.4
    assert spelling_similarity(["bridge"], ["bridges"])[0, 0] == pytest.approx(expected, abs=1e-6)
    # The other way round all n-grams match, and the candidate is shorter: exp(1 - 7/6).
    assert spelling_similarity(["bridges"], ["bridge"])[0, 0] == pytest.approx(np.exp(1 - 7 / 6), abs=1e-6)
    # "aaaa" repeats what "aaab" has less often: 3/4, 2/3, 1/2, and no quadruple.
    assert spelling_similarity(["aaab"], ["aaaa"])[0, 0] == 0
    assert spelling_similarity(["cat"], ["cat"])[0, 0] == 0
    assert spelling_similarity(["", "ab"], ["", "cd"]).tolist() == [[0, 0], [0, 0]]
