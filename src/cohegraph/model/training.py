"""Full-batch training, with the epoch chosen on dev documents where there are any."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from scipy import sparse
from torch.nn.functional import cross_entropy

from cohegraph.errors import CohegraphError
from cohegraph.graph.corpus_graph import CorpusGraph, build_corpus_graph
from cohegraph.mapped_vectors import MappedVectors
from cohegraph.model.gcn import GCN, TrainedGCN, TrainingGraph
from cohegraph.settings import TrainingSettings

Floats = npt.NDArray[np.floating]
Classes = npt.NDArray[np.int64]
Vectors = Floats | MappedVectors
Trained = TypeVar("Trained")
# What Adam remembers of a parameter.
_OF_ADAM = ("step", "exp_avg", "exp_avg_sq")
Trained_co = TypeVar("Trained_co", covariant=True)


@dataclass(frozen=True)
class Labelled:
    """Documents outside the graph with their classes: weights (n, patterns), vectors (n, dimensions), classes (n,)."""

    weights: sparse.csr_array
    vectors: Floats
    classes: Classes


@dataclass(frozen=True)
class Epoch:
    """How one epoch went; the dev figures are missing where there are no dev documents."""

    loss: float
    dev_accuracy: float | None = None
    dev_loss: float | None = None


@dataclass(frozen=True)
class Training(Generic[Trained]):
    """A finished training: the chosen network, the epoch it is from (counted from 1), and every epoch's figures."""

    network: Trained
    chosen_epoch: int
    epochs: tuple[Epoch, ...]


@dataclass(frozen=True)
class Loss:
    """Equation 7: the mean cross-entropy over documents, weighted by class if ``weights`` are given.

    Of some of the documents it gives their part of that mean, so that the parts of all add up to it.
    """

    targets: torch.Tensor
    weights: torch.Tensor | None

    @classmethod
    def of(cls, classes: Classes, number_of_classes: int, settings: TrainingSettings, dtype: torch.dtype) -> Loss:
        """The loss on documents of these classes."""
        targets = torch.from_numpy(np.asarray(classes, dtype=np.int64))
        if settings.class_weights == "none":
            return cls(targets, None)
        counts = torch.bincount(targets, minlength=number_of_classes).to(dtype)
        return cls(targets, len(targets) / (number_of_classes * counts.clamp(min=1)))

    def __call__(self, logits: torch.Tensor, rows: slice | None = None) -> torch.Tensor:
        """The loss of all documents or, as a part of the mean over all, of the documents in some rows."""
        if rows is None:
            return cross_entropy(logits, self.targets, weight=self.weights)
        part = cross_entropy(logits, self.targets[rows], weight=self.weights, reduction="sum")
        return part / (len(self.targets) if self.weights is None else self.weights[self.targets].sum())


class Trainable(Protocol[Trained_co]):
    """A network on its training documents."""

    def parameters(self) -> Iterator[torch.nn.Parameter]:
        """What is learnt."""

    def backward(self, loss: Loss, settings: TrainingSettings, generator: torch.Generator) -> float:
        """Add the gradients of the loss to those of the parameters, with dropout drawn from the generator; the loss."""

    def trained(self) -> Trained_co:
        """The network as it is now, as a value that later steps do not change."""


class InMemory(ABC):
    """A network that looks at all its training documents at once."""

    @abstractmethod
    def logits(self, settings: TrainingSettings, generator: torch.Generator) -> torch.Tensor:
        """Logits of the training documents, with dropout drawn from the generator."""

    def backward(self, loss: Loss, settings: TrainingSettings, generator: torch.Generator) -> float:
        """See `Trainable`."""
        found = loss(self.logits(settings, generator))
        if torch.isfinite(found):
            found.backward()
        return found.item()


@dataclass(frozen=True)
class Snapshot(Generic[Trained]):
    """A training after some epoch, with all that it needs to go on as if it had never been stopped.

    ``tensors`` holds parameters, Adam's state and the generator's by name; ``best`` are the figures by which ``chosen``
    was chosen, which is missing where there are no dev documents.
    """

    tensors: dict[str, torch.Tensor]
    epochs: tuple[Epoch, ...]
    best: tuple[float, float] | None
    chosen: Trained | None
    chosen_epoch: int


