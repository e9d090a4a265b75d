"""The network: two routes to the same logits, and learning."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from material import CLASSES, DIMENSIONS, learnable
from scipy import sparse
from scipy.special import softmax

from cohegraph.errors import CohegraphError
from cohegraph.graph.corpus_graph import build_corpus_graph, document_weights, pattern_factors
from cohegraph.learning.objectives import Levels, Targets
from cohegraph.settings import TrainingSettings
from cohegraph.systems.gcn.full_graph import full_graph_logits
from cohegraph.systems.gcn.network import GCN, TrainingGraph
from cohegraph.systems.gcn.training import HeldOut, Task, Trainer

HIDDEN = 5
train = Trainer().train


def network(dtype=torch.float64, dimensions=DIMENSIONS):
    generator = torch.Generator().manual_seed(4)
    return GCN(dimensions, HIDDEN, CLASSES, init="glorot", generator=generator, dtype=dtype)


def dense_adjacency(graph):
    n, m = graph.weights.shape
    matrix = np.eye(n + m)
    matrix[:n, n:] += graph.weights.toarray()
    matrix[n:, :n] += graph.weights.toarray().T
    matrix[n:, n:] += graph.pmi.toarray()
    scale = 1 / np.sqrt(matrix.sum(axis=1))
    return scale[:, None] * matrix * scale


@st.composite
def corpora(draw):
    """Counts of training and new documents: with unseen patterns, empty documents, patterns in every document."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, m, new = draw(st.integers(1, 25)), draw(st.integers(1, 12)), draw(st.integers(1, 4))
    counts = rng.poisson(draw(st.sampled_from([0.2, 1.0, 4.0])), (n + new, m))
    counts[:n, rng.random(m) < 0.3] = 0
    counts[rng.random(n + new) < 0.2] = 0
    return counts[:n], counts[n:], rng.normal(size=(n, DIMENSIONS)), rng.normal(size=(new, DIMENSIONS))


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 1e-5)])
@settings(max_examples=80, deadline=None)
@given(
    corpus=corpora(),
    pmi=st.booleans(),
    unseen=st.sampled_from(["ignore", "released"]),
    too_short=st.sampled_from(["isolated", "pattern"]),
    weighting=st.sampled_from(["tfidf", "tf", "none"]),
    strength=st.sampled_from([0.1, 1.0, 3.0]),
)
def test_closed_form_equals_the_full_renormalised_graph(
    dtype, tolerance, corpus, pmi, unseen, too_short, weighting, strength
):
    counts, new_counts, vectors, new_vectors = corpus
    graph = build_corpus_graph(
        sparse.csr_array(counts), weighting=weighting, strength=strength, pmi=pmi, unseen=unseen, too_short=too_short
    )
    trained = network(dtype).trained(torch.from_numpy(vectors).to(dtype), TrainingGraph(graph, dtype))
    factors = pattern_factors(graph.frequency, len(counts), weighting, unseen, strength)
    weights = document_weights(sparse.csr_array(new_counts), factors, too_short)
    closed = trained.outputs(weights, new_vectors)
    np.testing.assert_allclose(
        trained.outputs_together(weights, new_vectors), closed, rtol=0, atol=tolerance * max(1, np.abs(closed).max())
    )
    w0, w1 = trained.w0, trained.w1
    for row in range(len(new_counts)):
        full = full_graph_logits(graph, vectors.astype(w0.dtype), weights[[row]], new_vectors[row], w0, w1)
        np.testing.assert_allclose(closed[row], full, rtol=0, atol=tolerance * max(1, np.abs(full).max()))


def example_graph(documents=20, patterns=9):
    rng = np.random.default_rng(5)
    graph = build_corpus_graph(sparse.csr_array(rng.poisson(0.6, (documents, patterns))))
    return graph, rng.normal(size=(documents, DIMENSIONS))


def test_forward_pass_and_gradients_equal_those_of_the_dense_matrix():
    graph, vectors = example_graph()
    gcn = network()
    inputs = torch.from_numpy(vectors)
    sparse_logits = gcn(inputs, TrainingGraph(graph, torch.float64))
    sparse_gradients = torch.autograd.grad(sparse_logits.square().sum(), gcn.parameters())

    normalised = torch.from_numpy(dense_adjacency(graph))
    features = torch.zeros(len(normalised), DIMENSIONS, dtype=torch.float64)
    features[: len(vectors)] = inputs
    hidden = torch.relu(normalised @ features @ gcn.w0)
    dense_logits = (normalised @ hidden @ gcn.w1)[: len(vectors)]
    dense_gradients = torch.autograd.grad(dense_logits.square().sum(), gcn.parameters())
    torch.testing.assert_close(sparse_logits, dense_logits, rtol=0, atol=1e-12)
    for ours, dense in zip(sparse_gradients, dense_gradients, strict=True):
        torch.testing.assert_close(ours, dense, rtol=0, atol=1e-11)


