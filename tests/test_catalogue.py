"""The table of patterns against exhaustive isomorphism."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pynauty
import pytest
from material import refused

from cohegraph.graph.catalogue import catalogue, pairs, pattern_columns, pattern_named


def certificate(mask: int, k: int) -> bytes:
    adjacency = {node: [b for bit, (a, b) in enumerate(pairs(k)) if a == node and mask >> bit & 1] for node in range(k)}
    return pynauty.certificate(pynauty.Graph(k, directed=True, adjacency_dict=adjacency))


@pytest.mark.parametrize(("k", "number"), [(3, 6), (4, 31), (5, 302), (6, 5984)])
def test_number_of_isomorphism_classes(k, number):
    assert len(catalogue(k)) == number


@pytest.mark.parametrize("k", [3, 4, 5])
def test_classes_are_those_of_pynauty_on_every_mask(k):
    table = catalogue(k).table
    class_of_certificate = {}
    for mask in range(len(table)):
        assert class_of_certificate.setdefault(certificate(mask, k), table[mask]) == table[mask]
    assert len(class_of_certificate) == len(catalogue(k))


def test_classes_are_those_of_pynauty_on_a_sample_for_six_sentences():
    table = catalogue(6).table
    sample = np.random.default_rng(0).choice(len(table), 3000, replace=False)
    # Neighbours under a swap are isomorphic or not by a hair; whole classes make equal pairs frequent.
    sample = np.union1d(sample, np.flatnonzero(np.isin(table, table[sample[:50]])))
    by_certificate, by_table = {}, {}
    for mask in sample.tolist():
        signature = certificate(mask, 6)
        assert by_certificate.setdefault(signature, table[mask]) == table[mask]
        assert by_table.setdefault(table[mask], signature) == signature


@pytest.mark.parametrize("k", [3, 4, 5, 6])
def test_ordered_patterns_are_the_masks(k):
    ordered = catalogue(k, "ordered")
    assert len(ordered) == 2 ** (k * (k - 1) // 2)
    assert np.array_equal(ordered.table, np.arange(len(ordered)))


@pytest.mark.parametrize("kind", ["isomorphic", "ordered"])
@pytest.mark.parametrize("k", [3, 4, 5])
def test_a_pattern_describes_itself(k, kind):
    patterns = catalogue(k, kind).patterns
    assert len({pattern.name for pattern in patterns}) == len(patterns)
    for index, pattern in enumerate(patterns):
        mask = sum(1 << pairs(k).index((a - 1, b - 1)) for a, b in pattern.edges)
        assert catalogue(k, kind).table[mask] == index
        graph = nx.DiGraph(pattern.edges)
        graph.add_nodes_from(range(1, k + 1))
        assert pattern.connected == nx.is_weakly_connected(graph)


def test_names_are_stable():
    names = [pattern.name for pattern in catalogue(3).patterns]
    assert names == ["3:-", "3:12", "3:12.13", "3:12.23", "3:13.23", "3:12.13.23"]
    assert catalogue(4, "ordered").patterns[-1].name == "o4:12.13.14.23.24.34"


@pytest.mark.parametrize("k", [2, 7])
def test_other_sizes_are_refused(k):
    with refused("bad-size"):
        catalogue(k)


def test_patterns_of_one_kind_of_links_are_found_by_name():
    for pattern in pattern_columns(3, "ordered", ("nouns", "capitals")):
        assert pattern_named(pattern.name) == pattern