class Checkpoints(Protocol[Trained]):
    """Where snapshots of a training are kept."""

    def load(self) -> Snapshot[Trained] | None:
        """The last one that was kept."""

    def after_epoch(self, snapshot: Callable[[], Snapshot[Trained]], *, last: bool) -> None:
        """Keep one, if it is time; the last one is always kept."""


@dataclass(frozen=True)
class Dev(Generic[Trained]):
    """How to tell the quality of a network in training: its logits of the dev documents, and their classes."""

    logits: Callable[[Trained], Floats]
    classes: Classes


def optimise(
    network: Trainable[Trained],
    classes: Classes,
    number_of_classes: int,
    settings: TrainingSettings,
    generator: torch.Generator,
    *,
    dev: Dev[Trained] | None = None,
    on_epoch: Callable[[int, Trained], None] | None = None,
    checkpoints: Checkpoints[Trained] | None = None,
) -> Training[Trained]:
    """Minimise Equation 7 (its mean over documents) with Adam.

    With dev documents the epoch with the best dev figure is kept: with ``choose_by="accuracy"`` the most accurate, of
    equals the one with the lowest loss; with ``choose_by="loss"`` the one with the lowest loss. Without, the last
    epoch is. ``on_epoch`` is called after every epoch with its number and the network as it is then. With
    ``checkpoints`` the training goes on after the last epoch that was kept.
    """
    parameters = list(network.parameters())
    loss = Loss.of(classes, number_of_classes, settings, parameters[0].dtype)
    optimizer = torch.optim.Adam(parameters, lr=settings.learning_rate, weight_decay=settings.weight_decay)
    course = _Course(settings, dev)
    kept = None if checkpoints is None else checkpoints.load()
    if kept is not None:
        _restore(kept.tensors, parameters, optimizer, generator)
        course.go_on_after(kept)
    while not course.is_over:
        number = len(course.epochs) + 1
        optimizer.zero_grad()
        value = network.backward(loss, settings, generator)
        if not math.isfinite(value):
            raise CohegraphError(f"Training diverged in epoch {number}: choose a lower training.learning_rate.")
        if settings.clip is not None:
            torch.nn.utils.clip_grad_norm_(parameters, settings.clip)
        optimizer.step()
        now = network.trained() if dev is not None or on_epoch is not None else None
        course.note(value, now)
        if on_epoch is not None and now is not None:
            on_epoch(number, now)
        if checkpoints is not None:
            checkpoints.after_epoch(
                lambda: course.snapshot(_tensors(parameters, optimizer, generator)), last=course.is_over
            )
    if course.chosen is None:
        return Training(network.trained(), len(course.epochs), tuple(course.epochs))
    return Training(course.chosen, course.chosen_epoch, tuple(course.epochs))


class _Course(Generic[Trained]):
    """The epochs of a training so far, and the best of them on dev documents."""

    def __init__(self, settings: TrainingSettings, dev: Dev[Trained] | None) -> None:
        self._settings, self._dev = settings, dev
        self.epochs: list[Epoch] = []
        self.chosen: Trained | None = None
        self.chosen_epoch = 0
        self._best: tuple[float, float] | None = None

    @property
    def is_over(self) -> bool:
        patience = self._settings.patience
        waited = self._dev is not None and patience is not None and len(self.epochs) - self.chosen_epoch >= patience
        return waited or len(self.epochs) >= self._settings.epochs

    def note(self, loss: float, now: Trained | None) -> None:
        """One more epoch."""
        if self._dev is None or now is None:
            self.epochs.append(Epoch(loss))
            return
        accuracy, dev_loss = quality(self._dev.logits(now), self._dev.classes)
        self.epochs.append(Epoch(loss, accuracy, dev_loss))
        figure = (accuracy, -dev_loss) if self._settings.choose_by == "accuracy" else (-dev_loss, accuracy)
        if self._best is None or figure > self._best:
            self._best, self.chosen, self.chosen_epoch = figure, now, len(self.epochs)

    def snapshot(self, tensors: dict[str, torch.Tensor]) -> Snapshot[Trained]:
        return Snapshot(tensors, tuple(self.epochs), self._best, self.chosen, self.chosen_epoch)

    def go_on_after(self, kept: Snapshot[Trained]) -> None:
        self.epochs, self._best = list(kept.epochs), kept.best
        self.chosen, self.chosen_epoch = kept.chosen, kept.chosen_epoch


