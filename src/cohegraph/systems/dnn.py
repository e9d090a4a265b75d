r"""The paper's baseline: a two-layer network on the encoder's vector, with all of the method but its edges.

.. math:: P = softmax(ReLU(X W_0) W_1)

It has the form and the number of parameters of the GCN on the vector alone; without edges the two are the same.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import torch
from scipy.special import softmax
from torch import Tensor, nn

from cohegraph.features import Features
from cohegraph.model.gcn import dropped, initial_weights
from cohegraph.model.training import Dev, InMemory, optimise
from cohegraph.settings import Settings, TrainingSettings
from cohegraph.systems.system import (
    ONE_VECTOR,
    Arrays,
    Graded,
    OnEpoch,
    Probabilities,
    StorableSystem,
    expect_shapes,
    spread,
)

Floats = npt.NDArray[np.floating]


@dataclass(frozen=True)
class _TwoLayers:
    w0: Floats
    w1: Floats

    def logits(self, inputs: Floats) -> Floats:
        hidden: Floats = np.maximum(inputs.astype(self.w0.dtype, copy=False) @ self.w0, 0)
        return hidden @ self.w1


class _Network(InMemory, nn.Module):
    def __init__(self, inputs: Tensor, settings: TrainingSettings, levels: int, generator: torch.Generator) -> None:
        super().__init__()
        self._inputs = inputs
        shapes = ((inputs.shape[1], settings.hidden), (settings.hidden, levels))
        self.w0, self.w1 = (
            nn.Parameter(initial_weights(rows, columns, settings.init, generator, inputs.dtype))
            for rows, columns in shapes
        )

    def parameters(self, recurse: bool = True) -> Iterator[nn.Parameter]:
        yield from (self.w0, self.w1)

    def logits(self, settings: TrainingSettings, generator: torch.Generator) -> Tensor:
        hidden = torch.relu(dropped(self._inputs, settings.input_dropout, generator) @ self.w0)
        return dropped(hidden, settings.dropout, generator) @ self.w1

    def trained(self) -> _TwoLayers:
        return _TwoLayers(*(tensor.detach().numpy().copy() for tensor in (self.w0, self.w1)))


@dataclass(frozen=True)
class _FittedNetwork:
    network: _TwoLayers
    inputs: Callable[[Features], Floats]
    seen: npt.NDArray[np.uint8]
    epoch: int = 0

    @property
    def parameters(self) -> int:
        return int(self.network.w0.size + self.network.w1.size)

    @property
    def chosen(self) -> Mapping[str, Any]:
        return {"training.epochs": self.epoch}

    def probabilities(self, features: Features) -> Probabilities:
        # Row by row, so that the digits of a document do not depend on the others.
        rows = [self.network.logits(row) for row in self.inputs(features)]
        logits = np.array(rows, dtype=np.float64).reshape(-1, self.network.w1.shape[1])
        return spread(softmax(logits, axis=1), np.flatnonzero(self.seen), len(self.seen))

    def arrays(self) -> Arrays:
        return {"w0": self.network.w0, "w1": self.network.w1, "seen": self.seen}


@dataclass(frozen=True)
class TwoLayerNetwork(StorableSystem):
    """A two-layer network on inputs that a subclass names."""

    training: TrainingSettings

    search: ClassVar[Mapping[str, tuple[Any, ...]]] = {"training.weight_decay": (0.001, 0.003, 0.01, 0.03)}

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """The same training settings as the method's."""
        return cls(settings.training)

    @abstractmethod
    def inputs(self, features: Features) -> Floats:
        """What the network is given of documents, (documents, dimensions)."""

    def fit(
        self, training: Graded, dev: Graded | None, levels: int, *, seed: int, on_epoch: OnEpoch | None = None
    ) -> _FittedNetwork:
        """Train as the GCN is trained: levels that no training document has are none of its classes."""
        known = np.unique(training.classes)
        seen = np.isin(np.arange(levels), known).astype(np.uint8)
        dev = None if dev is None else dev.of_levels(known)
        settings = self.training.model_copy(update={"seed": seed})
        generator = torch.Generator().manual_seed(seed)
        matrix = torch.from_numpy(self.inputs(training.features).astype(np.float32))

        def watched(number: int, network: _TwoLayers) -> None:
            if on_epoch is not None:
                on_epoch(number, _FittedNetwork(network, self.inputs, seen, number).probabilities)

        result = optimise(
            _Network(matrix, settings, len(known), generator),
            np.searchsorted(known, training.classes),
            len(known),
            settings,
            generator,
            dev=None if dev is None else _dev(self.inputs(dev.features), np.searchsorted(known, dev.classes)),
            on_epoch=None if on_epoch is None else watched,
        )
        return _FittedNetwork(result.network, self.inputs, seen, result.chosen_epoch)

    def restored(self, arrays: Arrays, levels: int) -> _FittedNetwork:
        """The two matrices."""
        hidden = self.training.hidden
        expect_shapes(arrays, {"w0": (None, hidden), "w1": (hidden, None), "seen": (levels,)})
        if arrays["w1"].shape[1] != arrays["seen"].astype(bool).sum():
            raise ValueError("w1 has other levels than were seen")
        return _FittedNetwork(_TwoLayers(arrays["w0"], arrays["w1"]), self.inputs, arrays["seen"])


def _dev(inputs: Floats, classes: npt.NDArray[np.int64]) -> Dev[_TwoLayers]:
    return Dev(lambda network: network.logits(inputs), classes)


@dataclass(frozen=True)
class EncoderNetwork(TwoLayerNetwork):
    """The paper's baseline: a two-layer network on the encoder's document vector."""

    name = "dnn"
    title = "Encoder + DNN"
    looks_at = frozenset({"vector"})
    limits = (ONE_VECTOR,)
    citation = "Liu, Fu and Strube (2023), baseline"

    def inputs(self, features: Features) -> Floats:
        """The vector."""
        return features.array
