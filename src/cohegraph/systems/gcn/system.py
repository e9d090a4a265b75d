"""The paper's method, and what is left of it without its edges."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse

from cohegraph.features import SURFACE_FIGURES, Features
from cohegraph.graph.corpus_graph import document_weights, pattern_factors
from cohegraph.learning.objectives import Levels, Objective, Targets
from cohegraph.settings import CorpusGraphSettings, NodeSettings, Settings, TrainingSettings
from cohegraph.systems.gcn.inputs import DocumentInputs
from cohegraph.systems.gcn.network import TrainedGCN
from cohegraph.systems.gcn.training import HeldOut, Task, Trainer, TrainerInMemory
from cohegraph.systems.system import (
    NOUNS_ALONE,
    ONE_VECTOR,
    Arrays,
    Graded,
    Lesson,
    PatternShares,
    Predictions,
    System,
    expect_shapes,
)

_SURFACE = ("surface_mean", "surface_scale")


@dataclass(frozen=True)
class FittedGCN:
    """A trained network with what it keeps of the corpus graph.

    Shapes: ``frequency`` (patterns,), how many training documents contain each; ``columns`` (columns of W1,), the
    output that each column stands for.
    """

    network: TrainedGCN
    inputs: DocumentInputs
    frequency: npt.NDArray[np.int64]
    documents: int
    options: CorpusGraphSettings
    objective: Objective
    columns: npt.NDArray[np.int64]
    epoch: int = 0

    @property
    def parameters(self) -> int:
        """The numbers in the two weight matrices."""
        return int(self.network.w0.size + self.network.w1.size)

    @property
    def chosen(self) -> Mapping[str, Any]:
        """The epoch."""
        return {"training.epochs": self.epoch}

    def predict(self, features: Features) -> Predictions:
        """Algorithm 3 in closed form, each document by itself."""
        outputs = self.network.outputs(self._weights(features.counts), self.inputs(features))
        return self._in_order(self.objective.predictions(outputs))

    def shares(self, features: Features) -> PatternShares:
        """What the patterns and the text of one document add to its outputs."""
        weights = self._weights(features.counts)
        dtype = self.network.w0.dtype
        data, vector = weights.data.astype(dtype), self.inputs(features)[0].astype(dtype, copy=False)
        of_patterns, of_text = self.network.shares_of_one(weights.indices, data, vector)
        return PatternShares(
            weights.indices, weights.data, self._in_order(of_patterns), self._in_order(of_text[None])[0]
        )

    def unseen_subgraphs(self, counts: sparse.csr_array) -> npt.NDArray[np.int64]:
        """How many subgraphs of each document have a pattern that no training document has."""
        seen = self.frequency[: counts.shape[1]] > 0
        return np.asarray(counts @ (~seen).astype(np.int64))

    def arrays(self) -> Arrays:
        """Weights, sums over training documents, and the statistics of the surface figures if they are used."""
        gcn, inputs = self.network, self.inputs
        surface = (np.array(inputs.mean), np.array(inputs.scale)) if inputs.weight else ()
        return {
            "w0": gcn.w0,
            "w1": gcn.w1,
            "pattern_sums": gcn.pattern_sums,
            "pattern_degrees": gcn.pattern_degrees,
            "pattern_frequency": self.frequency,
            "training_documents": np.array([self.documents]),
            "columns": self.columns,
            **dict(zip(_SURFACE, surface, strict=False)),
        }

    def _weights(self, counts: sparse.csr_array) -> sparse.csr_array:
        return weights_of(counts, self.frequency, self.documents, self.options)

    def _in_order(self, by_column: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Figures of columns as figures of outputs; an output without a column gets 0."""
        full = np.zeros((len(by_column), self.objective.outputs), dtype=by_column.dtype)
        full[:, self.columns] = by_column
        return full


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
    search: ClassVar[Mapping[str, tuple[Any, ...]]] = {"training.weight_decay": (0.001, 0.003, 0.01, 0.03)}

    corpus_graph: CorpusGraphSettings
    nodes: NodeSettings
    training: TrainingSettings

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """Corpus graph, nodes and training as set."""
        return cls(settings.corpus_graph, settings.nodes, settings.training)

    def fewest_sentences(self, settings: Settings) -> int:
        """As many as a pattern has."""
        return settings.subgraphs.k

    def fit(self, lesson: Lesson) -> FittedGCN:
        """Train with all documents in memory."""
        return self.fit_with(lesson, TrainerInMemory())

    def fit_with(self, lesson: Lesson, trainer: Trainer) -> FittedGCN:
        """Train in the way of a trainer: in memory, in chunks, or with several processes."""
        objective, columns = lesson.objective, _columns(lesson)
        narrow = objective.narrowed(lesson.seen)
        features, documents = lesson.training.features, len(lesson.training)
        inputs = DocumentInputs.of(features, self.nodes.surface)
        graph = trainer.graph(features.counts, self.corpus_graph.model_dump())

        def fitted(network: TrainedGCN, epoch: int) -> FittedGCN:
            return FittedGCN(network, inputs, graph.frequency, documents, self.corpus_graph, objective, columns, epoch)

        def watched(number: int, network: TrainedGCN) -> None:
            if lesson.on_epoch is not None:
                lesson.on_epoch(number, fitted(network, number).predict)

        dev = None
        if lesson.dev is not None and (known := objective.learnable(lesson.dev.targets, lesson.seen)).any():
            held_out: Graded = lesson.dev[known]
            weights = weights_of(held_out.features.counts, graph.frequency, documents, self.corpus_graph)
            dev = HeldOut(weights, inputs(held_out.features), _by_column(held_out.targets, columns, objective))
        task = Task(
            graph,
            inputs.mapped(features),
            _by_column(lesson.training.targets, columns, objective),
            narrow,
            self.training.model_copy(update={"seed": lesson.seed}),
            dev,
            None if lesson.on_epoch is None else watched,
        )
        result = trainer.train(task)
        return fitted(result.network, result.chosen_epoch)

    def restored(self, arrays: Arrays, objective: Objective) -> FittedGCN:
        """Two matrices, and sums over the training documents."""
        surface = _SURFACE if self.nodes.surface else ()
        hidden, figures = self.training.hidden, len(SURFACE_FIGURES)
        patterns = len(arrays["pattern_degrees"])
        expect_shapes(
            arrays,
            {
                "w0": (None, hidden),
                "w1": (hidden, len(arrays["columns"])),
                "pattern_sums": (patterns, hidden),
                "pattern_degrees": (patterns,),
                "pattern_frequency": (patterns,),
                "training_documents": (1,),
                "columns": (None,),
                **dict.fromkeys(surface, (figures,)),
            },
        )
        columns, documents = arrays["columns"], int(arrays["training_documents"][0])
        if len(set(columns.tolist()) & set(range(objective.outputs))) != len(columns):
            raise ValueError("the columns of w1 are not those of the objective")
        if documents < max(1, arrays["pattern_frequency"].max(initial=0)):
            raise ValueError("there are fewer documents than one of the patterns has")
        inputs = DocumentInputs()
        if surface:
            mean, scale = (arrays[name].tolist() for name in surface)
            if min(scale) <= 0:
                raise ValueError("the surface figures have no spread")
            inputs = DocumentInputs(self.nodes.surface, tuple(mean), tuple(scale))
        network = TrainedGCN(*(arrays[name] for name in ("w0", "w1", "pattern_sums", "pattern_degrees")))
        return FittedGCN(network, inputs, arrays["pattern_frequency"], documents, self.corpus_graph, objective, columns)


