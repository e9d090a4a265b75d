"""Counting over batches against plain transcriptions."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import graph_from_links, sentence_graphs

from cohegraph.graph.catalogue import catalogue, pairs
from cohegraph.graph.subgraphs import GraphBatch, count_patterns


def count(graphs, cat, window, subsets="windows"):
    return count_patterns(GraphBatch.of(graphs), cat, window, subsets)


def pattern_of(adjacency, nodes, table):
    mask = sum(1 << bit for bit, (a, b) in enumerate(pairs(len(nodes))) if adjacency[nodes[a], nodes[b]])
    return table[mask]


def algorithm_2(graph, cat, w):
    """Algorithm 2, line by line."""
    freq = np.zeros(len(cat), dtype=int)
    adjacency = graph.adjacency()
    k, n = cat.k, graph.size
    nodes = list(range(n))
    i = 0
    while i < (n - k + 1):
        w_n = nodes[i : i + w]
        for k_nodes in combinations(w_n, k):
            freq[pattern_of(adjacency, k_nodes, cat.table)] += 1
        i += w - k + 1
    return freq


def every_subset(graph, cat, w):
    freq = np.zeros(len(cat), dtype=int)
    adjacency = graph.adjacency()
    for nodes in combinations(range(graph.size), cat.k):
        if nodes[-1] - nodes[0] < w:
            freq[pattern_of(adjacency, nodes, cat.table)] += 1
    return freq


@pytest.mark.parametrize(("subsets", "plain"), [("windows", algorithm_2), ("all", every_subset)])
@settings(max_examples=60, deadline=None)
@given(
    graphs=st.lists(sentence_graphs(), max_size=5),
    k=st.sampled_from([3, 4, 5]),
    more=st.integers(0, 5),
    kind=st.sampled_from(["isomorphic", "ordered"]),
)
def test_counts_equal_the_plain_way(subsets, plain, graphs, k, more, kind):
    cat = catalogue(k, kind)
    counts = count(graphs, cat, k + more, subsets).toarray()
    assert counts.shape == (len(graphs), len(cat))
    for row, graph in zip(counts, graphs, strict=True):
        assert np.array_equal(row, plain(graph, cat, k + more))


@settings(max_examples=10, deadline=None)
@given(graph=sentence_graphs(most=12))
def test_counts_equal_the_plain_way_for_six_sentences(graph):
    cat = catalogue(6)
    assert np.array_equal(count([graph], cat, 8).toarray()[0], algorithm_2(graph, cat, 8))


def test_a_batch_over_many_chunks_equals_each_graph_alone():
    rng = np.random.default_rng(1)
    graphs = []
    for size in rng.integers(0, 60, 700).tolist():
        links = [(u, u + d) for u in range(size) for d in range(1, 8) if u + d < size and rng.random() < 0.3]
        graphs.append(graph_from_links(size, links))
    for k, window in [(4, 15), (6, 8)]:
        cat = catalogue(k)
        together = count(graphs, cat, window).toarray()
        for row in range(0, 700, 41):
            assert np.array_equal(together[row], count([graphs[row]], cat, window).toarray()[0])


def test_a_chain_by_hand():
    # Four sentences, each linked to the next: the only subset is the chain itself.
    cat = catalogue(4)
    chain = count([graph_from_links(4, [(0, 1), (1, 2), (2, 3)])], cat, 8)
    assert {cat.patterns[j].name: n for j, n in zip(chain.indices, chain.data, strict=True)} == {"4:12.23.34": 1}


def test_windows_skip_what_lies_across_them():
    # With w = 8 and k = 4 the second window starts at the sixth sentence: 70 + 1 subsets, of 105 in reach.
    graph = graph_from_links(9, [])
    assert count([graph], catalogue(4), 8, "windows").sum() == 70 + 1
    assert count([graph], catalogue(4), 8, "all").sum() == 105


def test_fewer_than_k_sentences_have_no_subset():
    counts = count([graph_from_links(3, [(0, 1)]), graph_from_links(0, [])], catalogue(4), 8)
    assert counts.nnz == 0
    assert counts.shape == (2, 31)
    assert count([], catalogue(4), 8).shape == (0, 31)
