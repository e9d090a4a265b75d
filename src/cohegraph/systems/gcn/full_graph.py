"""Algorithm 3 as it is written: the slow route that the closed form is tested against."""

import numpy as np
import numpy.typing as npt
from scipy import sparse

from cohegraph.graph.corpus_graph import CorpusGraph

Matrix = npt.NDArray[np.floating]


def full_graph_logits(
    graph: CorpusGraph, training_vectors: Matrix, weights: sparse.csr_array, vector: Matrix, w0: Matrix, w1: Matrix
) -> Matrix:
    """Logits of one new document: add it to the graph, renormalise all of it, convolve twice (Equations 4 to 6).

    Nodes are the N training documents, the new one, and the M patterns. Everything is computed in the type of ``w0``.

    Args:
        graph: The training graph.
        training_vectors: Vectors of the training documents, (N, dimensions).
        weights: tf-idf weights of the new document, (1, M).
        vector: Vector of the new document, (dimensions,).
        w0: First weight matrix, (dimensions, hidden).
        w1: Second weight matrix, (hidden, classes).
    """
    documents, patterns = graph.weights.shape[0] + 1, graph.weights.shape[1]
    block = np.vstack([graph.weights.toarray(), weights.toarray()])
    adjacency = np.zeros((documents + patterns, documents + patterns), dtype=w0.dtype)
    adjacency[:documents, documents:] = block
    adjacency[documents:, :documents] = block.T
    adjacency[documents:, documents:] = graph.pmi.toarray()
    adjacency += np.eye(documents + patterns, dtype=w0.dtype)
    scale = 1 / np.sqrt(adjacency.sum(axis=1))
    normalised = scale[:, None] * adjacency * scale
    features = np.zeros((documents + patterns, len(vector)), dtype=w0.dtype)
    features[:documents] = np.vstack([training_vectors, vector])
    hidden = np.maximum(normalised @ (features @ w0), 0)
    logits: Matrix = (normalised @ (hidden @ w1))[documents - 1]
    return logits
