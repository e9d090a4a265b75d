r"""Exact full-batch training of the GCN on more documents than fit into memory, and by several processes together.

Documents meet only in sums of fixed size. With P = B^T (X / sqrt(d)), which has a row per pattern and a column per
dimension and does not change from step to step, the states of the patterns are ReLU(P W_0 / sqrt(s)): they need no
document. So a step goes through the documents once, a chunk at a time, and what it leaves of them are the gradients of
W_0, of W_1 and of what the patterns tell their documents. Several processes add these up, and send nothing else.

Where dropout is applied to the vectors themselves P is another one in every step, and a step goes through the documents
twice.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from scipy import sparse
from torch import Tensor

from cohegraph.features import Features
from cohegraph.graph.corpus_graph import CorpusGraph, build_corpus_graph
from cohegraph.learning.loop import Training, optimise
from cohegraph.model.validation import Validation, validated_fit
from cohegraph.progress import remark, track
from cohegraph.scale.checkpoints import CheckpointFile, checkpoint
from cohegraph.scale.team import ALONE, Team
from cohegraph.systems.gcn.network import GCN, TrainedGCN, dropped
from cohegraph.systems.gcn.training import Task, Trainer

CHUNK = 8_192
# Random numbers that are thrown away at once.
_SKIPPED_AT_ONCE = 1 << 20


@dataclass
class ChunkTrainer(Trainer):
    """Trains in chunks, by itself or in a team, with checkpoints if there is a folder for them.

    Args:
        team: The processes that train together; each is given all documents, and reads its own.
        chunk: How many documents are read together.
        checkpoints: Where snapshots are kept: one file for each training, in the order in which they are begun.
        corpus: What identifies the documents, and what the network sees of them.
        trainings: How many trainings there will be, if progress is to be shown.
    """

    team: Team = ALONE
    chunk: int = CHUNK
    checkpoints: Path | None = None
    corpus: str = ""
    trainings: int = 0
    _begun: int = field(default=0, init=False)

    def graph(self, counts: sparse.csr_array, options: Mapping[str, Any]) -> CorpusGraph:
        """The part of the corpus graph that has the documents of this process."""
        return build_corpus_graph(counts, **options, rows=own_rows(counts.shape[0], self.team))

    def train(self, task: Task) -> Training[TrainedGCN]:
        """As `train_in_chunks`."""
        self._begun += 1
        settings, graph = task.settings, task.graph
        file = None
        if self.checkpoints is not None:
            about = (self.corpus, task.vectors.shape, task.objective, settings.model_dump_json())
            training = hashlib.sha256(repr(about).encode())
            weights = [] if task.targets.weights is None else [task.targets.weights]
            for array in (task.targets.values, *weights, graph.frequency, graph.pattern_degrees):
                training.update(array.tobytes())
            place = checkpoint(self.checkpoints, self._begun)
            file = CheckpointFile(place, training.hexdigest(), writes=self.team.rank == 0)
        shown = self.trainings > 0 and self.team.rank == 0
        title = f"training {self._begun} of {self.trainings}" if self.trainings > 1 else "training"
        done = file.epochs if file is not None else 0
        if shown and 0 < done < settings.epochs:
            remark(f"{title}: resumes after epoch {done}.")
        steps = track(range(done, settings.epochs), title, settings.epochs, done=done, show=shown)

        def watched(number: int, network: TrainedGCN) -> None:
            next(steps, None)
            if task.on_epoch is not None:
                task.on_epoch(number, network)

        try:
            return train_in_chunks(replace(task, on_epoch=watched), chunk=self.chunk, team=self.team, checkpoints=file)
        finally:
            steps.close()


def fit_in_chunks(
    team: Team,
    model: Any,
    features: Features,
    labels: npt.NDArray[Any],
    groups: Sequence[str] | None,
    folds: int,
    checkpoints: Path,
    corpus: str,
) -> tuple[Any, Validation | None]:
    """`validated_fit` with a `ChunkTrainer`, as every process of a team runs it: the model, and what to expect."""
    # Settings of all kinds shape what the network sees.
    learnt_from = f"{corpus} {model.resolved_settings.model_dump_json()}"
    trainer = ChunkTrainer(team, checkpoints=checkpoints, corpus=learnt_from, trainings=folds + 1)
    return model, validated_fit(model, features, labels, groups, folds, show_progress=False, trainer=trainer)


def own_rows(documents: int, team: Team) -> slice:
    """The documents that a process reads: a contiguous part of all."""
    return slice(documents * team.rank // team.size, documents * (team.rank + 1) // team.size)


def train_in_chunks(
    task: Task, *, chunk: int = CHUNK, team: Team = ALONE, checkpoints: CheckpointFile | None = None
) -> Training[TrainedGCN]:
    """As `systems.gcn.training.Trainer.train`, with the same outcome to rounding, in memory that does not grow.

    In a team (see `ChunkTrainer`) the task has the part of the corpus graph with the documents of `own_rows`, and the
    vectors and targets of all documents. With checkpoints, training resumes after the last one.
    """
    gcn, generator = task.new_network()
    return optimise(
        _GCNInChunks(gcn, task, chunk, team, generator),
        task.settings,
        generator,
        dev=task.scored_on_dev,
        on_epoch=task.on_epoch,
        checkpoints=checkpoints,
    )


class _GCNInChunks:
    """A GCN whose documents are read in chunks; this process has a contiguous part of them."""

    def __init__(self, gcn: GCN, task: Task, chunk: int, team: Team, generator: torch.Generator) -> None:
        self._gcn, self._graph, self._vectors, self._team = gcn, task.graph, task.vectors, team
        self._loss, self._settings, self._generator, self._dtype = task.loss, task.settings, generator, task.dtype
        own = own_rows(len(task.vectors), team)
        self._own = range(own.start, own.stop)
        self._starts = range(self._own.start, self._own.stop, chunk)
        # Of the whole graph: every process must take the same branch, whatever its own documents are.
        self._has_edges = bool(self._added_up(torch.tensor([self._graph.weights.nnz], dtype=self._dtype)) > 0)
        self._pattern_degrees = torch.from_numpy(self._graph.pattern_degrees).to(self._dtype)
        self._sums = self._added_up(self._pattern_sums(None, 0.0))

    def parameters(self) -> Iterator[torch.nn.Parameter]:
        return self._gcn.parameters()

    def steps(self) -> Iterable[Callable[[], float]]:
        return [self._step]

    def _step(self) -> float:
        loss, settings, generator = self._loss, self._settings, self._generator
        documents, dimensions = self._vectors.shape
        hidden, has_edges = settings.hidden, self._has_edges
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
        for rows, vectors, weights, degrees in self._chunks():
            z = dropped(vectors, settings.input_dropout, of_vectors) @ w0
            state = dropped(torch.relu(z / degrees), settings.dropout, of_documents)
            logits = (state @ w1) / degrees
            if has_edges:
                logits = logits + _Told.apply(weights, taken) / degrees.sqrt()  # type: ignore[no-untyped-call]
            part = loss(logits, rows)
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

    def _chunks(self) -> Iterator[tuple[slice, Tensor, sparse.csr_array, Tensor]]:
        """Documents in a row, some at a time: which, their vectors, weights (n, patterns) and degrees (n, 1)."""
        for start in self._starts:
            rows = slice(start, min(start + self._starts.step, self._own.stop))
            of_graph = slice(rows.start - self._own.start, rows.stop - self._own.start)
            yield (
                rows,
                torch.from_numpy(np.array(self._vectors[rows])).to(self._dtype),
                self._graph.weights[of_graph].astype(np.float64 if self._dtype == torch.float64 else np.float32),
                torch.from_numpy(self._graph.document_degrees[of_graph]).to(self._dtype)[:, None],
            )

    def _pattern_sums(self, generator: torch.Generator | None, share: float) -> Tensor:
        """The part of P = B^T (X / sqrt(d)) of the documents of this process."""
        dimensions = self._vectors.shape[1]
        sums = torch.zeros(self._graph.weights.shape[1], dimensions, dtype=self._dtype)
        if generator is not None:
            _skip(generator, self._own.start * dimensions, self._dtype)
        for _, vectors, weights, degrees in self._chunks():
            scaled = dropped(vectors, share, generator) / degrees.sqrt()
            sums += torch.from_numpy(weights.T @ scaled.numpy())
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
