"""Entity grid and entity graph, worked by hand."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cohegraph.features import Featurizer
from cohegraph.graph.entity_grid import ROLES, build_entity_grid, role_number
from cohegraph.presets import preset
from cohegraph.systems.entity_graph import entity_graph_score

X, O, S = (ROLES.index(role) for role in "XOS")  # noqa: E741
# Three sentences: Ann (S, -, O) named three times, Bob (-, X, -) named once.
GRID = build_entity_grid(3, [(0, "ann", S), (0, "ann", X), (1, "bob", X), (2, "ann", O)])


def code(*roles: str) -> int:
    number = 0
    for role in roles:
        number = len(ROLES) * number + ROLES.index(role)
    return number


def test_the_highest_role_stands_in_the_cell():
    cells = list(zip(GRID.sentence, GRID.entity, GRID.role, GRID.mentions, strict=True))
    assert cells == [(0, 0, S, 2), (1, 1, X, 1), (2, 0, O, 1)]


def test_transitions_of_two_sentences():
    shares = GRID.transitions(2, 0)
    # Ann: S-, -O. Bob: -X, X-. Four windows.
    expected = np.zeros(16)
    for pair in (("S", "-"), ("-", "O"), ("-", "X"), ("X", "-")):
        expected[code(*pair)] = 1 / 4
    assert np.allclose(shares, expected)


def test_salient_entities_are_counted_apart():
    others, salient = GRID.transitions(2, 2).reshape(2, 16)
    assert others[code("-", "X")] == others[code("X", "-")] == 1 / 2
    assert salient[code("S", "-")] == salient[code("-", "O")] == 1 / 2
    assert others.sum() == salient.sum() == 1


def test_transitions_of_three_sentences():
    shares = GRID.transitions(3, 0)
    assert shares[code("S", "-", "O")] == shares[code("-", "X", "-")] == 1 / 2


def test_a_document_shorter_than_a_transition_has_none():
    assert not GRID.transitions(4, 2).any()
    assert not build_entity_grid(0, []).transitions(2, 0).any()
    assert not build_entity_grid(5, []).transitions(2, 0).any()


mentions = st.lists(st.tuples(st.integers(0, 5), st.sampled_from("abcd"), st.sampled_from([X, O, S])), max_size=20)


@given(mentions, st.integers(2, 4), st.integers(0, 3))
def test_transitions_equal_those_of_the_whole_grid(found, length, salient):
    grid = build_entity_grid(6, found)
    whole = np.zeros((6, grid.entities), dtype=int)
    whole[grid.sentence, grid.entity] = grid.role
    named = np.bincount(grid.entity, weights=grid.mentions, minlength=grid.entities)
    expected = []
    for half in [named < salient, named >= salient] if salient else [named >= 0]:
        columns = whole[:, half]
        windows = [tuple(columns[row : row + length, c]) for c in range(columns.shape[1]) for row in range(7 - length)]
        kinds = product(range(len(ROLES)), repeat=length)
        expected += [windows.count(kind) / max(1, len(windows)) for kind in kinds]
    assert np.allclose(grid.transitions(length, salient), expected)


def test_roles():
    assert [role_number(name) for name in ("nsubj", "csubj", "agent", "obl:agent")] == [S] * 4
    assert [role_number(name) for name in ("dobj", "obj", "iobj", "dative", "nsubjpass", "nsubj:pass")] == [O] * 6
    assert [role_number(name) for name in ("pobj", "nmod", "", "conj")] == [X] * 4


# Sentence 0 has a (S) and b (X), 1 has a (O), 2 has a (X) and b (O): a is in all, b in the first and the last.
GRAPH = build_entity_grid(3, [(0, "a", S), (0, "b", X), (1, "a", O), (2, "a", X), (2, "b", O)])


@pytest.mark.parametrize(
    ("projection", "discounted", "edges"),
    [
        ("unweighted", False, 1 + 1 + 1),
        ("unweighted", True, 1 + 1 / 2 + 1),
        ("shared", False, 1 + 2 + 1),
        ("shared", True, 1 + 2 / 2 + 1),
        ("roles", False, 3 * 2 + (3 * 1 + 1 * 2) + 2 * 1),
        ("roles", True, 3 * 2 + (3 * 1 + 1 * 2) / 2 + 2 * 1),
    ],
)
def test_mean_out_degree_of_each_projection(projection, discounted, edges):
    assert entity_graph_score(GRAPH, projection, discounted=discounted) == pytest.approx(edges / 3)


def test_without_sentences_or_entities_the_score_is_nought():
    assert entity_graph_score(build_entity_grid(0, [])) == 0
    assert entity_graph_score(build_entity_grid(4, [])) == 0


def test_many_sentences_are_compared_in_blocks():
    """Every sentence names the same entity: sum over distances d of (n - d) / d."""
    sentences = 600
    grid = build_entity_grid(sentences, [(row, "a", X) for row in range(sentences)])
    expected = sum((sentences - d) / d for d in range(1, sentences)) / sentences
    assert entity_graph_score(grid, "shared") == pytest.approx(expected)


def test_order_matters_only_with_a_discount():
    moved = build_entity_grid(3, [(1, "a", S), (1, "b", X), (0, "a", O), (2, "a", X), (2, "b", O)])
    assert entity_graph_score(GRAPH, discounted=False) == entity_graph_score(moved, discounted=False)
    assert entity_graph_score(GRAPH) != entity_graph_score(moved)


def test_roles_in_a_passive_are_those_of_the_active():
    grids = Featurizer(preset()).grids(["The dog chased the cat.", "The cat was chased by the dog."])
    assert [grid.role.tolist() for grid in grids] == [[O, S], [O, S]]


def test_grids_of_texts():
    texts = ["The dog chased a cat. The cat saw the dog in the garden.", "", "Run!"]
    grid, empty, without_nouns = Featurizer(preset()).grids(texts)
    roles = {(s, e): r for s, e, r in zip(grid.sentence, grid.entity, grid.role, strict=True)}
    cat, dog, garden = 0, 1, 2
    assert roles == {(0, cat): O, (0, dog): S, (1, cat): S, (1, dog): O, (1, garden): X}
    assert (empty.sentences, empty.entities) == (0, 0)
    assert (without_nouns.sentences, without_nouns.entities) == (1, 0)
