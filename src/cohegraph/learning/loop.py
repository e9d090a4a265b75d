"""The training loop: Adam, with the epoch chosen on dev documents where there are any, and snapshots to resume from."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields
from typing import Generic, Literal, Protocol, TypeVar

import torch

from cohegraph.errors import CohegraphError
from cohegraph.learning.objectives import Floats, Loss, Objective, Targets
from cohegraph.settings import TrainingSettings

Trained = TypeVar("Trained")
Trained_co = TypeVar("Trained_co", covariant=True)
# What Adam remembers of a parameter.
_OF_ADAM = ("step", "exp_avg", "exp_avg_sq")


@dataclass(frozen=True)
class Schedule:
    """How long and how fast to learn.

    Args:
        epochs: Passes over the training documents, at most.
        learning_rate: Of Adam.
        weight_decay: Of Adam.
        clip: The largest norm of a gradient.
        choose_by: The dev figure that chooses the epoch.
        patience: With dev documents, training ends after this many epochs without a better one.
    """

    epochs: int
    learning_rate: float
    weight_decay: float
    clip: float | None
    choose_by: Literal["accuracy", "loss"]
    patience: int | None

    @classmethod
    def of(cls, settings: TrainingSettings) -> Schedule:
        """The schedule that settings give."""
        return cls(**{item.name: getattr(settings, item.name) for item in fields(cls)})


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


class Trainable(Protocol[Trained_co]):
    """A network on its training documents."""

    def parameters(self) -> Iterator[torch.nn.Parameter]:
        """What is learnt."""

    def steps(self) -> Iterable[Callable[[], float]]:
        """The steps of one epoch. Each adds the gradients of its loss to the parameters and returns the loss."""

    def trained(self) -> Trained_co:
        """The network as it is now, as a value that later steps do not change."""


def whole_step(loss: Loss, outputs: torch.Tensor) -> float:
    """A step over all documents at once, given their outputs."""
    found = loss(outputs)
    if torch.isfinite(found):
        found.backward()
    return found.item()


@dataclass(frozen=True)
class Snapshot(Generic[Trained]):
    """A training after some epoch, with all that it needs to resume as if it had never been stopped.

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
    """How to measure a network in training: its outputs for the dev documents, and what these should be."""

    outputs: Callable[[Trained], Floats]
    targets: Targets
    objective: Objective

    def quality(self, network: Trained) -> tuple[float, float]:
        """The share of right answers, and the loss."""
        return self.objective.quality(self.outputs(network), self.targets)


def optimise(
    network: Trainable[Trained],
    schedule: Schedule,
    generator: torch.Generator | None = None,
    *,
    dev: Dev[Trained] | None = None,
    on_epoch: Callable[[int, Trained], None] | None = None,
    checkpoints: Checkpoints[Trained] | None = None,
) -> Training[Trained]:
    """Minimise the loss of a network with Adam.

    With dev documents the epoch with the best dev figure is kept: with ``choose_by="accuracy"`` the most accurate and,
    among equals, the one with the lowest loss; with ``choose_by="loss"`` the one with the lowest loss. Without, the
    last epoch is kept.

    Args:
        network: What is trained.
        schedule: How long and how fast.
        generator: What the network draws random numbers from; part of every snapshot.
        dev: How to choose the epoch.
        on_epoch: Called after every epoch with its number and the network as it is then.
        checkpoints: Where snapshots are kept; training resumes after the last one.
    """
    parameters = list(network.parameters())
    optimizer = torch.optim.Adam(parameters, lr=schedule.learning_rate, weight_decay=schedule.weight_decay)
    course = _Course(schedule, dev)
    kept = None if checkpoints is None else checkpoints.load()
    if kept is not None:
        _restore(kept.tensors, parameters, optimizer, generator)
        course.resume(kept)
    while not course.is_over:
        number = len(course.epochs) + 1
        losses = []
        for step in network.steps():
            optimizer.zero_grad()
            losses.append(step())
            if not math.isfinite(losses[-1]):
                raise CohegraphError(
                    f"Training diverged in epoch {number}: choose a lower learning rate.", code="diverged"
                )
            if schedule.clip is not None:
                torch.nn.utils.clip_grad_norm_(parameters, schedule.clip)
            optimizer.step()
        now = network.trained() if dev is not None or on_epoch is not None else None
        course.note(sum(losses) / len(losses), now)
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

    def __init__(self, schedule: Schedule, dev: Dev[Trained] | None) -> None:
        self._schedule, self._dev = schedule, dev
        self.epochs: list[Epoch] = []
        self.chosen: Trained | None = None
        self.chosen_epoch = 0
        self._best: tuple[float, float] | None = None

    @property
    def is_over(self) -> bool:
        patience = self._schedule.patience
        waited = self._dev is not None and patience is not None and len(self.epochs) - self.chosen_epoch >= patience
        return waited or len(self.epochs) >= self._schedule.epochs

    def note(self, loss: float, now: Trained | None) -> None:
        """One more epoch."""
        if self._dev is None or now is None:
            self.epochs.append(Epoch(loss))
            return
        accuracy, dev_loss = self._dev.quality(now)
        self.epochs.append(Epoch(loss, accuracy, dev_loss))
        figure = (accuracy, -dev_loss) if self._schedule.choose_by == "accuracy" else (-dev_loss, accuracy)
        if self._best is None or figure > self._best:
            self._best, self.chosen, self.chosen_epoch = figure, now, len(self.epochs)

    def snapshot(self, tensors: dict[str, torch.Tensor]) -> Snapshot[Trained]:
        return Snapshot(tensors, tuple(self.epochs), self._best, self.chosen, self.chosen_epoch)

    def resume(self, kept: Snapshot[Trained]) -> None:
        self.epochs, self._best = list(kept.epochs), kept.best
        self.chosen, self.chosen_epoch = kept.chosen, kept.chosen_epoch


def _tensors(
    parameters: list[torch.nn.Parameter], optimizer: torch.optim.Adam, generator: torch.Generator | None
) -> dict[str, torch.Tensor]:
    found = {} if generator is None else {"generator": generator.get_state()}
    for number, parameter in enumerate(parameters):
        found[f"parameter.{number}"] = parameter.detach().clone()
        found |= {f"{name}.{number}": optimizer.state[parameter][name].clone() for name in _OF_ADAM}
    return found


def _restore(
    tensors: dict[str, torch.Tensor],
    parameters: list[torch.nn.Parameter],
    optimizer: torch.optim.Adam,
    generator: torch.Generator | None,
) -> None:
    if generator is not None:
        generator.set_state(tensors["generator"])
    for number, parameter in enumerate(parameters):
        with torch.no_grad():
            parameter.copy_(tensors[f"parameter.{number}"])
        optimizer.state[parameter] = {name: tensors[f"{name}.{number}"] for name in _OF_ADAM}
