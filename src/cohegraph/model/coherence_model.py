"""The model that people use: train it on graded texts, save it, and score texts it has never seen."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from copy import copy
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from pydantic import ValidationError
from scipy import sparse
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import train_test_split
from sklearn.utils.validation import check_is_fitted

from cohegraph.errors import CohegraphError, DamagedFileError
from cohegraph.features import SURFACE_FIGURES, TALLIES, Features, Featurizer
from cohegraph.graph.catalogue import catalogue
from cohegraph.graph.corpus_graph import build_corpus_graph, document_weights, pattern_factors
from cohegraph.labels import as_labels, encode_labels
from cohegraph.model.assessment import Assessment, notices
from cohegraph.model.card import model_card
from cohegraph.model.checks import check_patterns, check_same_settings, checked_texts
from cohegraph.model.gcn import TrainedGCN
from cohegraph.model.inputs import DocumentInputs
from cohegraph.model.persistence import ARRAYS, Description, StoredModel, read_model, write_model
from cohegraph.model.training import Labelled, train
from cohegraph.presets import preset
from cohegraph.settings import CorpusGraphSettings, Settings
from cohegraph.version import __version__

Texts = Sequence[str] | Features
Labels = Sequence[Any] | npt.NDArray[Any]


class CoherenceModel(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
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

    def __init__(
        self,
        settings: Settings | dict[str, Any] | str | None = None,
        levels: Sequence[Any] | None = None,
        device: str = "auto",
    ) -> None:
        self.settings = settings
        self.levels = levels
        self.device = device

    @property
    def resolved_settings(self) -> Settings:
        """The settings as a value, with a preset's name looked up."""
        if isinstance(self.settings, dict):
            return Settings.from_dict(self.settings)
        return self.settings if isinstance(self.settings, Settings) else preset(self.settings or "default")

    @property
    def featurizer(self) -> Featurizer:
        """What turns texts into features."""
        return Featurizer(self.resolved_settings, device=self.device)

    def featurize(self, texts: Texts, *, show_progress: bool = False) -> Features:
        """The features of texts; features are given back as they are if they were made with the same settings."""
        settings = self.resolved_settings
        if not isinstance(texts, Features):
            return self.featurizer.featurize(checked_texts(texts), show_progress=show_progress)
        if texts.settings is not None:
            check_same_settings(settings.of_features(), texts.settings.of_features())
        return texts

    def fit(
        self,
        texts: Texts,
        labels: Labels,
        *,
        dev: tuple[Texts, Labels] | None = None,
        on_epoch: Callable[[int, CoherenceModel], None] | None = None,
    ) -> CoherenceModel:
        """Train on graded texts.

        Args:
            texts: The documents.
            labels: Their levels: any two or more different strings or numbers.
            dev: Documents and labels to choose the epoch with. Without them `training.dev_share` of the documents are
                held out for it, and where that is 0 the last epoch is taken.
            on_epoch: Called after every epoch with its number and the model as it is then.
        """
        settings = self.resolved_settings
        encoded = encode_labels(labels, self.levels)
        classes, codes = encoded.classes, encoded.codes
        if len(texts) != len(codes):
            raise CohegraphError(f"There are {len(texts)} documents and {len(codes)} labels: give one label each.")
        features = self.featurize(texts)
        training, held_out = np.arange(len(features)), None
        if dev is not None:
            held_out = (self.featurize(dev[0]), _codes(as_labels(dev[1]), classes))
            if len(held_out[0]) != len(held_out[1]) or not len(held_out[1]):
                raise CohegraphError(f"There are {len(held_out[0])} dev documents and {len(held_out[1])} dev labels.")
        elif settings.training.dev_share > 0:
            training, rest = _split(codes, settings.training.dev_share, settings.training.seed)
            held_out = (features[rest], codes[rest])
        elif settings.training.patience is not None:
            raise CohegraphError("training.patience needs dev documents: set training.dev_share, such as 0.1.")
        rows = features[training]
        check_patterns(rows, settings)
        options = settings.corpus_graph
        inputs = DocumentInputs.of(rows, settings.nodes.surface)
        graph = build_corpus_graph(rows.counts, **options.model_dump())
        dev_documents = None
        if held_out is not None:
            check_patterns(held_out[0], settings)
            dev_weights = _document_weights(held_out[0].counts, graph.frequency, len(rows), options)
            dev_documents = Labelled(dev_weights, inputs(held_out[0]), held_out[1])
        attributes: dict[str, Any] = {
            "settings_": settings,
            "inputs_": inputs,
            "pattern_frequency_": graph.frequency,
            "classes_": classes,
            "levels_": encoded.levels,
            "ordered_": encoded.ordered,
            "documents_": len(rows),
            "parts_": dict(features.parts),
            "name_": type(self).__name__,
            "note_": "",
        }

        def watched(number: int, network: TrainedGCN) -> None:
            view = copy(self)
            view.__dict__.update(attributes, gcn_=network)
            if on_epoch is not None:
                on_epoch(number, view)

        result = train(
            graph,
            inputs(rows),
            codes[training],
            len(classes),
            settings.training,
            dev=dev_documents,
            on_epoch=None if on_epoch is None else watched,
        )
        chosen = result.epochs[result.chosen_epoch - 1]
        # Only now, so that a training which fails leaves an earlier one whole.
        self.__dict__.update(attributes, gcn_=result.network)
        self.training_ = {
            "documents": {str(level): int((codes[training] == code).sum()) for code, level in enumerate(classes)},
            "dev_documents": 0 if held_out is None else len(held_out[0]),
            "epochs": len(result.epochs),
            "chosen_epoch": result.chosen_epoch,
            "loss": chosen.loss,
            "dev_accuracy": chosen.dev_accuracy,
        }
        return self

    def score(self, texts: Texts, labels: Labels, sample_weight: npt.NDArray[Any] | None = None) -> float:
        """The share of texts whose level is predicted right; labels may be any numbers, also fractions."""
        return float(np.average(self.predict(texts) == as_labels(labels), weights=sample_weight))

    def predict(self, texts: Texts) -> npt.NDArray[Any]:
        """The most probable level of every text."""
        probabilities = self.predict_proba(texts)
        return np.asarray(self.classes_[probabilities.argmax(axis=1)])

    def predict_proba(self, texts: Texts) -> npt.NDArray[np.float64]:
        """The probability of every level, (texts, classes), columns as in `classes_`."""
        check_is_fitted(self)
        return self._probabilities(self._matching(texts))

    def assess(self, texts: Texts, *, show_progress: bool = False) -> list[Assessment]:
        """Level, probabilities, counts and notices of every text."""
        check_is_fitted(self)
        features = self._matching(texts, show_progress=show_progress)
        unseen = self._unseen_subgraphs(features.counts)
        results = []
        for row, probabilities in enumerate(self._probabilities(features)):
            by_class = dict(zip(self.classes_.tolist(), probabilities.tolist(), strict=True))
            counts = dict(zip(TALLIES, features.tallies[row].tolist(), strict=True))
            counts["unseen_subgraphs"] = int(unseen[row])
            results.append(
                Assessment(
                    level=self.classes_[probabilities.argmax()].item() if counts["sentences"] else None,
                    probabilities={level: by_class[level] for level in self.levels_},
                    counts=counts,
                    notices=notices(counts, self.settings_.subgraphs.k),
                )
            )
        return results

    def save(self, folder: str | Path, *, name: str | None = None, note: str = "") -> None:
        """Write the model to a folder that appears only when it is complete.

        Args:
            folder: Where to. A model that is there is replaced.
            name: What the model is called in its card and in results; by default the folder's name.
            note: A paragraph for its card.
        """
        check_is_fitted(self)
        folder = Path(folder)
        self.name_, self.note_ = name or folder.resolve().name, note
        gcn = self.gcn_
        arrays = (gcn.w0, gcn.w1, gcn.pattern_sums, gcn.pattern_degrees, self.pattern_frequency_)
        about = {
            "name": self.name_,
            "note": self.note_,
            "cohegraph": __version__,
            "classes": self.classes_.tolist(),
            "levels": list(self.levels_),
            "ordered": self.ordered_,
            "documents": self.documents_,
            "surface": [self.inputs_.mean, self.inputs_.scale] if self.inputs_.weight else None,
            "parts": self.parts_,
            "training": self.training_,
            "settings": self.settings_.to_dict(),
        }
        write_model(folder, StoredModel(dict(zip(ARRAYS, arrays, strict=True)), about), model_card(about))

    @classmethod
    def load(
        cls,
        folder: str | Path,
        *,
        parser: str | None = None,
        vectors: str | None = None,
        encoder: str | None = None,
        device: str = "auto",
    ) -> CoherenceModel:
        """Read a model from a folder.

        Args:
            folder: Where `save` wrote it.
            parser: Where the parser is on this machine, where that differs from the machine of the training.
            vectors: Likewise the word vectors.
            encoder: Likewise the encoder.
            device: Where the encoder runs.
        """
        stored = read_model(Path(folder))
        moved = {"parser.model": parser, "vectors.source": vectors, "encoder.source": encoder}
        try:
            about = Description.model_validate(stored.about)
            settings = Settings.from_dict(about.settings)
            settings = settings.replaced({name: place for name, place in moved.items() if place is not None})
            model = cls(settings, levels=about.levels, device=device)
            encoded = encode_labels(about.classes, about.levels)
        except (ValidationError, CohegraphError) as error:
            what = error.errors()[0]["loc"] if isinstance(error, ValidationError) else error
            raise DamagedFileError(f"The description of the model in {folder} is damaged: {what}") from None
        *gcn, frequency = (stored.arrays[name] for name in ARRAYS)
        model.settings_, model.gcn_, model.pattern_frequency_ = settings, TrainedGCN(*gcn), frequency
        model.classes_, model.levels_, model.ordered_ = encoded.classes, encoded.levels, about.ordered
        model.documents_, model.parts_, model.training_ = about.documents, about.parts, about.training
        model.name_, model.note_ = about.name, about.note
        model.inputs_ = _stored_inputs(settings.nodes.surface, about.surface, folder)
        model._check_shapes(folder)
        return model

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The arguments of the constructor and, if deep, every single setting as `settings__GROUP__NAME`."""
        params: dict[str, Any] = super().get_params(deep=False)
        if deep:
            params |= {
                f"settings__{name.replace('.', '__')}": value for name, value in self.resolved_settings.flat().items()
            }
        return params

    def set_params(self, **params: Any) -> CoherenceModel:
        """Change arguments of the constructor or single settings."""
        single = {name: params.pop(name) for name in list(params) if name.startswith("settings__")}
        super().set_params(**params)
        if single:
            changes = {name.removeprefix("settings__").replace("__", "."): value for name, value in single.items()}
            self.settings = self.resolved_settings.replaced(changes)
        return self

    def _matching(self, texts: Texts, *, show_progress: bool = False) -> Features:
        """Features of texts, made with the settings and the pretrained parts of the training."""
        if isinstance(texts, Features):
            features = texts
            if features.settings is not None:
                wanted = self.settings_.of_features(places=False)
                check_same_settings(wanted, features.settings.of_features(places=False))
        else:
            self._check_places()
            featurizer = Featurizer(self.settings_, device=self.device)
            features = featurizer.featurize(checked_texts(texts), show_progress=show_progress)
        check_patterns(features, self.settings_)
        for part, identity in self.parts_.items():
            found = features.parts.get(part, identity)
            if found == identity:
                continue
            message = f"The model was trained with the {part} {identity}, and this is {found}"
            if part != "parser":
                raise CohegraphError(f"{message}: name the right one when loading the model.")
            warnings.warn(f"{message}: results may differ a little.", stacklevel=3)
        dimensions = self.gcn_.w0.shape[0] - (len(SURFACE_FIGURES) if self.inputs_.weight else 0)
        if features.vectors.shape[1] != dimensions:
            raise CohegraphError(
                f"The model takes vectors of {dimensions} dimensions, and the encoder gives "
                f"{features.vectors.shape[1]}: use the encoder that it was trained with."
            )
        return features

    def _check_places(self) -> None:
        """Raise where a part that was a file or folder is not here: its bare name could be taken for one on the hub."""
        for part, mark, place in (
            ("vectors", "glove:", self.settings_.vectors.source),
            ("encoder", "folder:", self.settings_.encoder.source),
        ):
            if self.parts_.get(part, "").startswith(mark) and not Path(place).exists():
                raise CohegraphError(
                    f"The model's {part} were trained from '{place}', which is not here: say where it is with "
                    f"--{part} PLACE, or load(…, {part}=PLACE)."
                )

    def _probabilities(self, features: Features) -> npt.NDArray[np.float64]:
        logits = self.gcn_.logits(self._weights(features.counts), self.inputs_(features))
        return np.asarray(softmax(logits.astype(np.float64), axis=1))

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


def _codes(labels: npt.NDArray[Any], classes: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    unknown = sorted(set(labels.tolist()) - set(classes.tolist()), key=str)
    if unknown:
        raise CohegraphError(f"The dev documents have a label that the training documents lack: '{unknown[0]}'.")
    return np.searchsorted(classes, labels)


def _split(
    codes: npt.NDArray[np.int64], share: float, seed: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Training and dev documents, each with all classes in their shares."""
    try:
        training, dev = train_test_split(np.arange(len(codes)), test_size=share, random_state=seed, stratify=codes)
    except ValueError as error:
        raise CohegraphError(
            f"training.dev_share={share} cannot be held out of {len(codes)} documents: {error}"
        ) from None
    return np.sort(training), np.sort(dev)
