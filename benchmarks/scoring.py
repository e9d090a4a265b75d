"""Scoring one new document: the closed form against the full renormalised graph, and its cost as the corpus grows."""

from __future__ import annotations

import numpy as np
import torch
from common import report, seconds, set_threads
from scipy import sparse

from cohegraph.graph.catalogue import catalogue
from cohegraph.graph.corpus_graph import CorpusGraph, build_corpus_graph, document_weights, pattern_factors
from cohegraph.systems.gcn.full_graph import full_graph_logits
from cohegraph.systems.gcn.network import GCN, TrainedGCN, TrainingGraph

DIMENSIONS, HIDDEN, CLASSES, NEW = 768, 240, 3, 200


def counts(documents: int, patterns: int, seed: int) -> sparse.csr_array:
    rng = np.random.default_rng(seed)
    rates = 8 * rng.permutation(1 / np.arange(1, patterns + 1))
    return sparse.csr_array(rng.poisson(rates, (documents, patterns)))


def trained(documents: int) -> tuple[CorpusGraph, np.ndarray, TrainedGCN, sparse.csr_array]:
    patterns = len(catalogue(4))
    graph = build_corpus_graph(counts(documents, patterns, 0))
    vectors = np.random.default_rng(1).normal(size=(documents, DIMENSIONS)).astype(np.float32)
    gcn = GCN(DIMENSIONS, HIDDEN, CLASSES, init="glorot", generator=torch.Generator(), dtype=torch.float32)
    network = gcn.trained(torch.from_numpy(vectors), TrainingGraph(graph, torch.float32))
    new = document_weights(counts(NEW, patterns, 2), pattern_factors(graph.frequency, documents))
    return graph, vectors, network, new


def main() -> None:
    set_threads(1)
    new_vectors = np.random.default_rng(3).normal(size=(NEW, DIMENSIONS)).astype(np.float32)

    def score_each(network: TrainedGCN, weights: sparse.csr_array) -> None:
        network.outputs(weights, new_vectors)

    graph, vectors, small, weights = trained(1_000)
    full = seconds(lambda: full_graph_logits(graph, vectors, weights[[0]], new_vectors[0], small.w0, small.w1))
    *_, large, large_weights = trained(100_000)
    score_each(small, weights)
    score_each(large, large_weights)
    rounds = [(seconds(lambda: score_each(small, weights), 1), seconds(lambda: score_each(large, large_weights), 1))
              for _ in range(9)]  # fmt: skip
    at_small, at_large = np.median(rounds, axis=0) / NEW
    detail = f"{1e6 * at_small:.0f} µs against {1e3 * full:.1f} ms a document"
    report("scoring against the full graph at N=1,000", full / at_small, "at least 300x", detail)
    detail = f"{1e6 * at_large:.0f} µs against {1e6 * at_small:.0f} µs a document"
    report("scoring at N=100,000 against N=1,000", at_large / at_small, "at most 1.3x", detail)


if __name__ == "__main__":
    main()
