r"""Exact full-batch training of the GCN on more documents than fit into memory, and by several processes together.

Documents meet only in sums of fixed size. With P = B^T (X / sqrt(d)), which has a row a pattern and a column a
dimension and does not change from step to step, the states of the patterns are ReLU(P W_0 / sqrt(s)): they need no
document. So a step goes through the documents once, a chunk at a time, and what it leaves of them are the gradients of
W_0, of W_1 and of what the patterns tell their documents. Several processes add these up, and send nothing else.

Where dropout is applied to the vectors themselves P is another one in every step, and a step goes through the documents
twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from scipy import sparse
from torch import Tensor

from cohegraph.graph.corpus_graph import CorpusGraph
from cohegraph.model.gcn import GCN, TrainedGCN, dropped
from cohegraph.model.training import Classes, Floats, Labelled, Loss, Training, optimise, scored_on
from cohegraph.scale.team import Alone, Team
from cohegraph.settings import TrainingSettings

CHUNK = 8_192
# Random numbers that are thrown away at once.
_SKIPPED_AT_ONCE = 1 << 20


def train_in_chunks(
    graph: CorpusGraph,
    vectors: Floats,
    classes: Classes,
    number_of_classes: int,
    settings: TrainingSettings,
    *,
    chunk: int = CHUNK,
    team: Team | None = None,
    dev: Labelled | None = None,
    on_epoch: Callable[[int, TrainedGCN], None] | None = None,
    dtype: torch.dtype = torch.float32,
) -> Training[TrainedGCN]:
    """As `cohegraph.model.training.train`, with the same outcome to rounding, in memory that does not grow.

    Args:
        graph: The corpus graph; its weights may be mapped into memory.
        vectors: The documents' vectors, which may be mapped into memory too.
        classes: The documents' classes.
        number_of_classes: How many there are.
        settings: Those of the training.
        chunk: How many documents are looked at together.
        team: The processes that train together, each with the same arguments (`cohegraph.scale.team.run_together`).
        dev: Documents to choose the epoch with.
        on_epoch: Called after every epoch with its number and the network.
        dtype: The type of the weights.
    """
    generator = torch.Generator().manual_seed(settings.seed)
    gcn = GCN(
        vectors.shape[1], settings.hidden, number_of_classes, init=settings.init, generator=generator, dtype=dtype
    )
    return optimise(
        _GCNInChunks(gcn, graph, vectors, chunk, team or Alone(), dtype),
        classes,
        number_of_classes,
        settings,
        generator,
        dev=scored_on(dev),
        on_epoch=on_epoch,
    )


@dataclass(frozen=True)
class _Chunk:
    """Documents in a row: their vectors, weights and degrees."""

    rows: slice
    vectors: Tensor
    weights: sparse.csr_array
    degrees: Tensor

    def __len__(self) -> int:
        return len(self.vectors)


class _GCNInChunks:
    """A GCN with documents that are looked at in chunks; those of this process are one part in a row of all."""

    def __init__(
        self, gcn: GCN, graph: CorpusGraph, vectors: Floats, chunk: int, team: Team, dtype: torch.dtype
    ) -> None:
        self._gcn, self._graph, self._vectors, self._team, self._dtype = gcn, graph, vectors, team, dtype
        documents = len(vectors)
        ends = [documents * rank // team.size for rank in range(team.size + 1)]
        self._own = range(ends[team.rank], ends[team.rank + 1])
        self._starts = range(self._own.start, self._own.stop, chunk)
        self._pattern_degrees = torch.from_numpy(graph.pattern_degrees).to(dtype)
        self._sums = self._added_up(self._pattern_sums(None, 0.0))

    def parameters(self) -> Iterator[torch.nn.Parameter]:
        return self._gcn.parameters()

    def backward(self, loss: Loss, settings: TrainingSettings, generator: torch.Generator) -> float:
        documents, dimensions = self._vectors.shape
        hidden, has_edges = settings.hidden, self._graph.weights.nnz > 0
        of_vectors = _copy(generator)
        if settings.input_dropout:
            sums = self._added_up(self._pattern_sums(_copy(generator), settings.input_dropout))
            _skip(generator, documents * dimensions, self._dtype)
        else:
            sums = self._sums
        # The same random numbers as where all is in memory: those of the documents, then those of the patterns, which
        # are needed first.
        of_documents = _copy(generator)
        if settings.dropout:
            _skip(generator, documents * hidden, self._dtype)
        w0, w1 = self._gcn.w0, self._gcn.w1
        root = self._pattern_degrees.sqrt()[:, None]
        told = torch.zeros(len(sums), w1.shape[1], dtype=self._dtype)
        if has_edges:
            patterns = dropped(torch.relu(sums @ w0 / root), settings.dropout, generator)
            told = (patterns @ w1) / root
        taken = told.detach().requires_grad_(has_edges)
        value = torch.zeros((), dtype=self._dtype)
        if settings.input_dropout:
            _skip(of_vectors, self._own.start * dimensions, self._dtype)
        if settings.dropout:
            _skip(of_documents, self._own.start * hidden, self._dtype)
        for chunk in self._chunks():
            degrees = chunk.degrees[:, None]
            z = dropped(chunk.vectors, settings.input_dropout, of_vectors) @ w0
            state = dropped(torch.relu(z / degrees), settings.dropout, of_documents)
            logits = (state @ w1) / degrees
            if has_edges:
                logits = logits + _Told.apply(chunk.weights, taken) / degrees.sqrt()  # type: ignore[no-untyped-call]
            part = loss(logits, chunk.rows)
            part.backward()
            value += part.detach()
        gradients = [one.grad if one.grad is not None else torch.zeros_like(one) for one in (w0, w1, taken)]
        self._team.add_up([value, *gradients])
        w0.grad, w1.grad, of_taken = gradients
        if has_edges:
            told.backward(of_taken)
        return value.item()

    @torch.no_grad()
    def trained(self) -> TrainedGCN:
        tensors = (self._gcn.w0, self._gcn.w1, self._sums @ self._gcn.w0, self._pattern_degrees)
        return TrainedGCN(*(tensor.detach().numpy().copy() for tensor in tensors))

    def _chunks(self) -> Iterator[_Chunk]:
        for start in self._starts:
            rows = slice(start, min(start + self._starts.step, self._own.stop))
            yield _Chunk(
                rows,
                torch.from_numpy(np.array(self._vectors[rows])).to(self._dtype),
                self._graph.weights[rows].astype(_numpy(self._dtype)),
                torch.from_numpy(self._graph.document_degrees[rows]).to(self._dtype),
            )

    def _pattern_sums(self, generator: torch.Generator | None, share: float) -> Tensor:
        """The part of P = B^T (X / sqrt(d)) of the documents of this process."""
        dimensions = self._vectors.shape[1]
        sums = torch.zeros(self._graph.weights.shape[1], dimensions, dtype=self._dtype)
        if generator is not None:
            _skip(generator, self._own.start * dimensions, self._dtype)
        for chunk in self._chunks():
            scaled = dropped(chunk.vectors, share, generator) / chunk.degrees.sqrt()[:, None]
            sums += torch.from_numpy(chunk.weights.T @ scaled.numpy())
        return sums

    def _added_up(self, tensor: Tensor) -> Tensor:
        self._team.add_up([tensor])
        return tensor


class _Told(torch.autograd.Function):
    """A constant sparse matrix of SciPy times a dense one."""

    @staticmethod
    def forward(ctx: Any, matrix: sparse.csr_array, dense: Tensor) -> Tensor:
        ctx.matrix = matrix
        return torch.from_numpy(matrix @ dense.numpy())

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, Tensor]:
        return None, torch.from_numpy(ctx.matrix.T @ gradient.numpy())


def _copy(generator: torch.Generator) -> torch.Generator:
    return torch.Generator().set_state(generator.get_state())


def _skip(generator: torch.Generator, count: int, dtype: torch.dtype) -> None:
    """Draw as many random numbers as others draw."""
    while count > 0:
        drawn = min(count, _SKIPPED_AT_ONCE)
        torch.rand(drawn, generator=generator, dtype=dtype)
        count -= drawn


def _numpy(dtype: torch.dtype) -> npt.DTypeLike:
    return np.float64 if dtype == torch.float64 else np.float32
