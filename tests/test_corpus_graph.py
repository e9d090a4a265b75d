"""Equations 1 to 3 on an example worked by hand."""

from __future__ import annotations

from math import log

import numpy as np
import pytest
from scipy import sparse

from cohegraph.graph.corpus_graph import build_corpus_graph, document_weights, pattern_factors

# Four documents, four patterns. Pattern 0 is in 4 documents, 1 in 2, 2 in 2, 3 in none.
COUNTS = sparse.csr_array(
    np.array(
        [
            [6, 2, 2, 0],
            [5, 5, 0, 0],
            [1, 0, 3, 0],
            [7, 0, 0, 0],
        ]
    )
)


def test_tf_idf_by_hand():
    graph = build_corpus_graph(COUNTS)
    two = log(4 / 2)
    expected = [
        [0, 2 / 10 * two, 2 / 10 * two, 0],
        [0, 5 / 10 * two, 0, 0],
        [0, 0, 3 / 4 * two, 0],
        [0, 0, 0, 0],
    ]
    np.testing.assert_allclose(graph.weights.toarray(), expected, rtol=1e-15)
    assert graph.frequency.tolist() == [4, 2, 2, 0]


def test_pmi_by_hand():
    # p(0)=1, p(1)=p(2)=1/2, p(0,1)=p(0,2)=1/2: log 1 = 0. p(1,2)=1/4 = p(1)p(2): 0 as well.
    assert build_corpus_graph(COUNTS).pmi.nnz == 0
    # Without the last document's pattern 0 and with a fifth document: N=5, df = (4, 2, 3), together (0,1): 2, (0,2): 2,
    # (1,2): 1. PMI(0,1) = log(5*2/(4*2)), PMI(0,2) = log(5*2/(4*3)) < 0, PMI(1,2) = log(5*1/(2*3)) < 0.
    counts = np.array([[6, 2, 2], [5, 5, 0], [1, 0, 3], [7, 0, 0], [0, 0, 9]])
    pmi = build_corpus_graph(sparse.csr_array(counts)).pmi.toarray()
    expected = np.zeros((3, 3))
    expected[0, 1] = expected[1, 0] = log(10 / 8)
    np.testing.assert_allclose(pmi, expected, rtol=1e-14)


def test_degrees_are_row_sums_of_the_whole_matrix():
    rng = np.random.default_rng(0)
    graph = build_corpus_graph(sparse.csr_array(rng.poisson(0.5, (30, 12))))
    block = graph.weights.toarray()
    np.testing.assert_allclose(graph.document_degrees, 1 + block.sum(axis=1))
    np.testing.assert_allclose(graph.pattern_degrees, 1 + block.sum(axis=0) + graph.pmi.toarray().sum(axis=1))
    assert np.array_equal(graph.pmi.toarray(), graph.pmi.toarray().T)


def test_strength_and_weighting():
    full, weak = build_corpus_graph(COUNTS), build_corpus_graph(COUNTS, strength=0.25)
    np.testing.assert_allclose(weak.weights.toarray(), full.weights.toarray() / 4)
    np.testing.assert_allclose(weak.document_degrees - 1, (full.document_degrees - 1) / 4)
    shares = build_corpus_graph(COUNTS, weighting="tf").weights.toarray()
    np.testing.assert_allclose(shares, COUNTS.toarray() / COUNTS.toarray().sum(axis=1, keepdims=True))
    none = build_corpus_graph(COUNTS, weighting="none")
    assert none.weights.nnz == 0
    assert (none.document_degrees == 1).all()


def test_without_edges_between_patterns():
    assert build_corpus_graph(COUNTS, pmi=False).pmi.nnz == 0


def test_an_unseen_pattern_has_no_weight_but_counts_in_the_normalisation():
    idf = pattern_factors(np.array([4, 2, 2, 0]), 4)
    weights = document_weights(sparse.csr_array([[0, 1, 0, 3]]), idf).toarray()
    np.testing.assert_allclose(weights, [[0, log(2) / 4, 0, 0]])


def test_the_released_weight_of_an_unseen_pattern_outweighs_all_else():
    idf = pattern_factors(np.array([4, 2, 2, 0]), 4, unseen="released")
    assert idf[3] == pytest.approx(log(4 / 1e-6))


def test_too_short_documents_are_isolated_or_share_a_pattern():
    counts = sparse.csr_array(np.array([[3, 1], [0, 0], [0, 0], [2, 0]]))
    isolated = build_corpus_graph(counts)
    assert isolated.document_degrees[1] == 1
    shared = build_corpus_graph(counts, too_short="pattern")
    assert shared.weights.shape == (4, 3)
    np.testing.assert_allclose(shared.weights.toarray()[:, 2], [0, log(2), log(2), 0])