def test_without_edges_it_is_a_two_layer_network():
    vectors = torch.randn(6, DIMENSIONS, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    graph = build_corpus_graph(sparse.csr_array((6, 4), dtype=np.int64))
    gcn = network()
    expected = torch.relu(vectors @ gcn.w0) @ gcn.w1
    torch.testing.assert_close(gcn(vectors, TrainingGraph(graph, torch.float64)), expected)


def test_edges_between_patterns_reach_the_logits_through_degrees_alone():
    counts = sparse.csr_array(np.random.default_rng(1).poisson(0.6, (20, 9)))
    with_pmi, without = build_corpus_graph(counts), build_corpus_graph(counts, pmi=False)
    assert with_pmi.pmi.nnz > 0
    vectors = torch.randn(20, DIMENSIONS, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    blocks = TrainingGraph(without, torch.float64)
    blocks.pattern_degrees = torch.from_numpy(with_pmi.pattern_degrees)
    gcn = network()
    torch.testing.assert_close(gcn(vectors, blocks), gcn(vectors, TrainingGraph(with_pmi, torch.float64)))


def test_dropout_keeps_the_mean_and_leaves_the_global_random_state_alone():
    graph, vectors = example_graph()
    blocks, gcn, inputs = TrainingGraph(graph, torch.float64), network(), torch.from_numpy(vectors)
    state = torch.random.get_rng_state()
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        draws = torch.stack([gcn(inputs, blocks, dropout=0.5, generator=generator) for _ in range(3000)])
        assert draws.std(dim=0).max() > 0.05
        torch.testing.assert_close(draws.mean(dim=0), gcn(inputs, blocks), rtol=0, atol=0.06)
    assert torch.equal(state, torch.random.get_rng_state())


def evaluate(network, documents):
    return Levels(CLASSES).quality(network.outputs(documents.weights, documents.vectors), documents.targets)


def fitted(dev=False, on_epoch=None, edges=True, **changes):
    counts, vectors, classes = learnable()
    graph = build_corpus_graph(counts if edges else sparse.csr_array(counts.shape, dtype=np.int64))
    dev_counts, dev_vectors, dev_classes = learnable(seed=1)
    idf = pattern_factors(graph.frequency, len(classes))
    held_out = HeldOut(document_weights(dev_counts, idf), dev_vectors, Targets(dev_classes))
    options = TrainingSettings(**({"hidden": 16, "epochs": 60} | changes))
    dev = held_out if dev else None
    return train(Task(graph, vectors, Targets(classes), Levels(CLASSES), options, dev, on_epoch)), held_out


def test_shared_patterns_help_with_new_documents():
    options = {"learning_rate": 0.05, "epochs": 150, "dropout": 0.2}
    connected, held_out = fitted(**options)
    alone, held_out_alone = fitted(edges=False, **options)
    assert evaluate(connected.network, held_out)[0] > 0.9
    assert evaluate(alone.network, held_out_alone)[0] < 0.7


def test_a_seed_gives_the_same_weights_and_another_seed_others():
    first, second, other = fitted()[0], fitted()[0], fitted(seed=1)[0]
    assert np.array_equal(first.network.w0, second.network.w0)
    assert not np.array_equal(first.network.w0, other.network.w0)


def test_the_epoch_is_the_best_one_on_dev():
    seen = {}
    result, held_out = fitted(dev=True, on_epoch=lambda number, gcn: seen.update({number: gcn}), learning_rate=0.1)
    best = max(seen, key=lambda number: (evaluate(seen[number], held_out)[0], -evaluate(seen[number], held_out)[1]))
    assert result.chosen_epoch == best
    assert np.array_equal(result.network.w0, seen[best].w0)


def test_training_that_diverges_says_so():
    counts, vectors, classes = learnable()
    task = Task(build_corpus_graph(counts), np.inf * vectors, Targets(classes), Levels(CLASSES), TrainingSettings())
    with pytest.raises(CohegraphError) as caught:
        train(task)
    assert caught.value.code == "diverged"


def test_patience_stops_early():
    result, _ = fitted(dev=True, patience=3, epochs=500, learning_rate=0.1)
    assert len(result.epochs) < 500
    assert len(result.epochs) == result.chosen_epoch + 3


def test_weight_decay_shrinks_and_clipping_limits_the_first_step():
    assert np.linalg.norm(fitted(weight_decay=0.1)[0].network.w0) < np.linalg.norm(fitted()[0].network.w0)
    assert not np.array_equal(fitted(clip=1e-3)[0].network.w0, fitted()[0].network.w0)


def test_balanced_class_weights_lift_the_rare_class():
    counts, vectors, classes = learnable()
    kept = np.flatnonzero((classes != 0) | (np.arange(len(classes)) % 6 == 0))
    graph = build_corpus_graph(counts[kept])
    shares = {}
    for choice in ("none", "balanced"):
        options = TrainingSettings(hidden=16, epochs=8, class_weights=choice)
        gcn = train(Task(graph, vectors[kept], Targets(classes[kept]), Levels(CLASSES), options)).network
        logits = gcn.outputs(document_weights(counts, pattern_factors(graph.frequency, len(kept))), vectors)
        shares[choice] = softmax(logits, axis=1)[:, 0].mean()
    assert shares["balanced"] > shares["none"] + 0.02