def _columns(lesson: Lesson) -> npt.NDArray[np.int64]:
    """The outputs that W1 has columns for, in the order of the columns."""
    seen = np.flatnonzero(lesson.seen)
    if lesson.label_order is None or lesson.objective.kind != "levels":
        return seen
    return np.array([level for level in lesson.label_order if level in seen], dtype=np.int64)


def _by_column(targets: Targets, columns: npt.NDArray[np.int64], objective: Objective) -> Targets:
    """Targets with levels numbered as the columns are."""
    if not isinstance(objective, Levels):
        return targets
    return Targets(np.argsort(columns)[np.searchsorted(np.sort(columns), targets.values)], targets.groups)


@dataclass(frozen=True)
class WithoutPatternEdges(CorpusGCN):
    """The method without edges between patterns (the paper's "- ESS")."""

    name = "gcn-no-pmi"
    title = "GCN without pattern edges"

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """The method without edges between patterns."""
        return super().of(settings).changed({"corpus_graph.pmi": False})


@dataclass(frozen=True)
class WithoutEdges(CorpusGCN):
    """The method without any edges (the paper's "- ESS, EDS"): every document by itself.

    This has the form of the DNN baseline, and is the same where document nodes carry the vector alone.
    """

    name = "gcn-no-edges"
    title = "GCN without edges"
    looks_at = frozenset({"vector"})
    limits = (ONE_VECTOR,)

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """The method without edges."""
        return super().of(settings).changed({"corpus_graph.pmi": False, "corpus_graph.weighting": "none"})

    def fewest_sentences(self, settings: Settings) -> int:
        """It sees the wording alone."""
        return 1
