"""The model that people use: train it on graded texts, save it, and score texts it has never seen."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from pydantic import Field
from scipy import sparse
from scipy.special import softmax

from cohegraph.errors import DamagedFileError
from cohegraph.features import SURFACE_FIGURES, Features
from cohegraph.graph.catalogue import catalogue
from cohegraph.graph.corpus_graph import document_weights, pattern_factors
from cohegraph.model.assessment import notices
from cohegraph.model.card import CardText, corpus_graph_text
from cohegraph.model.estimator import CoherenceEstimator, Learnt, Lesson, Watch
from cohegraph.model.gcn import TrainedGCN
from cohegraph.model.inputs import DocumentInputs
from cohegraph.model.persistence import Description, wrong_arrays
from cohegraph.model.saved_model import Arrays
from cohegraph.model.training import Labelled
from cohegraph.settings import CorpusGraphSettings

_ARRAYS = ("w0", "w1", "pattern_sums", "pattern_degrees", "pattern_frequency")


@dataclass(frozen=True)
class PatternShares:
    """A document's logits as a sum.

    Shapes, with P patterns in the document: ``patterns`` and ``weights`` (P,), ``of_patterns`` (P, classes) and
    ``of_text`` (classes,).
    """

    patterns: npt.NDArray[np.integer]
    weights: npt.NDArray[np.float64]
    of_patterns: npt.NDArray[np.floating]
    of_text: npt.NDArray[np.floating]


class GraphDescription(Description):
    """The description of a model on the corpus graph."""

    surface: tuple[list[float], list[float]] | None = Field(None, strict=False)


class CoherenceModel(CoherenceEstimator[GraphDescription]):
    """Predicts the level of a document from how its sentences connect and from its wording.

    It follows scikit-learn's conventions: `clone`, `get_params`, `set_params(settings__subgraphs__k=5)` and
    `cross_val_score(model, texts, labels)` work. Wherever texts are taken, the `Features` of texts are taken too, so
    that they are computed once: `features = model.featurize(texts)`.

    Args:
        settings: Settings, nested dictionaries of settings, the name of a preset, or nothing for the default. A change
            takes effect when the model is trained again.
        levels: The labels from the lowest to the highest level. Without it numbers are in their order, as are the words
            low, medium and high; other labels are in alphabetical order.
        device: Where the encoder runs: `auto`, `cpu`, `cuda` or `mps`.

    Attributes:
        classes_: The labels in the order of the columns of `predict_proba`, sorted as scikit-learn sorts them.
        levels_: The labels from the lowest to the highest level.
    """

    _description = GraphDescription

    def _learn(self, lesson: Lesson, watch: Watch | None) -> Learnt:
        rows, settings = lesson.features, lesson.settings
        options = settings.corpus_graph
        inputs = DocumentInputs.of(rows, settings.nodes.surface)
        graph = lesson.trainer.graph(rows.counts, options.model_dump())
        dev = None
        if lesson.dev is not None:
            documents, codes = lesson.dev
            weights = _document_weights(documents.counts, graph.frequency, len(rows), options)
            dev = Labelled(weights, inputs(documents), codes)
        attributes: dict[str, Any] = {"inputs_": inputs, "pattern_frequency_": graph.frequency}

        def watched(number: int, network: TrainedGCN) -> None:
            if watch is not None:
                watch(number, {**attributes, "gcn_": network})

        result = lesson.trainer.train(
            graph,
            inputs.mapped(rows),
            lesson.codes,
            len(lesson.labels.classes),
            settings.training,
            dev=dev,
            on_epoch=None if watch is None else watched,
        )
        chosen = result.epochs[result.chosen_epoch - 1]
        figures = {
            "epochs": len(result.epochs),
            "chosen_epoch": result.chosen_epoch,
            "loss": chosen.loss,
            "dev_accuracy": chosen.dev_accuracy,
        }
        return Learnt({**attributes, "gcn_": result.network}, figures)

    def shares(self, features: Features) -> PatternShares:
        """What the patterns and the text of one document add to its logits; features must match the model."""
        weights = self._weights(features.counts)
        dtype = self.gcn_.w0.dtype
        data, vector = weights.data.astype(dtype), self.inputs_(features)[0].astype(dtype, copy=False)
        of_patterns, of_text = self.gcn_.shares_of_one(weights.indices, data, vector)
        return PatternShares(weights.indices, weights.data, of_patterns, of_text)

    def _probabilities(self, features: Features) -> npt.NDArray[np.float64]:
        logits = self.gcn_.logits(self._weights(features.counts), self.inputs_(features))
        return np.asarray(softmax(logits.astype(np.float64), axis=1))

    @property
    def _dimensions(self) -> int:
        return int(self.gcn_.w0.shape[0]) - (len(SURFACE_FIGURES) if self.inputs_.weight else 0)

    def _counts(self, features: Features) -> list[dict[str, int]]:
        unseen = self._unseen_subgraphs(features.counts).tolist()
        rows = zip(super()._counts(features), unseen, strict=True)
        return [{**counts, "unseen_subgraphs": number} for counts, number in rows]

    def _notices(self, counts: dict[str, int]) -> tuple[str, ...]:
        return notices(counts, self.settings_.subgraphs.k)

    def _arrays(self) -> Arrays:
        gcn = self.gcn_
        arrays = (gcn.w0, gcn.w1, gcn.pattern_sums, gcn.pattern_degrees, self.pattern_frequency_)
        return dict(zip(_ARRAYS, arrays, strict=True))

    def _about(self) -> dict[str, Any]:
        return {"surface": [self.inputs_.mean, self.inputs_.scale] if self.inputs_.weight else None}

    def _card(self, about: dict[str, Any]) -> CardText:
        return corpus_graph_text(about)

    @classmethod
    def _other_kind(cls, about: dict[str, Any]) -> str:
        return f"of the system {about['system']!r} and no CoherenceModel" if "system" in about else ""

    def _restore(self, arrays: Arrays, about: GraphDescription, folder: str | Path) -> None:
        if set(arrays) != set(_ARRAYS):
            raise wrong_arrays(folder)
        *gcn, frequency = (arrays[name] for name in _ARRAYS)
        self.gcn_, self.pattern_frequency_ = TrainedGCN(*gcn), frequency
        self.inputs_ = _stored_inputs(self.settings_.nodes.surface, about.surface, folder)
        self._check_shapes(folder)

    def _weights(self, counts: sparse.csr_array) -> sparse.csr_array:
        return _document_weights(counts, self.pattern_frequency_, self.documents_, self.settings_.corpus_graph)

    def _unseen_subgraphs(self, counts: sparse.csr_array) -> npt.NDArray[np.int64]:
        seen = self.pattern_frequency_[: counts.shape[1]] > 0
        return np.asarray(counts @ (~seen).astype(np.int64))

    def _check_shapes(self, folder: str | Path) -> None:
        settings, gcn = self.settings_, self.gcn_
        extra = settings.corpus_graph.too_short == "pattern"
        patterns = len(catalogue(settings.subgraphs.k, settings.subgraphs.patterns)) + extra
        hidden = settings.training.hidden
        expected = {
            "w1": (hidden, len(self.classes_)),
            "pattern_sums": (patterns, hidden),
            "pattern_degrees": (patterns,),
        }
        wrong = [name for name, shape in expected.items() if getattr(gcn, name).shape != shape]
        if gcn.w0.ndim != 2 or gcn.w0.shape[1] != hidden or self.pattern_frequency_.shape != (patterns,) or wrong:
            raise DamagedFileError(f"The weights in {folder} do not fit its settings: the model is damaged.")
        if self.pattern_frequency_.max(initial=0) > self.documents_:
            raise DamagedFileError(
                f"The model in {folder} has fewer documents than one of its patterns: it is damaged."
            )


def _document_weights(
    counts: sparse.csr_array, frequency: npt.NDArray[np.int64], documents: int, options: CorpusGraphSettings
) -> sparse.csr_array:
    factors = pattern_factors(frequency, documents, options.weighting, options.unseen, options.strength)
    return document_weights(counts, factors, options.too_short)


def _stored_inputs(
    weight: float, surface: tuple[list[float], list[float]] | None, folder: str | Path
) -> DocumentInputs:
    if weight == 0:
        return DocumentInputs()
    shapes_fit = surface is not None and all(len(column) == len(SURFACE_FIGURES) for column in surface)
    if surface is None or not shapes_fit or not np.isfinite(surface).all() or min(surface[1]) <= 0:
        raise DamagedFileError(f"The surface figures of the model in {folder} are damaged.")
    return DocumentInputs(weight, tuple(surface[0]), tuple(surface[1]))
