r"""The paper's baseline: a two-layer network on the encoder's vector, with all of the method but its edges.

.. math:: P = softmax(ReLU(X W_0) W_1)

It has the form and the number of parameters of the GCN on the vector alone; without edges the two are the same.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from cohegraph.features import Features
from cohegraph.learning.loop import Dev, Schedule, optimise, whole_step
from cohegraph.learning.objectives import Objective, spread
from cohegraph.settings import Settings, TrainingSettings
from cohegraph.systems.gcn.network import dropped, initial_weights
from cohegraph.systems.system import ONE_VECTOR, Arrays, Lesson, Predictions, System, expect_shapes

Floats = npt.NDArray[np.floating]


@dataclass(frozen=True)
class _TwoLayers:
    w0: Floats
    w1: Floats

    def outputs(self, inputs: Floats) -> Floats:
        hidden: Floats = np.maximum(inputs.astype(self.w0.dtype, copy=False) @ self.w0, 0)
        return hidden @ self.w1


class _Network(nn.Module):
    """The network with its training documents."""

    def __init__(self, inputs: Tensor, lesson: Lesson, settings: TrainingSettings, generator: torch.Generator) -> None:
        super().__init__()
        self._inputs, self._settings, self._generator = inputs, settings, generator
        objective = lesson.objective
        self._loss = objective.loss(lesson.training.targets, inputs.dtype, settings.class_weights)
        shapes = ((inputs.shape[1], settings.hidden), (settings.hidden, objective.outputs))
        self.w0, self.w1 = (
            nn.Parameter(initial_weights(rows, columns, settings.init, generator, inputs.dtype))
            for rows, columns in shapes
        )

    def parameters(self, recurse: bool = True) -> Iterator[nn.Parameter]:
        yield from (self.w0, self.w1)

    def steps(self) -> Iterable[Callable[[], float]]:
        return [lambda: whole_step(self._loss, self._outputs())]

    def _outputs(self) -> Tensor:
        settings = self._settings
        hidden = torch.relu(dropped(self._inputs, settings.input_dropout, self._generator) @ self.w0)
        return dropped(hidden, settings.dropout, self._generator) @ self.w1

    def trained(self) -> _TwoLayers:
        return _TwoLayers(*(tensor.detach().numpy().copy() for tensor in (self.w0, self.w1)))


@dataclass(frozen=True)
class _FittedNetwork:
    network: _TwoLayers
    inputs: Callable[[Features], Floats]
    objective: Objective
    seen: npt.NDArray[np.uint8]
    epoch: int = 0

    @property
    def parameters(self) -> int:
        return int(self.network.w0.size + self.network.w1.size)

    @property
    def chosen(self) -> Mapping[str, Any]:
        return {"training.epochs": self.epoch}

    def predict(self, features: Features) -> Predictions:
        # Row by row, so that the digits of a document do not depend on the others.
        rows = [self.network.outputs(row) for row in self.inputs(features)]
        outputs = np.array(rows, dtype=np.float64).reshape(-1, self.network.w1.shape[1])
        return spread(self.objective.predictions(outputs), self.seen)

    def arrays(self) -> Arrays:
        return {"w0": self.network.w0, "w1": self.network.w1, "seen": self.seen}


@dataclass(frozen=True)
class TwoLayerNetwork(System):
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

    def fit(self, lesson: Lesson) -> _FittedNetwork:
        """Train as the GCN is trained: levels that no training document has are none of its outputs."""
        seen, narrow, on_epoch = lesson.seen, lesson.narrowed(), lesson.on_epoch
        generator = torch.Generator().manual_seed(lesson.seed)
        matrix = torch.from_numpy(self.inputs(narrow.training.features).astype(np.float32))
        dev = None
        if narrow.dev is not None:
            held_out = self.inputs(narrow.dev.features)
            dev = Dev[_TwoLayers](lambda network: network.outputs(held_out), narrow.dev.targets, narrow.objective)

        def watched(number: int, network: _TwoLayers) -> None:
            if on_epoch is not None:
                on_epoch(number, _FittedNetwork(network, self.inputs, lesson.objective, seen, number).predict)

        result = optimise(
            _Network(matrix, narrow, self.training, generator),
            Schedule.of(self.training),
            generator,
            dev=dev,
            on_epoch=None if on_epoch is None else watched,
        )
        return _FittedNetwork(result.network, self.inputs, lesson.objective, seen, result.chosen_epoch)

    def restored(self, arrays: Arrays, objective: Objective) -> _FittedNetwork:
        """The two matrices."""
        hidden = self.training.hidden
        expect_shapes(arrays, {"w0": (None, hidden), "w1": (hidden, None), "seen": (objective.outputs,)})
        if arrays["w1"].shape[1] != arrays["seen"].astype(bool).sum():
            raise ValueError("w1 has other outputs than were seen")
        return _FittedNetwork(_TwoLayers(arrays["w0"], arrays["w1"]), self.inputs, objective, arrays["seen"])


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