def _tensors(
    parameters: list[torch.nn.Parameter], optimizer: torch.optim.Adam, generator: torch.Generator
) -> dict[str, torch.Tensor]:
    found = {"generator": generator.get_state()}
    for number, parameter in enumerate(parameters):
        found[f"parameter.{number}"] = parameter.detach().clone()
        found |= {f"{name}.{number}": optimizer.state[parameter][name].clone() for name in _OF_ADAM}
    return found


def _restore(
    tensors: dict[str, torch.Tensor],
    parameters: list[torch.nn.Parameter],
    optimizer: torch.optim.Adam,
    generator: torch.Generator,
) -> None:
    generator.set_state(tensors["generator"])
    for number, parameter in enumerate(parameters):
        with torch.no_grad():
            parameter.copy_(tensors[f"parameter.{number}"])
        optimizer.state[parameter] = {name: tensors[f"{name}.{number}"] for name in _OF_ADAM}


class _GCNOnGraph(InMemory):
    """A GCN with the graph that it is trained on."""

    def __init__(self, gcn: GCN, vectors: torch.Tensor, graph: TrainingGraph) -> None:
        self._gcn, self._vectors, self._graph = gcn, vectors, graph

    def parameters(self) -> Iterator[torch.nn.Parameter]:
        return self._gcn.parameters()

    def logits(self, settings: TrainingSettings, generator: torch.Generator) -> torch.Tensor:
        logits: torch.Tensor = self._gcn(
            self._vectors,
            self._graph,
            dropout=settings.dropout,
            input_dropout=settings.input_dropout,
            generator=generator,
        )
        return logits

    def trained(self) -> TrainedGCN:
        return self._gcn.trained(self._vectors, self._graph)


class Trainer(Protocol):
    """How the GCN is trained: where documents lie, and who shares the work."""

    def graph(self, counts: sparse.csr_array, options: Mapping[str, Any]) -> CorpusGraph:
        """The corpus graph of training documents, or the part of it that `train` takes."""

    def train(
        self,
        graph: CorpusGraph,
        vectors: Vectors,
        classes: Classes,
        number_of_classes: int,
        settings: TrainingSettings,
        *,
        dev: Labelled | None = None,
        on_epoch: Callable[[int, TrainedGCN], None] | None = None,
    ) -> Training[TrainedGCN]:
        """As the function `train`."""


@dataclass(frozen=True)
class TrainerInMemory:
    """All documents at once."""

    def graph(self, counts: sparse.csr_array, options: Mapping[str, Any]) -> CorpusGraph:
        """See `Trainer`."""
        return build_corpus_graph(counts, **options)

    def train(self, *arguments: Any, **options: Any) -> Training[TrainedGCN]:
        """See `Trainer`."""
        return train(*arguments, **options)


def train(
    graph: CorpusGraph,
    vectors: Vectors,
    classes: Classes,
    number_of_classes: int,
    settings: TrainingSettings,
    *,
    dev: Labelled | None = None,
    on_epoch: Callable[[int, TrainedGCN], None] | None = None,
    dtype: torch.dtype = torch.float32,
) -> Training[TrainedGCN]:
    """Train the GCN on a corpus graph; see `optimise`."""
    generator = torch.Generator().manual_seed(settings.seed)
    inputs = torch.from_numpy(np.asarray(vectors)).to(dtype)
    gcn = GCN(inputs.shape[1], settings.hidden, number_of_classes, init=settings.init, generator=generator, dtype=dtype)
    return optimise(
        _GCNOnGraph(gcn, inputs, TrainingGraph(graph, dtype)),
        classes,
        number_of_classes,
        settings,
        generator,
        dev=scored_on(dev),
        on_epoch=on_epoch,
    )


def scored_on(documents: Labelled | None) -> Dev[TrainedGCN] | None:
    """How to tell the quality of a GCN on documents outside its graph, where there are any."""
    if documents is None:
        return None
    return Dev(lambda now: now.logits_together(documents.weights, documents.vectors), documents.classes)


def quality(logits: Floats, classes: Classes) -> tuple[float, float]:
    """Accuracy and mean cross-entropy of logits."""
    accuracy = float((logits.argmax(axis=1) == classes).mean())
    return accuracy, cross_entropy(torch.from_numpy(logits), torch.from_numpy(classes)).item()
