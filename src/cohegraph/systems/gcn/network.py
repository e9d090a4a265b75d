r"""Equations 4 to 7: a two-layer graph convolutional network on the corpus graph.

With B the document-pattern weights, X the document vectors, d and s the degrees of document and pattern nodes in A + I,
and zero vectors for pattern nodes, a forward pass needs only these blocks of the normalised adjacency matrix:

.. math::
    Z &= X W_0 \\
    H_{doc} &= ReLU(Z / d) \\
    H_{pattern} &= ReLU(B^T (Z / \sqrt d) / \sqrt s) \\
    logits &= (H_{doc} / d + B (H_{pattern} / \sqrt s) / \sqrt d) W_1

The pattern-pattern block changes s alone: pattern vectors are zero and there are two layers, so it carries no signal.
"""

import warnings
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch
from scipy import sparse
from torch import Tensor, nn

from cohegraph.graph.corpus_graph import CorpusGraph

Init = Literal["glorot", "normal"]
Floats = npt.NDArray[np.floating]
Ints = npt.NDArray[np.integer]


@dataclass(frozen=True)
class TrainedGCN:
    """All that scoring a new document needs of the network and of the corpus graph, as arrays of one type.

    Shapes: ``w0`` (dimensions, hidden), ``w1`` (hidden, classes), ``pattern_sums`` (patterns, hidden), which is
    B^T (Z / sqrt(d)) over the training documents, and ``pattern_degrees`` (patterns,).
    """

    w0: Floats
    w1: Floats
    pattern_sums: Floats
    pattern_degrees: Floats

    def outputs(self, weights: sparse.csr_array, vectors: Floats) -> Floats:
        """Outputs of new documents, each by itself: a product of matrices may round differently in other company.

        Args:
            weights: tf-idf weights of the new documents, (new, patterns).
            vectors: Vectors of the new documents, (new, dimensions).
        """
        dtype = self.w0.dtype
        data, inputs = weights.data.astype(dtype), vectors.astype(dtype, copy=False)
        logits = np.zeros((len(inputs), self.w1.shape[1]), dtype=dtype)
        for row, (low, high) in enumerate(pairwise(weights.indptr.tolist())):
            shares, own = self.shares_of_one(weights.indices[low:high], data[low:high], inputs[row])
            logits[row] = shares.sum(axis=0) + own
        return logits

    def shares_of_one(self, patterns: Ints, b: Floats, x: Floats) -> tuple[Floats, Floats]:
        """Algorithm 3 in closed form: one document as if added to the training graph, with weights b to its patterns.

        Adding it changes only the degrees and sums of the patterns it contains, so nothing else of the training graph
        is looked at, and the cost does not depend on how many training documents there were. The logits are a sum: what
        each pattern adds to them, (patterns, classes), and what the document's own vector adds, (classes,).
        """
        z = x @ self.w0
        degree = 1 + b.sum()
        root = np.sqrt(degree)
        hidden = np.multiply.outer(b / root, z)
        hidden += self.pattern_sums[patterns]
        np.maximum(hidden, 0, out=hidden)
        # A pattern's state is divided by the root of its degree, and so is its edge: one division does both.
        share = b / ((self.pattern_degrees[patterns] + b) * root)
        return share[:, None] * (hidden @ self.w1), (np.maximum(z, 0) / (degree * degree)) @ self.w1

    def outputs_together(self, weights: sparse.csr_array, vectors: Floats) -> Floats:
        """The same as `outputs`, to rounding, and faster for many documents: training looks at dev in every epoch."""
        dtype = self.w0.dtype
        b, patterns = weights.data.astype(dtype)[:, None], weights.indices
        row_of = np.repeat(np.arange(len(vectors)), np.diff(weights.indptr))
        z = vectors.astype(dtype, copy=False) @ self.w0
        degree = 1 + np.asarray(weights.sum(axis=1), dtype=dtype)[:, None]
        root = np.sqrt(degree)
        hidden = np.maximum(b * (z / root)[row_of] + self.pattern_sums[patterns], 0)
        share = b / ((self.pattern_degrees[patterns][:, None] + b) * root[row_of])
        edges = np.arange(len(patterns))
        gather = sparse.csr_array((share[:, 0], edges, weights.indptr), shape=(len(vectors), len(patterns)))
        state: Floats = gather @ hidden + np.maximum(z, 0) / (degree * degree)
        return state @ self.w1


