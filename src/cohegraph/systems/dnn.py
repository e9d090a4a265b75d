r"""The paper's baseline: a two-layer network on the encoder's vector, with all of the method but its edges.

.. math:: P = softmax(ReLU(X W_0) W_1)

It has the form and the number of parameters of the GCN on the vector alone; without edges the two are the same.
"""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from scipy import sparse

from cohegraph.features import Features
from cohegraph.graph.corpus_graph import build_corpus_graph
from cohegraph.learning.objectives import Objective, spread
from cohegraph.settings import TrainingSettings
from cohegraph.systems.gcn.network import TrainedGCN
from cohegraph.systems.gcn.training import HeldOut, Task, Trainer
from cohegraph.systems.system import ONE_VECTOR, Arrays, Fitted, Lesson, Predictions, Search, System, expect_shapes

Floats = npt.NDArray[np.floating]


@dataclass(frozen=True)
class _FittedNetwork(Fitted):
    inputs: Callable[[Features], Floats]
    w0: Floats
    w1: Floats
    seen: npt.NDArray[np.uint8]

    @property
    def parameters(self) -> int:
        return int(self.w0.size + self.w1.size)

    def predict(self, features: Features) -> Predictions:
        # Row by row, so that the digits of a document do not depend on the others.
        inputs = self.inputs(features).astype(self.w0.dtype, copy=False)
        rows = [np.maximum(row @ self.w0, 0) @ self.w1 for row in inputs]
        outputs = np.array(rows, dtype=np.float64).reshape(-1, self.w1.shape[1])
        return spread(self.objective.predictions(outputs), np.flatnonzero(self.seen), len(self.seen))


@dataclass(frozen=True)
class TwoLayerNetwork(System):
    """A two-layer network on inputs that a subclass names."""

    training: TrainingSettings

    search: ClassVar[Search] = {"training.weight_decay": (0.001, 0.003, 0.01, 0.03)}

    @abstractmethod
    def inputs(self, features: Features) -> Floats:
        """What the network is given of documents, (documents, dimensions)."""

    def fit(self, lesson: Lesson) -> _FittedNetwork:
        """Train as the GCN is trained on a graph without patterns."""
        narrow = lesson.narrowed(np.flatnonzero(lesson.seen))

        def fitted(network: TrainedGCN, epoch: int) -> _FittedNetwork:
            chosen = {"training.epochs": epoch}
            return _FittedNetwork(lesson.objective, self.inputs, network.w0, network.w1, lesson.seen, chosen=chosen)

        dev = None
        if narrow.dev is not None:
            dev = HeldOut(_no_counts(narrow.dev.features), self.inputs(narrow.dev.features), narrow.dev.targets)
        task = Task(
            build_corpus_graph(_no_counts(narrow.training.features)),
            self.inputs(narrow.training.features).astype(np.float32),
            narrow.training.targets,
            narrow.objective,
            self.training.model_copy(update={"seed": lesson.seed}),
            dev,
            lesson.watched(fitted),
        )
        result = Trainer().train(task)
        return fitted(result.network, result.chosen_epoch)

    def restored(self, arrays: Arrays, objective: Objective) -> _FittedNetwork:
        """The two matrices."""
        shapes = {"w0": "dimensions hidden", "w1": "hidden seen", "seen": "outputs"}
        expect_shapes(arrays, shapes, hidden=self.training.hidden, outputs=objective.outputs)
        if arrays["w1"].shape[1] != arrays["seen"].astype(bool).sum():
            raise ValueError("w1 has other outputs than were seen")
        return _FittedNetwork(objective, self.inputs, *(arrays[name] for name in shapes))


def _no_counts(features: Features) -> sparse.csr_array:
    return sparse.csr_array((len(features), 0), dtype=np.int64)


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
