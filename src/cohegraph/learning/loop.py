"""The training loop: Adam, with the epoch chosen on dev documents where there are any, and snapshots to resume from."""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Generic, Literal, Protocol, TypeVar

import torch

from cohegraph.errors import CohegraphError
from cohegraph.settings import TrainingSettings

Trained = TypeVar("Trained")
Trained_co = TypeVar("Trained_co", covariant=True)
# What Adam remembers of a parameter.
_OF_ADAM = ("step", "exp_avg", "exp_avg_sq")


@dataclass(frozen=True)
class Epoch:
    """How one epoch went; the dev figures (see `Objective.quality`) are missing where there are no dev documents."""

    loss: float
    dev_quality: float | None = None
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


def backward(loss: torch.Tensor) -> float:
    """Add the gradients of a loss to the parameters, if it is finite, and return it."""
    if torch.isfinite(loss):
        loss.backward()
    return loss.item()


@dataclass(frozen=True)
class Snapshot(Generic[Trained]):
    """A training after some epoch, with all that it needs to resume as if it had never been stopped.

    ``tensors`` holds parameters, Adam's state and the generator's by name; ``best`` are the figures by which ``chosen``
    was chosen, which is missing where there are no dev documents.
    """

    tensors: dict[str, torch.Tensor] = field(default_factory=dict)
    epochs: tuple[Epoch, ...] = ()
    best: tuple[float, float] | None = None
    chosen: Trained | None = None
    chosen_epoch: int = 0

    def is_over(self, settings: TrainingSettings) -> bool:
        """Whether all epochs are done, or the best one was too long ago."""
        waited = 0 if self.best is None else len(self.epochs) - self.chosen_epoch
        return len(self.epochs) >= settings.epochs or (settings.patience is not None and waited >= settings.patience)

    def after(self, epoch: Epoch, now: Trained | None, choose_by: Literal["accuracy", "loss"]) -> "Snapshot[Trained]":
        """One more epoch, chosen if it is the best so far on dev; the tensors are those of before."""
        later = replace(self, epochs=(*self.epochs, epoch))
        if epoch.dev_quality is None or epoch.dev_loss is None:
            return later
        figures = (epoch.dev_quality, -epoch.dev_loss)
        figures = figures if choose_by == "accuracy" else figures[::-1]
        if self.best is None or figures > self.best:
            return replace(later, best=figures, chosen=now, chosen_epoch=len(later.epochs))
        return later


class Checkpoints(Protocol[Trained]):
    """Where snapshots of a training are kept."""

    def load(self) -> Snapshot[Trained] | None:
        """The last one that was kept."""

    def after_epoch(self, snapshot: Callable[[], Snapshot[Trained]], *, last: bool) -> None:
        """Keep one, if it is time; the last one is always kept."""


def optimise(
    network: Trainable[Trained],
    settings: TrainingSettings,
    generator: torch.Generator | None = None,
    *,
    dev: Callable[[Trained], tuple[float, float]] | None = None,
    on_epoch: Callable[[int, Trained], None] | None = None,
    checkpoints: Checkpoints[Trained] | None = None,
) -> Training[Trained]:
    """Minimise the loss of a network with Adam.

    With dev documents the epoch with the best dev figure is kept: with ``choose_by="accuracy"`` the one with the most
    right answers and, among equals, the lowest loss; with ``choose_by="loss"`` the one with the lowest loss. Without,
    the last epoch is kept.

    Args:
        network: What is trained.
        settings: How long and how fast, and how to choose the epoch.
        generator: What the network draws random numbers from; part of every snapshot.
        dev: How good a network is on dev documents, as `Objective.quality` gives it.
        on_epoch: Called after every epoch with its number and the network as it is then.
        checkpoints: Where snapshots are kept; training resumes after the last one.
    """
    parameters = list(network.parameters())
    optimizer = torch.optim.Adam(parameters, lr=settings.learning_rate, weight_decay=settings.weight_decay)
    kept = None if checkpoints is None else checkpoints.load()
    state: Snapshot[Trained] = kept or Snapshot()
    if kept is not None:
        _restore(kept.tensors, parameters, optimizer, generator)
    while not state.is_over(settings):
        number = len(state.epochs) + 1
        losses = []
        for step in network.steps():
            optimizer.zero_grad()
            losses.append(step())
            if not math.isfinite(losses[-1]):
                raise CohegraphError(
                    f"Training diverged in epoch {number}: choose a lower learning rate.", code="diverged"
                )
            if settings.clip is not None:
                torch.nn.utils.clip_grad_norm_(parameters, settings.clip)
            optimizer.step()
        loss = sum(losses) / len(losses)
        now = network.trained() if dev is not None or on_epoch is not None else None
        epoch = Epoch(loss) if dev is None or now is None else Epoch(loss, *dev(now))
        state = state.after(epoch, now, settings.choose_by)
        if on_epoch is not None and now is not None:
            on_epoch(number, now)
        if checkpoints is not None:
            whole = partial(_whole, state, parameters, optimizer, generator)
            checkpoints.after_epoch(whole, last=state.is_over(settings))
    if state.chosen is None:
        return Training(network.trained(), len(state.epochs), state.epochs)
    return Training(state.chosen, state.chosen_epoch, state.epochs)


def _whole(
    state: Snapshot[Trained],
    parameters: list[torch.nn.Parameter],
    optimizer: torch.optim.Adam,
    generator: torch.Generator | None,
) -> Snapshot[Trained]:
    """The snapshot with its tensors."""
    found = {} if generator is None else {"generator": generator.get_state()}
    for number, parameter in enumerate(parameters):
        found[f"parameter.{number}"] = parameter.detach().clone()
        found |= {f"{name}.{number}": optimizer.state[parameter][name].clone() for name in _OF_ADAM}
    return replace(state, tensors=found)


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