class TrainingGraph:
    """The blocks of the normalised adjacency matrix that training multiplies with, as tensors."""

    def __init__(self, graph: CorpusGraph, dtype: torch.dtype) -> None:
        self.has_edges = graph.weights.nnz > 0
        self.weights = _csr_tensor(graph.weights, dtype)
        self.weights_transposed = _csr_tensor(graph.weights.T.tocsr(), dtype)
        self.document_degrees = torch.from_numpy(graph.document_degrees).to(dtype)
        self.pattern_degrees = torch.from_numpy(graph.pattern_degrees).to(dtype)

    def to_patterns(self, documents: Tensor) -> Tensor:
        """B^T (documents / sqrt(d))."""
        scaled = documents / self.document_degrees.sqrt()[:, None]
        product: Tensor = _SparseProduct.apply(self.weights_transposed, self.weights, scaled)  # type: ignore[no-untyped-call]
        return product

    def to_documents(self, patterns: Tensor) -> Tensor:
        """B (patterns / sqrt(s)) / sqrt(d)."""
        scaled = patterns / self.pattern_degrees.sqrt()[:, None]
        product: Tensor = _SparseProduct.apply(self.weights, self.weights_transposed, scaled)  # type: ignore[no-untyped-call]
        return product / self.document_degrees.sqrt()[:, None]


class GCN(nn.Module):
    """The two weight matrices, without biases, as in Equation 5."""

    def __init__(
        self, dimensions: int, hidden: int, classes: int, *, init: Init, generator: torch.Generator, dtype: torch.dtype
    ) -> None:
        super().__init__()
        self.w0 = nn.Parameter(initial_weights(dimensions, hidden, init, generator, dtype))
        self.w1 = nn.Parameter(initial_weights(hidden, classes, init, generator, dtype))

    def forward(
        self,
        vectors: Tensor,
        graph: TrainingGraph,
        *,
        dropout: float = 0.0,
        input_dropout: float = 0.0,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """Logits of the training documents, (documents, classes)."""
        z = dropped(vectors, input_dropout, generator) @ self.w0
        degree = graph.document_degrees[:, None]
        documents = dropped(torch.relu(z / degree), dropout, generator)
        if not graph.has_edges:
            # Not only faster: dropout draws the same numbers as in a network without a graph.
            return (documents @ self.w1) / degree
        patterns = torch.relu(graph.to_patterns(z) / graph.pattern_degrees.sqrt()[:, None])
        patterns = dropped(patterns, dropout, generator)
        # W1 first: the sparse product then has a column a class instead of a column a hidden unit.
        return (documents @ self.w1) / degree + graph.to_documents(patterns @ self.w1)

    @torch.no_grad()
    def trained(self, vectors: Tensor, graph: TrainingGraph) -> TrainedGCN:
        """What scoring needs, at the present weights."""
        tensors = (self.w0, self.w1, graph.to_patterns(vectors @ self.w0), graph.pattern_degrees)
        return TrainedGCN(*(tensor.detach().numpy().copy() for tensor in tensors))


class _SparseProduct(torch.autograd.Function):
    """A constant sparse matrix times a dense one, with the transpose at hand for the gradient."""

    @staticmethod
    def forward(ctx: Any, matrix: Tensor, transposed: Tensor, dense: Tensor) -> Tensor:
        ctx.transposed = transposed
        return matrix @ dense

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, None, Tensor]:
        return None, None, ctx.transposed @ gradient


def _csr_tensor(matrix: sparse.csr_array, dtype: torch.dtype) -> Tensor:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta")
        return torch.sparse_csr_tensor(
            torch.from_numpy(matrix.indptr.astype(np.int64)),
            torch.from_numpy(matrix.indices.astype(np.int64)),
            torch.from_numpy(matrix.data).to(dtype),
            size=matrix.shape,
            check_invariants=True,
        )


def initial_weights(rows: int, columns: int, init: Init, generator: torch.Generator, dtype: torch.dtype) -> Tensor:
    """A weight matrix at the start of training."""
    if init == "normal":
        return torch.randn(rows, columns, generator=generator, dtype=dtype)
    bound = (6 / (rows + columns)) ** 0.5
    return torch.empty(rows, columns, dtype=dtype).uniform_(-bound, bound, generator=generator)


def dropped(values: Tensor, share: float, generator: torch.Generator | None) -> Tensor:
    """Dropout from a generator of its own, so that training neither reads nor moves the global random state."""
    if share == 0:
        return values
    keep = torch.rand(values.shape, generator=generator, dtype=values.dtype) >= share
    return values * keep / (1 - share)
