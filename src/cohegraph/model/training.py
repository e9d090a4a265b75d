"""Full-batch training on the corpus graph, with the epoch chosen on dev documents where there are any."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from scipy import sparse
from torch.nn.functional import cross_entropy

from cohegraph.errors import CohegraphError
from cohegraph.graph.corpus_graph import CorpusGraph
from cohegraph.model.gcn import GCN, TrainedGCN, TrainingGraph
from cohegraph.settings import TrainingSettings


@dataclass(frozen=True)
class Labelled:
    """Documents outside the graph with their classes: weights (n, patterns), vectors (n, dimensions), classes (n,)."""

    weights: sparse.csr_array
    vectors: npt.NDArray[np.floating]
    classes: npt.NDArray[np.int64]


@dataclass(frozen=True)
class Epoch:
    """How one epoch went; the dev figures are missing where there are no dev documents."""

    loss: float
    dev_accuracy: float | None = None
    dev_loss: float | None = None


@dataclass(frozen=True)
class Training:
    """A finished training: the chosen weights, the epoch they are from (counted from 1), and every epoch's figures."""

    gcn: TrainedGCN
    chosen_epoch: int
    epochs: tuple[Epoch, ...]


def train(
    graph: CorpusGraph,
    vectors: npt.NDArray[np.floating],
    classes: npt.NDArray[np.int64],
    number_of_classes: int,
    settings: TrainingSettings,
    *,
    dev: Labelled | None = None,
    on_epoch: Callable[[int, TrainedGCN | None], None] | None = None,
    dtype: torch.dtype = torch.float32,
) -> Training:
    """Minimise Equation 7 (its mean over documents) with Adam.

    With dev documents the weights of the epoch with the best dev accuracy are kept, of equals the one with the lowest
    dev loss; without, those of the last epoch. ``on_epoch`` is called after every epoch with its number and, where
    there are dev documents, the network as it is then.
    """
    generator = torch.Generator().manual_seed(settings.seed)
    blocks = TrainingGraph(graph, dtype)
    inputs = torch.from_numpy(np.asarray(vectors)).to(dtype)
    targets = torch.from_numpy(np.asarray(classes, dtype=np.int64))
    gcn = GCN(inputs.shape[1], settings.hidden, number_of_classes, init=settings.init, generator=generator, dtype=dtype)
    optimizer = torch.optim.Adam(gcn.parameters(), lr=settings.learning_rate, weight_decay=settings.weight_decay)
    class_weights = _class_weights(targets, number_of_classes, settings, dtype)

    epochs: list[Epoch] = []
    best: tuple[float, float] | None = None
    chosen, chosen_epoch = None, 0
    for number in range(1, settings.epochs + 1):
        optimizer.zero_grad()
        logits = gcn(
            inputs,
            blocks,
            dropout=settings.dropout,
            input_dropout=settings.input_dropout,
            generator=generator,
        )
        loss = cross_entropy(logits, targets, weight=class_weights)
        if not torch.isfinite(loss):
            raise CohegraphError(f"Training diverged in epoch {number}: choose a lower training.learning_rate.")
        loss.backward()
        if settings.clip is not None:
            torch.nn.utils.clip_grad_norm_(gcn.parameters(), settings.clip)
        optimizer.step()
        now = None
        if dev is None:
            epochs.append(Epoch(loss.item()))
        else:
            now = gcn.trained(inputs, blocks)
            accuracy, dev_loss = evaluate(now, dev)
            epochs.append(Epoch(loss.item(), accuracy, dev_loss))
            if best is None or (accuracy, -dev_loss) > best:
                best, chosen, chosen_epoch = (accuracy, -dev_loss), now, number
        if on_epoch is not None:
            on_epoch(number, now)
        if dev is not None and settings.patience is not None and number - chosen_epoch >= settings.patience:
            break
    if chosen is None:
        chosen, chosen_epoch = gcn.trained(inputs, blocks), len(epochs)
    return Training(chosen, chosen_epoch, tuple(epochs))


def evaluate(gcn: TrainedGCN, documents: Labelled) -> tuple[float, float]:
    """Accuracy and mean cross-entropy on documents outside the graph."""
    logits = gcn.logits(documents.weights, documents.vectors)
    accuracy = float((logits.argmax(axis=1) == documents.classes).mean())
    return accuracy, cross_entropy(torch.from_numpy(logits), torch.from_numpy(documents.classes)).item()


def _class_weights(
    targets: torch.Tensor, classes: int, settings: TrainingSettings, dtype: torch.dtype
) -> torch.Tensor | None:
    if settings.class_weights == "none":
        return None
    counts = torch.bincount(targets, minlength=classes).to(dtype)
    return len(targets) / (classes * counts.clamp(min=1))
