"""The model that people use: train it on graded texts, save it, and assess texts that it has never seen."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from cohegraph.assessment import Assessment, notices_of
from cohegraph.errors import CohegraphError
from cohegraph.explain.explain import MOST_SENTENCES, explain
from cohegraph.explain.explanation import Explanation
from cohegraph.explain.neighbours import Neighbours
from cohegraph.features import SEQUENCES, TALLIES, Features, Featurizer, Material
from cohegraph.features.mapped_vectors import MappedVectors
from cohegraph.labels import as_labels, as_ratings
from cohegraph.learning.calibration import Calibration
from cohegraph.learning.objectives import Objective, Targets, ordered_pairs
from cohegraph.model.answers import Answers, Labels, level_numbers, numbers_of
from cohegraph.model.checks import (
    Texts,
    check_material,
    check_parts,
    check_patterns,
    check_places,
    check_same_settings,
    check_widths,
    checked_texts,
    widths_of,
)
from cohegraph.model.conventions import Estimator, single_params, taken_params
from cohegraph.model.familiarity import Familiarity
from cohegraph.model.rank_scale import RankScale
from cohegraph.model.saving import Saved, read, write
from cohegraph.model.validation import Validation
from cohegraph.model.verdicts import Judge, Verdict
from cohegraph.presets import PRESETS, preset
from cohegraph.settings import Settings
from cohegraph.strings import well_formed
from cohegraph.systems.gcn.training import Trainer
from cohegraph.systems.registry import system_named
from cohegraph.systems.system import CountsUnseen, Fitted, Graded, Lesson, Predict, System, TrainsInChunks

# Documents whose vectors are read from disk together.
_READ_AT_ONCE = 4_096


class CoherenceModel(Estimator):
    """Measures how coherent documents are, with any system.

    It follows scikit-learn's conventions: `clone`, `get_params`, `set_params(settings__subgraphs__k=5)` and
    `cross_val_score(model, texts, labels)` work. Wherever texts are taken, the `Features` of texts are taken too, so
    that they are computed once: `features = model.featurize(texts)`.

    Args:
        system: The name of a system (`cohegraph systems` lists them), or a system. The default is the paper's method.
        settings: Settings, nested dictionaries of settings, the name of a preset, or nothing for the default. A change
            takes effect when the model is trained again.
        levels: The labels from the lowest to the highest level. Without it numbers are in their order, as are the words
            low, medium and high; other labels are in alphabetical order. Where ratings are learnt, the names of the
            levels between the thresholds.
        device: Where the encoder runs: `auto`, `cpu`, `cuda` or `mps`.
        hyper_parameters: Hyper-parameters of the system to change, such as `{"strength": 0.1}`. They, and those of a
            system that is given itself, take precedence over settings of the same name.

    Attributes:
        classes_: The labels in the order of the columns of `predict_proba`, sorted as scikit-learn sorts them; empty
            where ratings are learnt.
        levels_: The levels from the lowest to the highest.
        system_: The system that was trained.
        fitted_: What it has learnt.
    """

    system_: System
    fitted_: Fitted
    objective_: Objective
    settings_: Settings
    classes_: npt.NDArray[Any]
    levels_: list[Any]
    ordered_: bool
    documents_: int
    dimensions_: int
    widths_: dict[str, int]
    parts_: dict[str, str]
    training_: dict[str, Any]
    name_: str
    note_: str
    sha256_: str
    calibration_: Calibration
    scale_: RankScale | None
    familiarity_: Familiarity | None
    neighbours_: Neighbours | None

    def __init__(
        self,
        system: str | System = "gcn",
        settings: Settings | dict[str, Any] | str | None = None,
        levels: Sequence[Any] | None = None,
        device: str = "auto",
        hyper_parameters: Mapping[str, Any] | None = None,
    ) -> None:
        self.system = system
        self.settings = settings
        self.levels = levels
        self.device = device
        self.hyper_parameters = hyper_parameters

    @property
    def given_settings(self) -> Settings:
        """The settings as a value, with a preset's name looked up."""
        if isinstance(self.settings, dict):
            return Settings.from_dict(self.settings)
        return self.settings if isinstance(self.settings, Settings) else preset(self.settings or "default")

    @property
    def resolved_system(self) -> System:
        """The system as a value, with its hyper-parameters."""
        system = self.system
        if not isinstance(system, System):
            if system in PRESETS:
                raise CohegraphError(
                    f"'{system}' is a preset and not a system: write CoherenceModel(settings='{system}').",
                    code="no-system",
                )
            system = system_named(system).of(self.given_settings)
        return system.changed(self.hyper_parameters or {})

    @property
    def resolved_settings(self) -> Settings:
        """The settings as a value; those that are hyper-parameters of the system have the system's values."""
        return settings_with(self.resolved_system, self.given_settings)

    @property
    def featurizer(self) -> Featurizer:
        """What turns texts into features: of a trained model, with the settings that it was trained with."""
        settings = self.settings_ if self.__sklearn_is_fitted__() else self.resolved_settings
        return Featurizer(settings, device=self.device)

    @property
    def needs(self) -> frozenset[Material]:
        """What features must hold in addition to counts, vector and tallies."""
        return self.resolved_system.needs

    @property
    def is_regressor(self) -> bool:
        """Whether it learns ratings rather than levels."""
        return not self.given_settings.objective.is_of_levels

    @property
    def levels_with_probabilities(self) -> list[Any]:
        """The levels that assessments give a probability of: all, or none where ratings were not calibrated."""
        known = self.settings_.objective.is_of_levels or self.calibration_.spread is not None
        return self.levels_ if known else []

    def featurize(self, texts: Texts, *, show_progress: bool = False) -> Features:
        """The features of texts; features are returned as they are if they were made with the same settings."""
        settings = self.resolved_settings
        if not isinstance(texts, Features):
            featurizer = Featurizer(settings, device=self.device)
            return featurizer.featurize(checked_texts(texts), needs=self.needs, show_progress=show_progress)
        if texts.settings is not None:
            check_same_settings(settings.of_features(), texts.settings.of_features())
        check_material(texts, self.needs)
        return texts

    def fit(
        self,
        texts: Texts,
        labels: Labels,
        *,
        groups: Sequence[Any] | None = None,
        dev: tuple[Texts, Labels] | tuple[Texts, Labels, Sequence[Any]] | None = None,
        on_epoch: Callable[[int, Self], None] | None = None,
        bare: bool = False,
        trainer: Trainer | None = None,
    ) -> Self:
        """Train on graded texts.

        Args:
            texts: The documents.
            labels: Their levels, any two or more different strings or whole numbers; or their ratings, where these are
                learnt (`objective.kind`).
            groups: What each document belongs to (a prompt, a source): ranking compares documents of a group only.
            dev: Documents and labels, and groups for a ranking, to choose the epoch with. Without them
                `training.dev_share` of the documents are held out for it, and where that is 0 the last epoch is taken.
            on_epoch: Called after every epoch with its number and the model as it is then.
            bare: Learn to predict and nothing else: predictions are not calibrated on dev documents, and how unlike its
                training documents a text is will not be known.
            trainer: How to train, by default in memory; see `cohegraph.scale.training.ChunkTrainer`.
        """
        system, settings = self.resolved_system, self.resolved_settings
        answers = Answers.of(labels, groups, self.levels, settings.objective)
        if len(texts) != len(answers.targets):
            raise CohegraphError(
                f"There are {len(texts)} documents and {len(answers.targets)} labels: give one label each.",
                code="label-count",
            )
        features = self.featurize(texts)
        further = None if dev is None else (self.featurize(dev[0]), *dev[1:])
        training, held_out = answers.split(features, further, settings)
        for part in (training,) if held_out is None else (training, held_out):
            check_patterns(part.features, settings)
        attributes: dict[str, Any] = {
            "system_": system,
            "objective_": answers.objective,
            "settings_": settings,
            "classes_": answers.classes,
            "levels_": answers.levels,
            "ordered_": answers.ordered,
            "documents_": len(training),
            "dimensions_": features.vectors.shape[1],
            "widths_": widths_of(features, system.needs),
            "parts_": dict(features.parts),
            "name_": system.name,
            "note_": "",
            "sha256_": "",
            "calibration_": Calibration(),
            "scale_": None,
            "familiarity_": None,
            "neighbours_": None,
        }

        def watched(number: int, predict: Predict) -> None:
            view = copy(self)
            view.__dict__.update(attributes, fitted_=_InTraining(predict))
            if on_epoch is not None:
                on_epoch(number, view)

        lesson = Lesson(
            _of_settings(training, settings),
            answers.objective,
            None if held_out is None else _of_settings(held_out, settings),
            settings.training.seed,
            None if on_epoch is None else watched,
            answers.label_order,
        )
        learnt = _fitted(system, lesson, trainer)
        # What predicts is what a file would give: a loaded model has the same digits.
        arrays = {name: np.ascontiguousarray(array) for name, array in learnt.arrays().items()}
        fitted = system.restored(arrays, answers.objective)
        # Only now, so that a training which fails leaves an earlier one whole.
        self.__dict__.update(attributes, fitted_=fitted)
        self.training_ = {
            "documents": answers.counted(training.targets),
            "dev_documents": 0 if held_out is None else len(held_out),
            "chosen": dict(learnt.chosen),
            "dev_accuracy": None,
        }
        self._look_back(training, held_out, bare)
        return self

    def use_validation(self, validation: Validation) -> None:
        """Take what cross-validation has found about models like this one: what to expect, and the calibration."""
        self._check_fitted()
        self.training_["validation"] = validation.figures
        self.calibration_ = validation.calibration

    def keep_neighbours(
        self,
        documents: Texts,
        labels: Labels,
        *,
        ids: Sequence[str] | None = None,
        texts: Sequence[str] | None = None,
    ) -> None:
        """Keep training documents with the model, so that explanations can show those most similar to a new one.

        Args:
            documents: The training documents, or others with levels of the same kind; of these, pattern counts are
                kept and nothing else.
            labels: Their levels or ratings.
            ids: Their names; by default their numbers, counted from 1.
            texts: Their texts, only if these are to be kept too: whoever has the model can then read them.
        """
        self._check_fitted()
        features = self._matching(documents)
        names = tuple(map(well_formed, map(str, range(1, len(features) + 1) if ids is None else ids)))
        kept = None if texts is None else tuple(map(well_formed, texts))
        if self.settings_.objective.is_of_levels:
            levels = numbers_of(labels, self.levels_, "kept")
        else:
            ratings = self.ratings_of(labels)
            levels = np.searchsorted(self.settings_.objective.thresholds, ratings, side="right")
        for what, found in (("labels", levels), ("ids", names), ("texts", names if kept is None else kept)):
            if len(found) != len(features):
                raise CohegraphError(
                    f"There are {len(features)} documents to keep and {len(found)} {what}.", code="label-count"
                )
        self.neighbours_ = Neighbours(features.counts, levels, names, kept)

    def ratings_of(self, labels: Labels) -> npt.NDArray[np.float64]:
        """Ratings as numbers from 0 to 1."""
        return as_ratings(labels, self.resolved_settings.objective.range)

    def score(self, texts: Texts, labels: Labels, sample_weight: npt.NDArray[Any] | None = None) -> float:
        """How good predictions are: of levels, the share that is right; of ratings, R²; of a ranking, ordered pairs."""
        predicted = self.predict(texts)
        if self.settings_.objective.is_of_levels:
            return float(np.average(predicted == as_labels(labels), weights=sample_weight))
        ratings = self.ratings_of(labels)
        if self.objective_.kind == "ranking":
            return ordered_pairs(predicted, Targets(ratings))
        low, high = self.settings_.objective.range
        error = np.average(((predicted - low) / (high - low) - ratings) ** 2, weights=sample_weight)
        spread = np.average((ratings - np.average(ratings, weights=sample_weight)) ** 2, weights=sample_weight)
        return float(1 - error / spread) if spread else 0.0

    def predict(self, texts: Texts) -> npt.NDArray[Any]:
        """The level of every text; its rating, where ratings are learnt; its score, where a ranking is."""
        self._check_fitted()
        if self.objective_.outputs == 1:
            shares = self._judge.shares(self.predictions(texts))
            low, high = self.settings_.objective.range if self.objective_.kind == "rating" else (0.0, 100.0)
            return low + shares * (high - low)
        return np.asarray(self.classes_[self.predict_proba(texts).argmax(axis=1)])

    def predict_proba(self, texts: Texts) -> npt.NDArray[np.float64]:
        """The probability of every level, (texts, classes), columns as in `classes_`."""
        self._check_fitted()
        if self.objective_.outputs == 1:
            raise CohegraphError(
                "This model learnt ratings and has no classes to give probabilities of: use predict or assess.",
                code="no-classes",
            )
        return self.calibration_(self.predictions(texts))

    def predictions(self, texts: Texts) -> npt.NDArray[np.float64]:
        """What the system itself predicts: probabilities that are not calibrated, columns as in `classes_`.

        Of a model that learnt ratings, the rating from 0 to 1; of one that learnt to rank, its rank score.
        """
        self._check_fitted()
        features = self._matching(texts)
        if not isinstance(features.vectors, MappedVectors):
            return self._predicted(features)
        starts = range(0, len(features), _READ_AT_ONCE)
        return np.concatenate(
            [self._predicted(features[start : start + _READ_AT_ONCE].in_memory()) for start in starts]
        )

    def assess(self, texts: Texts, *, show_progress: bool = False) -> list[Assessment]:
        """Level, score, probabilities, counts and notices of every text."""
        return self.assessed(texts, show_progress=show_progress)[1]

    def assessed(self, texts: Texts, *, show_progress: bool = False) -> tuple[Features, list[Assessment]]:
        """`assess`, and the features that it looked at."""
        self._check_fitted()
        features = self._matching(texts, show_progress=show_progress)
        rows = zip(
            self._counts(features),
            self._judge.verdicts(self._predicted(features)),
            [None] * len(features) if self.familiarity_ is None else self.familiarity_.unlikeness(features).tolist(),
            strict=True,
        )
        return features, [self._assessment(*row) for row in rows]

    def explain(self, text: str, *, what_if: Collection[int] | int | None = None) -> Explanation:
        """Why a text has its level: shares of patterns, links, loose sentences, and what changes would do.

        Args:
            text: The text.
            what_if: The numbers of the sentences whose removal and move are tried, or how many of them, from the
                loosest on; by default a dozen.
        """
        self._check_fitted()
        return explain(self, text, what_if=MOST_SENTENCES if what_if is None else what_if)

    def save(self, folder: str | Path, *, name: str | None = None, note: str = "") -> None:
        """Write the model to a folder that appears only when it is complete.

        Args:
            folder: Where to. A model that is there is replaced.
            name: What the model is called in its card and in results; by default the folder's name.
            note: A paragraph for its card.
        """
        self._check_fitted()
        self.name_, self.note_ = name or Path(folder).resolve().name, note
        self.sha256_ = write(Path(folder), Saved(**{one: getattr(self, f"{one}_") for one in Saved.names()}))

    @classmethod
    def load(
        cls,
        folder: str | Path,
        *,
        parser: str | None = None,
        vectors: str | None = None,
        encoder: str | None = None,
        device: str = "auto",
    ) -> Self:
        """Read a model from a folder.

        Args:
            folder: Where `save` wrote it.
            parser: Where the parser is on this machine, where that differs from the machine of the training.
            vectors: Likewise the word vectors.
            encoder: Likewise the encoder.
            device: Where the encoder runs.
        """
        places = {"parser.model": parser, "vectors.source": vectors, "encoder.source": encoder}
        saved = read(Path(folder), {name: place for name, place in places.items() if place is not None})
        own = own_parameters(saved.system, saved.settings.flat())
        model = cls(saved.system.name, saved.settings, saved.levels, device, own or None)
        model.__dict__.update({f"{one}_": getattr(saved, one) for one in Saved.names()})
        return model

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The arguments of the constructor and, if deep, all settings and hyper-parameters one by one.

        These are named `settings__GROUP__NAME` and `hyper_parameters__NAME`.
        """
        params = super().get_params()
        if deep:
            settings = self.resolved_settings.flat()
            params |= single_params("settings", settings)
            params |= single_params("hyper_parameters", own_parameters(self.resolved_system, settings))
        return params

    def _take_params(self, params: dict[str, Any]) -> None:
        settings, own = (taken_params(prefix, params) for prefix in ("settings", "hyper_parameters"))
        super()._take_params(params)
        if settings:
            self.settings = self.resolved_settings.replaced(settings)
            kept = {name: value for name, value in (self.hyper_parameters or {}).items() if name not in settings}
            self.hyper_parameters = kept or None
        if own:
            self.resolved_system.changed(own)
            self.hyper_parameters = {**(self.hyper_parameters or {}), **own}

    def _look_back(self, training: Graded, dev: Graded | None, bare: bool) -> None:
        """Take from the documents what verdicts need: what to expect, how sure to be, and what is unlike them."""
        if self.objective_.kind == "ranking":
            self.scale_ = RankScale.of(self._predicted(training.features)[:, 0])
        if not bare:
            self.familiarity_ = Familiarity.of(training.features)
        if dev is None:
            return
        found = self._predicted(dev.features)
        if not self.settings_.objective.is_of_levels:
            self.training_["dev_accuracy"] = ordered_pairs(found[:, 0], dev.targets)
            if self.objective_.kind == "rating" and not bare:
                self.calibration_ = Calibration.of_ratings(found[:, 0], dev.targets.values)
            return
        codes = np.argsort(level_numbers(self.classes_, self.levels_))[dev.targets.values]
        self.training_["dev_accuracy"] = float((found.argmax(axis=1) == codes).mean())
        if not bare:
            self.calibration_ = Calibration.of(found, codes)

    def _predicted(self, features: Features) -> npt.NDArray[np.float64]:
        """The predictions for documents whose features match, columns as in `classes_`."""
        by_level = self.fitted_.predict(_with_settings(features, self.settings_))
        return by_level[:, level_numbers(self.classes_, self.levels_)] if len(self.classes_) else by_level

    @property
    def _judge(self) -> Judge:
        return Judge(
            self.settings_.objective, self.classes_, self.levels_, self.ordered_, self.calibration_, self.scale_
        )

    def _assessment(self, counts: dict[str, int], verdict: Verdict, unlikeness: float | None) -> Assessment:
        system, settings = self.system_, self.settings_
        english = counts.pop("english")
        notices = notices_of(
            counts,
            k=settings.subgraphs.k if "unseen_subgraphs" in counts else None,
            fewest_sentences=system.fewest_sentences(settings),
            most_sentences=system.most_sentences,
            reads=system.reads,
            unlikeness=unlikeness,
            looks_english=settings.language.expected == "any" or english != 0,
            linkers=settings.links.linkers,
        )
        if not counts["sentences"]:
            verdict = Verdict(None, None, verdict.probabilities)
        return Assessment(*verdict, counts, notices, unlikeness)

    def _counts(self, features: Features) -> list[dict[str, int]]:
        """What an assessment reports of every document."""
        rows = [dict(zip(TALLIES, row, strict=True)) for row in features.tallies.tolist()]
        if isinstance(self.fitted_, CountsUnseen) and "patterns" in self.system_.reads:
            for counts, number in zip(rows, self.fitted_.unseen_subgraphs(features.counts).tolist(), strict=True):
                counts["unseen_subgraphs"] = number
        for name in SEQUENCES:
            if name in self.system_.needs:
                for counts, sequence in zip(rows, features.sequences(name), strict=True):
                    counts["read_tokens"] = int(sequence.sentences.sum())
        return rows

    def _matching(self, texts: Texts, *, show_progress: bool = False) -> Features:
        """Features of texts, made with the settings and the pretrained parts of the training."""
        needs = self.system_.needs
        if isinstance(texts, Features):
            features = texts
            if features.settings is not None:
                wanted = self.settings_.of_features(places=False)
                check_same_settings(wanted, features.settings.of_features(places=False))
            check_material(features, needs)
        else:
            check_places(self.parts_, self.settings_)
            checked = checked_texts(texts)
            features = self.featurizer.featurize(checked, needs=needs, show_progress=show_progress)
        check_patterns(features, self.settings_)
        check_parts(self.parts_, features.parts)
        check_widths(features, self.dimensions_, self.widths_)
        return features


@dataclass(frozen=True)
class _InTraining:
    """A system in training: it can predict, and nothing else."""

    predict: Predict


def _fitted(system: System, lesson: Lesson, trainer: Trainer | None) -> Fitted:
    if trainer is None:
        return system.fit(lesson)
    if not isinstance(system, TrainsInChunks):
        raise CohegraphError(
            f"The system '{system.name}' is trained in memory alone: leave out the trainer.", code="not-in-chunks"
        )
    return system.fit_with(lesson, trainer)


def own_parameters(system: System, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Those hyper-parameters of a system that are not settings."""
    return {name: value for name, value in system.hyper_parameters.items() if name not in settings}


def settings_with(system: System, settings: Settings) -> Settings:
    """Settings with the values of those hyper-parameters of a system that are settings."""
    known = settings.flat()
    return settings.replaced({name: value for name, value in system.hyper_parameters.items() if name in known})


def _with_settings(features: Features, settings: Settings) -> Features:
    """Features that say which settings they were made with; their patterns have been compared with these."""
    return features if features.settings is not None else replace(features, settings=settings)


def _of_settings(part: Graded, settings: Settings) -> Graded:
    return Graded(_with_settings(part.features, settings), part.targets)
