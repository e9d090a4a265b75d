"""Full-batch training of the GCN on a corpus graph."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from scipy import sparse

from cohegraph.features.mapped_vectors import MappedVectors
from cohegraph.graph.corpus_graph import CorpusGraph, build_corpus_graph
from cohegraph.learning.loop import Training, backward, optimise
from cohegraph.learning.objectives import Loss, Objective, Targets
from cohegraph.settings import TrainingSettings
from cohegraph.systems.gcn.network import GCN, TrainedGCN, TrainingGraph

Floats = npt.NDArray[np.floating]
Vectors = Floats | MappedVectors


@dataclass(frozen=True)
class HeldOut:
    """Dev documents, which are outside the graph: weights (n, patterns), vectors (n, dimensions), and their targets."""

    weights: sparse.csr_array
    vectors: Floats
    targets: Targets


@dataclass(frozen=True)
class Task:
    """All that a training of the GCN needs.

    Args:
        graph: The corpus graph of the training documents, or the part of it that one process looks at.
        vectors: Their vectors, which may be mapped into memory.
        targets: What they should be predicted to be.
        objective: What is learnt.
        settings: Of the network and its training.
        dev: Documents to choose the epoch with.
        on_epoch: Called after every epoch with its number and the network.
        dtype: The type of the weights.
    """

    graph: CorpusGraph
    vectors: Vectors
    targets: Targets
    objective: Objective
    settings: TrainingSettings
    dev: HeldOut | None = None
    on_epoch: Callable[[int, TrainedGCN], None] | None = None
    dtype: torch.dtype = torch.float32

    @property
    def loss(self) -> Loss:
        """What is minimised."""
        return self.objective.loss(self.targets, self.dtype, self.settings.class_weights)

    @property
    def scored_on_dev(self) -> Callable[[TrainedGCN], tuple[float, float]] | None:
        """How good a network is on the dev documents, where there are any."""
        dev, objective = self.dev, self.objective
        if dev is None:
            return None
        return lambda now: objective.quality(now.outputs_together(dev.weights, dev.vectors), dev.targets)

    def new_network(self) -> tuple[GCN, torch.Generator]:
        """A network with its first weights, and the generator that they were drawn from."""
        settings = self.settings
        generator = torch.Generator().manual_seed(settings.seed)
        sizes = (self.vectors.shape[1], settings.hidden, self.objective.outputs)
        return GCN(*sizes, init=settings.init, generator=generator, dtype=self.dtype), generator


class Trainer:
    """How the GCN is trained: with all documents in memory; a subclass may do it otherwise."""

    def graph(self, counts: sparse.csr_array, options: Mapping[str, Any]) -> CorpusGraph:
        """The corpus graph of training documents, or the part of it that `train` takes."""
        return build_corpus_graph(counts, **options)

    def train(self, task: Task) -> Training[TrainedGCN]:
        """Train the GCN; see `optimise`."""
        gcn, generator = task.new_network()
        network = _GCNOnGraph(gcn, task, generator)
        return optimise(network, task.settings, generator, dev=task.scored_on_dev, on_epoch=task.on_epoch)


class _GCNOnGraph:
    """A GCN with the graph that it is trained on."""

    def __init__(self, gcn: GCN, task: Task, generator: torch.Generator) -> None:
        self._gcn, self._loss = gcn, task.loss
        self._vectors = torch.from_numpy(np.asarray(task.vectors)).to(task.dtype)
        self._graph = TrainingGraph(task.graph, task.dtype)
        share = {"dropout": task.settings.dropout, "input_dropout": task.settings.input_dropout}
        self._outputs = partial(gcn, self._vectors, self._graph, generator=generator, **share)

    def parameters(self) -> Iterator[torch.nn.Parameter]:
        return self._gcn.parameters()

    def steps(self) -> Iterable[Callable[[], float]]:
        return [lambda: backward(self._loss(self._outputs()))]

    def trained(self) -> TrainedGCN:
        return self._gcn.trained(self._vectors, self._graph)
