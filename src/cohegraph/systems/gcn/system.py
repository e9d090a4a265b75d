"""The paper's method, and what is left of it without its edges."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy import sparse

from cohegraph.features import SURFACE_FIGURES, Features
from cohegraph.graph.corpus_graph import document_weights, pattern_factors
from cohegraph.learning.objectives import Objective, spread
from cohegraph.settings import CorpusGraphSettings, NodeSettings, TrainingSettings
from cohegraph.systems.gcn.inputs import DocumentInputs
from cohegraph.systems.gcn.network import TrainedGCN
from cohegraph.systems.gcn.training import HeldOut, Task, Trainer
from cohegraph.systems.system import (
    NOUNS_ALONE,
    ONE_VECTOR,
    Arrays,
    Fitted,
    Lesson,
    PatternShares,
    Predictions,
    Search,
    System,
    expect_shapes,
)

_SHAPES = {
    "w0": "dimensions hidden",
    "w1": "hidden columns",
    "pattern_sums": "patterns hidden",
    "pattern_degrees": "patterns",
    "pattern_frequency": "patterns",
    "training_documents": "one",
    "columns": "columns",
}


@dataclass(frozen=True)
class FittedGCN(Fitted):
    """A trained network with what it keeps of the corpus graph.

    Shapes: ``frequency`` (patterns,), how many training documents contain each; ``columns`` (columns of W1,), the
    output that each column stands for.
    """

    network: TrainedGCN
    inputs: DocumentInputs
    frequency: npt.NDArray[np.int64]
    documents: int
    options: CorpusGraphSettings
    columns: npt.NDArray[np.int64]

    @property
    def parameters(self) -> int:
        """The numbers in the two weight matrices."""
        return int(self.network.w0.size + self.network.w1.size)

    def predict(self, features: Features) -> Predictions:
        """Algorithm 3 in closed form, each document by itself."""
        outputs = self.network.outputs(self._weights(features.counts), self.inputs(features))
        return spread(self.objective.predictions(outputs), self.columns, self.objective.outputs)

    def shares(self, features: Features) -> PatternShares:
        """What the patterns and the text of one document add to its outputs."""
        weights = self._weights(features.counts)
        dtype = self.network.w0.dtype
        data, vector = weights.data.astype(dtype), self.inputs(features)[0].astype(dtype, copy=False)
        of_patterns, of_text = (
            spread(found, self.columns, self.objective.outputs)
            for found in self.network.shares_of_one(weights.indices, data, vector)
        )
        return PatternShares(weights.indices, weights.data, of_patterns, of_text)

    def unseen_subgraphs(self, counts: sparse.csr_array) -> npt.NDArray[np.int64]:
        """How many subgraphs of each document have a pattern that no training document has."""
        seen = self.frequency[: counts.shape[1]] > 0
        return np.asarray(counts @ (~seen).astype(np.int64))

    def arrays(self) -> Arrays:
        """Weights, sums over training documents, and the statistics of the surface figures if they are used."""
        return {
            **vars(self.network),
            "pattern_frequency": self.frequency,
            "training_documents": np.array([self.documents]),
            "columns": self.columns,
            **self.inputs.arrays(),
        }

    def _weights(self, counts: sparse.csr_array) -> sparse.csr_array:
        return weights_of(counts, self.frequency, self.documents, self.options)


def weights_of(
    counts: sparse.csr_array, frequency: npt.NDArray[np.int64], documents: int, options: CorpusGraphSettings
) -> sparse.csr_array:
    """Equation 1 for documents outside the graph."""
    factors = pattern_factors(frequency, documents, options.weighting, options.unseen, options.strength)
    return document_weights(counts, factors, options.too_short)


@dataclass(frozen=True)
class CorpusGCN(System):
    """The method: a two-layer GCN on the corpus graph."""

    name = "gcn"
    title = "Corpus graph + GCN"
    looks_at = frozenset({"patterns", "vector"})
    limits = (NOUNS_ALONE,)
    citation = "Liu, Fu and Strube (2023)"
    search: ClassVar[Search] = {"training.weight_decay": (0.001, 0.003, 0.01, 0.03)}

    corpus_graph: CorpusGraphSettings
    nodes: NodeSettings
    training: TrainingSettings

    def fit(self, lesson: Lesson) -> FittedGCN:
        """Train with all documents in memory."""
        return self.fit_with(lesson, Trainer())

    def fit_with(self, lesson: Lesson, trainer: Trainer) -> FittedGCN:
        """Train in the way of a trainer: in memory, in chunks, or with several processes."""
        columns, options = _columns(lesson), self.corpus_graph
        narrow = lesson.narrowed(columns)
        features, documents = lesson.training.features, len(lesson.training)
        inputs = DocumentInputs.of(features, self.nodes.surface)
        graph = trainer.graph(features.counts, options.model_dump())

        def fitted(network: TrainedGCN, epoch: int) -> FittedGCN:
            learnt = (network, inputs, graph.frequency, documents, options, columns)
            return FittedGCN(lesson.objective, *learnt, chosen={"training.epochs": epoch})

        dev = None
        if narrow.dev is not None:
            weights = weights_of(narrow.dev.features.counts, graph.frequency, documents, options)
            dev = HeldOut(weights, inputs(narrow.dev.features), narrow.dev.targets)
        task = Task(
            graph,
            inputs.mapped(features),
            narrow.training.targets,
            narrow.objective,
            self.training.model_copy(update={"seed": lesson.seed}),
            dev,
            lesson.watched(fitted),
        )
        result = trainer.train(task)
        return fitted(result.network, result.chosen_epoch)

    def restored(self, arrays: Arrays, objective: Objective) -> FittedGCN:
        """Two matrices, and sums over the training documents."""
        inputs = DocumentInputs.restored(arrays, self.nodes.surface)
        shapes = _SHAPES | dict.fromkeys(inputs.arrays(), "figures")
        expect_shapes(arrays, shapes, hidden=self.training.hidden, one=1, figures=len(SURFACE_FIGURES))
        columns, frequency = arrays["columns"], arrays["pattern_frequency"]
        documents = int(arrays["training_documents"][0])
        if len(set(columns.tolist()) & set(range(objective.outputs))) != len(columns):
            raise ValueError("the columns of w1 are not those of the objective")
        if documents < max(1, frequency.max(initial=0)):
            raise ValueError("there are fewer documents than one of the patterns has")
        network = TrainedGCN(*(arrays[item.name] for item in fields(TrainedGCN)))
        return FittedGCN(objective, network, inputs, frequency, documents, self.corpus_graph, columns)


def _columns(lesson: Lesson) -> npt.NDArray[np.int64]:
    """The outputs that W1 has columns for, in the order of the columns."""
    seen = np.flatnonzero(lesson.seen)
    if lesson.label_order is None or lesson.objective.kind != "levels":
        return seen
    return np.array([level for level in lesson.label_order if level in seen], dtype=np.int64)


@dataclass(frozen=True)
class WithoutPatternEdges(CorpusGCN):
    """The method without edges between patterns (the paper's "- ESS")."""

    name = "gcn-no-pmi"
    title = "GCN without pattern edges"
    fixed: ClassVar[Mapping[str, Any]] = {"corpus_graph.pmi": False}


@dataclass(frozen=True)
class WithoutEdges(CorpusGCN):
    """The method without any edges (the paper's "- ESS, EDS"): every document by itself.

    This has the form of the DNN baseline, and is the same where document nodes carry the vector alone.
    """

    name = "gcn-no-edges"
    title = "GCN without edges"
    looks_at = frozenset({"vector"})
    limits = (ONE_VECTOR,)
    fixed: ClassVar[Mapping[str, Any]] = {"corpus_graph.pmi": False, "corpus_graph.weighting": "none"}
