"""A training fold (900 documents, 768 dimensions, 160 epochs, 100 dev and 200 test documents scored every epoch)
against the dense way: the whole matrix in every step, and one full graph a scored document.
"""  # noqa: D205

from __future__ import annotations

import numpy as np
import torch
from common import report, seconds, set_threads
from scipy import sparse
from scoring import counts

from cohegraph.graph.catalogue import catalogue
from cohegraph.graph.corpus_graph import CorpusGraph, build_corpus_graph, document_weights, pattern_factors
from cohegraph.learning.objectives import Levels, Targets
from cohegraph.settings import TrainingSettings
from cohegraph.systems.gcn.full_graph import full_graph_logits
from cohegraph.systems.gcn.network import TrainedGCN
from cohegraph.systems.gcn.training import HeldOut, Task, Trainer

TRAINING, DEV, TEST, DIMENSIONS, CLASSES = 900, 100, 200, 768, 3
SETTINGS = TrainingSettings(hidden=240, epochs=160, learning_rate=0.01)
DENSE_EPOCHS = 2


def dense_epochs(
    graph: CorpusGraph, vectors: np.ndarray, classes: np.ndarray, weights: sparse.csr_array, new: np.ndarray
) -> None:
    """Train on the dense normalised matrix and score every held-out document on its own full graph."""
    n, m = graph.weights.shape
    matrix = np.eye(n + m, dtype=np.float32)
    matrix[:n, n:] += graph.weights.toarray()
    matrix[n:, :n] += graph.weights.toarray().T
    matrix[n:, n:] += graph.pmi.toarray()
    scale = 1 / np.sqrt(matrix.sum(axis=1))
    normalised = torch.from_numpy(scale[:, None] * matrix * scale)
    features = torch.zeros(n + m, DIMENSIONS)
    features[:n] = torch.from_numpy(vectors)
    w0 = torch.nn.Parameter(torch.randn(DIMENSIONS, SETTINGS.hidden) / 20)
    w1 = torch.nn.Parameter(torch.randn(SETTINGS.hidden, CLASSES) / 10)
    optimizer = torch.optim.Adam([w0, w1], lr=SETTINGS.learning_rate)
    for _ in range(DENSE_EPOCHS):
        optimizer.zero_grad()
        hidden = torch.dropout(torch.relu(normalised @ (features @ w0)), 0.5, True)
        logits = (normalised @ (hidden @ w1))[:n]
        torch.nn.functional.cross_entropy(logits, torch.from_numpy(classes)).backward()
        optimizer.step()
        first, second = w0.detach().numpy(), w1.detach().numpy()
        for row in range(len(new)):
            full_graph_logits(graph, vectors, weights[[row]], new[row], first, second)


def main() -> None:
    set_threads(2)
    rng = np.random.default_rng(0)
    patterns = len(catalogue(4))
    graph = build_corpus_graph(counts(TRAINING, patterns, 0))
    vectors = rng.normal(size=(TRAINING, DIMENSIONS)).astype(np.float32)
    classes = rng.integers(0, CLASSES, TRAINING)
    held_out = document_weights(
        counts(DEV + TEST, patterns, 1), pattern_factors(graph.frequency, TRAINING)
    )  # fmt: skip
    new = rng.normal(size=(DEV + TEST, DIMENSIONS)).astype(np.float32)
    gold = rng.integers(0, CLASSES, DEV + TEST)
    objective = Levels(CLASSES)
    dev = HeldOut(held_out[:DEV], new[:DEV], Targets(gold[:DEV]))
    test = HeldOut(held_out[DEV:], new[DEV:], Targets(gold[DEV:]))

    def score_test(_: int, network: TrainedGCN) -> None:
        objective.quality(network.outputs_together(test.weights, test.vectors), test.targets)

    task = Task(graph, vectors, Targets(classes), objective, SETTINGS, dev=dev, on_epoch=score_test)
    ours = seconds(lambda: Trainer().train(task), 3)
    dense = seconds(lambda: dense_epochs(graph, vectors, classes, held_out, new), 1) * SETTINGS.epochs / DENSE_EPOCHS
    detail = f"{ours:.1f} s against {dense:.0f} s ({DENSE_EPOCHS} of {SETTINGS.epochs} dense epochs timed)"
    report("a training fold against the dense way", dense / ours, "at least 50x", detail)


if __name__ == "__main__":
    main()
