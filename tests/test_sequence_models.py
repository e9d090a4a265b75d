"""Sequence models: each keeps the property that defines it, on examples small enough to work by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from material import hinting_sequence, path, permuted, sequence
from scipy import sparse
from torch import nn

from cohegraph.features import TALLIES, Features
from cohegraph.graph.catalogue import catalogue
from cohegraph.graph.corpus_graph import build_corpus_graph, document_weights, pattern_factors
from cohegraph.learning.objectives import Levels, Targets
from cohegraph.settings import Settings
from cohegraph.systems import pieces
from cohegraph.systems.dong_2017 import Attention
from cohegraph.systems.jeon_strube_2020_centering import DEEPEST, depths, parents, related
from cohegraph.systems.mesgar_strube_2018 import most_alike
from cohegraph.systems.moon_2019 import LightweightConvolution, neighbours
from cohegraph.systems.neighbour_similarity import neighbour_similarity
from cohegraph.systems.neural import MOST_SENTENCES, Batch, SequenceModel
from cohegraph.systems.pieces import Recurrent, padded
from cohegraph.systems.registry import SYSTEMS, system_named
from cohegraph.systems.sgc import SimpleGraphConvolution, smoothed_in_graph
from cohegraph.systems.system import Graded, Lesson

SEQUENCE_MODELS = [name for name, system in SYSTEMS.items() if issubclass(system, SequenceModel)]
WIDTH, LEVELS = 10, 2


def network(name, **changes):
    torch.manual_seed(1)
    system = system_named(name).of(Settings()).changed({"hidden": 16, "dropout": 0.0, **changes})
    return system.network(WIDTH, LEVELS).eval()


def documents(sequences) -> Features:
    """Features with these token vectors and nothing else of interest."""
    size = len(sequences)
    counts = sparse.csr_array((size, len(catalogue(4))), dtype=np.int64)
    tallies = np.ones((size, len(TALLIES)), dtype=np.int64)
    material = {"states": tuple(sequences), "words": tuple(sequences)}
    return Features(counts, np.ones((size, 4), dtype=np.float32), tallies, {}, None, material)


def random_sequences(count=6, seed=0):
    generator = np.random.default_rng(seed)
    return [hinting_sequence(generator, int(generator.integers(0, 3))) for _ in range(count)]


# Pieces


def test_pieces_by_hand():
    items, lengths = torch.tensor([[1.0], [3.0], [5.0]]), torch.tensor([2, 1])
    assert pieces.sums(items, lengths).tolist() == [[4], [5]]
    assert pieces.means(items, lengths).tolist() == [[2], [5]]
    weights = pieces.softmax(torch.tensor([0.0, float(np.log(3.0)), 100.0]), lengths)
    assert torch.allclose(weights, torch.tensor([0.25, 0.75, 1.0]))
    rows, real = padded(items, lengths)
    assert rows[:, :, 0].tolist() == [[1, 3], [5, 0]]
    assert real.tolist() == [[True, True], [True, False]]


@pytest.mark.parametrize("both_ways", [False, True])
@pytest.mark.parametrize("pieces", [5, 100])
def test_an_lstm_over_pieces_is_one_over_each(both_ways, pieces):
    torch.manual_seed(0)
    lstm = Recurrent(3, 4, both_ways=both_ways)
    lengths = torch.randint(1, 7, (pieces,))
    items = torch.randn(int(lengths.sum()), 3)
    states, last = lstm(items, lengths), lstm.last(items, lengths)
    whole = nn.LSTM(3, 4, bidirectional=both_ways)
    for number, suffix in enumerate(("", "_reverse")[: 1 + both_ways]):
        for name, parameter in lstm.lstms[number].named_parameters():
            getattr(whole, name + suffix).data.copy_(parameter.data)
    alone = [whole(piece) for piece in torch.split(items, lengths.tolist())]
    assert torch.allclose(states, torch.cat([output for output, _ in alone]), atol=1e-6)
    assert torch.allclose(last, torch.stack([hidden.flatten() for _, (hidden, _) in alone]), atol=1e-6)


def test_a_batch():
    first = sequence([np.ones((2, 3)), np.zeros((1, 3))], [1, 1])
    empty = sequence([np.zeros((0, 3))])
    empty = replace(empty, sentences=empty.sentences[:0], paragraphs=empty.paragraphs[:0])
    batch = Batch.of([first, empty])
    assert batch.tokens.shape == (4, 3)
    assert [part.tolist() for part in (batch.sentences, batch.documents)] == [[2, 1, 1], [2, 1]]
    assert [part.tolist() for part in (batch.paragraphs, batch.paragraphs_of)] == [[1, 1, 1], [2, 1]]


def test_a_very_long_document_is_read_to_a_limit():
    long = sequence([np.ones((1, 2))] * (MOST_SENTENCES + 5), [3, MOST_SENTENCES - 3, 5])
    batch = Batch.of([long])
    assert batch.documents.tolist() == [MOST_SENTENCES]
    assert batch.paragraphs.tolist() == [3, MOST_SENTENCES - 3]
    assert len(batch.tokens) == MOST_SENTENCES


# What all of them promise


@pytest.mark.parametrize("name", SEQUENCE_MODELS)
def test_gradients_reach_every_parameter(name):
    found = network(name).train()
    found.loss(Batch.of(random_sequences(20)), Targets(np.arange(20) % LEVELS), Levels(LEVELS)).backward()
    for part, parameter in found.named_parameters():
        assert parameter.grad is not None, part
        assert parameter.grad.abs().sum() > 0, part


@pytest.mark.parametrize("name", SEQUENCE_MODELS)
def test_a_batch_gives_what_each_document_gives_alone(name):
    sequences, found = random_sequences(), network(name)
    together = found.outputs(Batch.of(sequences))
    alone = torch.cat([found.outputs(Batch.of([one])) for one in sequences])
    assert torch.allclose(together, alone, atol=1e-5)
    assert together.shape == (len(sequences), LEVELS)


@pytest.mark.parametrize("name", SEQUENCE_MODELS)
def test_the_order_of_sentences_is_read(name):
    one = random_sequences(1, seed=3)[0]
    other = permuted(one, np.arange(len(one.sentences))[::-1])
    found = network(name)
    first, second = (found.outputs(Batch.of([document])) for document in (one, other))
    assert not torch.allclose(first, second, atol=1e-6)


@pytest.mark.parametrize("name", SEQUENCE_MODELS)
def test_one_sentence_one_word_and_nothing_have_probabilities(name):
    word = sequence([np.ones((1, WIDTH))])
    empty = replace(word, vectors=word.vectors[:0], sentences=word.sentences[:0], paragraphs=word.paragraphs[:0])
    two = sequence([np.ones((2, WIDTH)), np.ones((1, WIDTH))])
    found = network(name).outputs(Batch.of([word, empty, two]))
    assert torch.isfinite(found).all()


@pytest.mark.parametrize("name", SEQUENCE_MODELS)
def test_ordered_against_shuffled_is_learnt(name):
    generator = np.random.default_rng(0)
    classes = np.arange(240) % 2
    features = documents([path(generator, bool(code)) for code in classes])
    training, dev, test = (
        Graded(features[rows], Targets(classes[rows])) for rows in np.split(np.arange(240), [160, 200])
    )
    system = (
        system_named(name).of(Settings()).changed({"hidden": 24, "learning_rate": 0.01, "epochs": 30, "patience": 10})
    )
    found = system.fit(Lesson(training, Levels(LEVELS), dev)).predict(test.features)
    assert (found.argmax(axis=1) == test.targets.values).mean() >= 0.75


def test_training_ends_when_dev_documents_gain_no_more():
    features, classes = documents(random_sequences(40)), np.arange(40) % 2
    halves = [Graded(features[rows], Targets(classes[rows])) for rows in np.split(np.arange(40), 2)]
    seen = []
    system = system_named("dong-2017").of(Settings()).changed({"epochs": 50, "patience": 2})
    fitted = system.fit(Lesson(halves[0], Levels(LEVELS), halves[1], on_epoch=lambda number, _: seen.append(number)))
    assert len(seen) == fitted.chosen["epochs"] + 2 < 50


# What each of them is


def test_cliques_see_neighbours_in_the_same_document():
    found = network("li-jurafsky-2017")
    sentences = torch.tensor([[1.0], [2.0], [3.0], [10.0]])
    rows = found.neighbourhoods(sentences, torch.tensor([3, 1]))
    assert rows.tolist() == [[0, 1, 2], [1, 2, 3], [2, 3, 0], [0, 10, 0]]


def test_cliques_are_averaged():
    one, found = random_sequences(1)[0], network("li-jurafsky-2017")
    batch = Batch.of([one])
    assert torch.allclose(found.outputs(batch).exp()[0], found(batch).softmax(dim=1).mean(dim=0))


def test_paragraphs_matter_to_parseq():
    one, found = random_sequences(1)[0], network("lai-tetreault-2018")
    joined = replace(one, paragraphs=np.array([len(one.sentences)]))
    first, second = (found.outputs(Batch.of([document])) for document in (one, joined))
    assert not torch.allclose(first, second)


def test_the_two_most_similar_states():
    document = sequence([[[1, 0], [0, 1]], [[0, 2], [1, 0]], [[1, 0]]])
    batch = Batch.of([document, sequence([[[5, 5]]])])
    first, second = most_alike(batch.tokens, batch)
    # (0, 1) of the first sentence with (0, 2) of the second; (1, 0) with (1, 0); none across documents.
    assert (first.tolist(), second.tolist()) == ([1, 3], [2, 4])


def test_the_flow_of_shared_states():
    document = sequence([[[1, 0]], [[1, 0]], [[0, 3]], [[0, 1]]])
    batch = Batch.of([document, sequence([[[1, 1]]])])
    flow, lengths = network("mesgar-strube-2018").flow(batch.tokens, batch)
    # Shared states: (1, 0), (0.5, 1.5), (0, 2).
    assert torch.allclose(flow, torch.tensor([0.5, 3.0, 0.0]) / np.sqrt(2))
    assert lengths.tolist() == [2, 1]


def test_kernels_of_the_lightweight_convolution_sum_to_one_and_are_shared():
    torch.manual_seed(0)
    layer = LightweightConvolution(4, 2, 3)
    constant = torch.ones(1, 5, 4)
    found = layer(constant)
    assert torch.allclose(found[:, 1:-1], constant[:, 1:-1])
    impulse = torch.zeros(1, 3, 4)
    impulse[0, 1] = 1
    kernels = layer(impulse)[0].T
    assert torch.allclose(kernels[0], kernels[1])
    assert torch.allclose(kernels[2], kernels[3])
    assert not torch.allclose(kernels[0], kernels[2])


def test_document_wide_patterns_see_the_order_of_inner_sentences():
    generator = np.random.default_rng(0)
    one = sequence([generator.normal(size=(2, WIDTH)) for _ in range(20)])
    order = np.concatenate([[0, 1, 2], 3 + generator.permutation(14), [17, 18, 19]])
    found = network("moon-2019", layers=2)
    nn.init.zeros_(found.relation.weight)
    first, second = (found.outputs(Batch.of([document])) for document in (one, permuted(one, order)))
    assert not torch.allclose(first, second, atol=1e-5)


def test_pairs_of_neighbours():
    first, second = neighbours(torch.tensor([3, 1, 2]))
    assert list(zip(first.tolist(), second.tolist(), strict=True)) == [(0, 1), (1, 2), (3, 3), (4, 5)]


def test_attention_sums_to_one_in_every_piece():
    torch.manual_seed(0)
    lengths = torch.tensor([3, 1, 4])
    weights = Attention(5).weights(torch.randn(8, 5), lengths)
    assert torch.allclose(pieces.sums(weights, lengths), torch.ones(3))


def test_the_convolution_of_words_stops_at_the_end_of_a_sentence():
    found = network("dong-2017")
    words, lengths = torch.randn(7, 16), torch.tensor([3, 4])
    together = found.convolved(words, lengths)
    alone = [found.words(piece.T[None])[0].T for piece in torch.split(words, lengths.tolist())]
    assert torch.allclose(together, torch.cat(alone), atol=1e-6)


def test_segments_by_hand():
    """Centres a, a, b, b, a: the second goes on with the first, b opens a segment within, the last closes it."""
    a, b, none = torch.eye(3)
    preferred = torch.stack([a, b, b, a, none])
    backward = torch.stack([none, a, b, a, b])
    # 1 beneath 0 (a goes on); 2 beneath 1 (b goes on); 3 closes 2 and 1, beneath 0; 4 finds no b open.
    assert parents(preferred, backward, 0.5) == [-1, 0, 1, 0, -1]


def test_depths():
    assert depths([-1, 0, 1, 0, -1]) == [0, 1, 2, 1, 0]
    assert depths([-1, *range(20)])[-1] == DEEPEST


def test_a_sentence_sees_its_line_in_the_tree():
    sees = related([-1, 0, 1, 0, -1])
    expected = [
        [1, 1, 1, 1, 0],
        [1, 1, 1, 0, 0],
        [1, 1, 1, 0, 0],
        [1, 0, 0, 1, 0],
        [0, 0, 0, 0, 1],
    ]
    assert sees.int().tolist() == expected


def test_guided_attention_sums_to_one_over_what_is_seen():
    found = network("jeon-strube-2020-centering")
    batch = Batch.of(random_sequences(2))
    weights = torch.rand(len(batch.tokens))
    sees, _ = found.structure(weights, batch)
    rows, _ = padded(torch.randn(len(batch.sentences), 16), batch.documents)
    mask = ~sees.repeat_interleave(found.heads, 0)
    _, attention = found.layer.self_attn(rows, rows, rows, attn_mask=mask, average_attn_weights=False)
    assert torch.allclose(attention.sum(dim=3), torch.ones(()), atol=1e-6)
    assert not attention.flatten(0, 1)[mask].any()


def test_the_course_of_reading_by_hand():
    found = network("jeon-strube-2020-incremental")
    nn.init.zeros_(found.context.weight)
    nn.init.zeros_(found.salience.weight)  # the focus is then the mean
    first = sequence([[[2, 0], [0, 0]], [[0, 1]], [[1, 0]]])
    batch = Batch.of([sequence([[[1, 1]]]), first])
    tokens = torch.zeros(5, 16)
    tokens[:, :2] = batch.tokens
    course = found.course(tokens, batch)
    # Foci (1, 0), (0, 1), (1, 0); centroids (1, 0), (1/2, 1/2), (2/3, 1/3).
    assert torch.allclose(course.distances, torch.tensor([0, 0, 1, 1 - 1 / np.sqrt(2)], dtype=torch.float32), atol=1e-6)
    assert torch.allclose(course.centroids[:, :2], torch.tensor([[1, 1], [2 / 3, 1 / 3]]))


def test_neighbour_similarity_by_hand():
    document = sequence([[[1, 0]], [[1, 0]], [[1, 0], [-1, 2]]])
    assert neighbour_similarity(document, 1) == pytest.approx(1 / 2)
    assert neighbour_similarity(document, 2) == pytest.approx(0)
    assert np.isnan(neighbour_similarity(document, 3))


def test_order_does_not_matter_to_those_that_do_not_read_it():
    sequences = random_sequences(30)
    classes = np.arange(30) % 2
    features = documents(sequences)
    turned = documents([permuted(one, np.arange(len(one.sentences))[::-1]) for one in sequences])
    for name in ("majority", "surface", "encoder", "sgc"):
        system = system_named(name).of(Settings()).fit(Lesson(Graded(features, Targets(classes)), Levels(LEVELS)))
        assert np.array_equal(system.predict(features), system.predict(turned))


# SGC


def whole_graph(counts, vectors, options):
    """The squared normalised matrix of the whole graph, times the vectors of documents and zeros for patterns."""
    graph = build_corpus_graph(counts, **options)
    matrix = sparse.block_array([[None, graph.weights], [graph.weights.T, graph.pmi]]).toarray()
    return normalised(matrix, vectors)


def normalised(matrix, vectors):
    matrix = matrix + np.eye(len(matrix))
    degrees = matrix.sum(axis=1)
    matrix = matrix / np.sqrt(np.outer(degrees, degrees))
    inputs = np.zeros((len(matrix), vectors.shape[1]))
    inputs[: len(vectors)] = vectors
    return (matrix @ matrix @ inputs)[: len(vectors)]


@pytest.mark.parametrize("pmi", [False, True])
def test_smoothing_equals_the_whole_graph(pmi):
    generator = np.random.default_rng(0)
    counts = sparse.csr_array(generator.poisson(0.4, (12, 31)))
    vectors = generator.normal(size=(12, 5))
    graph = build_corpus_graph(counts, pmi=pmi)
    assert np.allclose(smoothed_in_graph(graph, vectors)[0], whole_graph(counts, vectors, {"pmi": pmi}), atol=1e-12)


def test_a_new_document_is_smoothed_as_if_it_were_added_to_the_graph():
    generator = np.random.default_rng(1)
    counts = generator.poisson(0.4, (13, 31))
    vectors = generator.normal(size=(13, 5)).astype(np.float32)
    old, new = sparse.csr_array(counts[:12]), sparse.csr_array(counts[12:])
    graph = build_corpus_graph(old)
    weights = document_weights(new, pattern_factors(graph.frequency, 12)).toarray()
    both = np.vstack([graph.weights.toarray(), weights])
    matrix = np.block([[np.zeros((13, 13)), both], [both.T, graph.pmi.toarray()]])
    expected = normalised(matrix, vectors)[12]
    features = Features(sparse.csr_array(counts), vectors, np.ones((13, len(TALLIES)), dtype=np.int64))
    classes = np.arange(12) % 2
    lesson = Lesson(Graded(features[:12], Targets(classes)), Levels(LEVELS))
    fitted = SimpleGraphConvolution.of(Settings()).fit(lesson)
    assert np.allclose(fitted.inputs(features[[12]])[0], expected, atol=1e-12)
