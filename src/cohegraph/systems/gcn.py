"""The paper's method, and what is left of it without its edges."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from cohegraph.features import Features
from cohegraph.model.coherence_model import CoherenceModel
from cohegraph.settings import CorpusGraphSettings, NodeSettings, Settings, TrainingSettings
from cohegraph.systems.system import Graded, OnEpoch, Probabilities, System, spread


@dataclass(frozen=True)
class _FittedModel:
    model: CoherenceModel
    levels: int

    @property
    def parameters(self) -> int:
        return int(self.model.gcn_.w0.size + self.model.gcn_.w1.size)

    @property
    def chosen(self) -> Mapping[str, Any]:
        return {"training.epochs": self.model.training_["chosen_epoch"]}

    def probabilities(self, features: Features) -> Probabilities:
        return spread(self.model.predict_proba(features), self.model.classes_, self.levels)


@dataclass(frozen=True)
class CorpusGCN(System):
    """The method: a two-layer GCN on the corpus graph, as a `CoherenceModel`."""

    name = "gcn"
    title = "Corpus graph + GCN"
    looks_at = frozenset({"patterns", "vector"})
    citation = "Liu, Fu and Strube (2023)"
    search: ClassVar[Mapping[str, tuple[Any, ...]]] = {"training.weight_decay": (0.001, 0.003, 0.01, 0.03)}

    corpus_graph: CorpusGraphSettings
    nodes: NodeSettings
    training: TrainingSettings

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """Corpus graph, nodes and training as set."""
        return cls(settings.corpus_graph, settings.nodes, settings.training)

    def fit(
        self, training: Graded, dev: Graded | None, levels: int, *, seed: int, on_epoch: OnEpoch | None = None
    ) -> _FittedModel:
        """Train a `CoherenceModel`."""
        settings = (training.features.settings or Settings()).model_copy(
            update={
                "corpus_graph": self.corpus_graph,
                "nodes": self.nodes,
                "training": self.training.model_copy(update={"seed": seed, "dev_share": 0.0}),
            }
        )

        if dev is not None:
            # Of a level that no training document has, nothing can be learnt, and nothing is chosen by it.
            dev = dev.of_levels(training.classes)

        def watched(number: int, model: CoherenceModel) -> None:
            if on_epoch is not None:
                on_epoch(number, _FittedModel(model, levels).probabilities)

        model = CoherenceModel(settings).fit(
            training.features,
            training.classes,
            dev=None if dev is None else (dev.features, dev.classes),
            bare=True,
            on_epoch=None if on_epoch is None else watched,
        )
        return _FittedModel(model, levels)


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

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """The method without edges."""
        return super().of(settings).changed({"corpus_graph.pmi": False, "corpus_graph.weighting": "none"})
