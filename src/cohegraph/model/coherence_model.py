"""The model that people use: train it on graded texts, save it, and assess texts that it has never seen."""

from collections.abc import Callable, Collection, Mapping, Sequence
from copy import copy
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np
import numpy.typing as npt

from cohegraph.assessment import Assessment
from cohegraph.errors import CohegraphError
from cohegraph.explain.explain import MOST_SENTENCES, explain
from cohegraph.explain.explanation import Explanation
from cohegraph.explain.neighbours import Neighbours
from cohegraph.features import Features, Featurizer, Material
from cohegraph.labels import Labels, as_labels, as_ratings
from cohegraph.learning.calibration import Calibration
from cohegraph.learning.objectives import Targets, ordered_pairs
from cohegraph.model.answers import Answers, group_numbers, level_numbers
from cohegraph.model.checks import Texts, check_like_training, check_places, features_of, widths_of
from cohegraph.model.conventions import Estimator, single_params, taken_params
from cohegraph.model.label_checks import check_count, check_groups
from cohegraph.model.learnt import Learnt
from cohegraph.model.saving import read, write
from cohegraph.model.validation import Validation
from cohegraph.presets import PRESETS, preset
from cohegraph.settings import Settings
from cohegraph.strings import well_formed
from cohegraph.systems.gcn.training import Trainer
from cohegraph.systems.registry import system_named
from cohegraph.systems.system import Fitted, Graded, Lesson, Predict, System, TrainsInChunks


class CoherenceModel(Estimator):
    """Measures how coherent documents are, with any system.

    It follows scikit-learn's conventions: `clone`, `get_params`, `set_params(settings__subgraphs__k=5)` and
    `cross_val_score(model, texts, labels)` work. Every method that takes texts also takes their `Features`, so that
    these are computed once: `features = model.featurize(texts)`.

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
        learnt_: All that was learnt. Each of its values is also an attribute of the model, with an underscore.
        classes_: The labels in the order of the columns of `predict_proba`, sorted as scikit-learn sorts them; empty
            where ratings are learnt.
        levels_: The levels from the lowest to the highest.
        system_: The system that was trained.
        fitted_: What it has learnt.
        settings_: The settings that it was trained with.
    """

    learnt_: Learnt
    system_: System
    fitted_: Fitted
    settings_: Settings
    classes_: npt.NDArray[Any]
    levels_: list[Any]
    ordered_: bool
    documents_: int
    parts_: dict[str, str]
    training_: dict[str, Any]
    calibration_: Calibration
    neighbours_: Neighbours | None
    name_: str
    note_: str

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """The values of ``learnt_``, which an untrained model does not have."""
            if name.startswith("_") or not name.endswith("_"):
                raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
            if not self.__sklearn_is_fitted__():
                from sklearn.exceptions import NotFittedError

                raise NotFittedError(f"This {type(self).__name__} is not trained yet: call fit first.")
            return getattr(self.learnt_, name.removesuffix("_"))

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

    def __sklearn_is_fitted__(self) -> bool:
        return "learnt_" in self.__dict__

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags, InputTags, RegressorTags, Tags, TargetTags

        return Tags(
            estimator_type="regressor" if self.is_regressor else "classifier",
            target_tags=TargetTags(required=True),
            classifier_tags=None if self.is_regressor else ClassifierTags(),
            regressor_tags=RegressorTags() if self.is_regressor else None,
            input_tags=InputTags(two_d_array=False, string=True),
        )

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
        settings, known = self.given_settings, self.given_settings.flat()
        system = self.resolved_system.hyper_parameters
        return settings.replaced({name: value for name, value in system.items() if name in known})

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
        featurizer = Featurizer(self.resolved_settings, device=self.device)
        return features_of(texts, featurizer, self.needs, show_progress=show_progress)

    def fit(
        self,
        texts: Texts,
        labels: Labels,
        *,
        groups: Sequence[Any] | None = None,
        sample_weight: npt.ArrayLike | None = None,
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
            sample_weight: How much each document counts; by default all count the same. In a ranking, the weight of a
                pair is the product of the weights of its documents.
            dev: Documents and labels, and groups for a ranking, to choose the epoch with. Without them
                `training.dev_share` of the documents are held out; where that is 0, the last epoch is used.
            on_epoch: Called after every epoch with its number and the model as it is then.
            bare: Learn to predict and nothing else: predictions are not calibrated on dev documents, and how unlike its
                training documents a text is will not be known.
            trainer: How to train, by default in memory; see `cohegraph.scale.training.ChunkTrainer`.
        """
        system, settings = self.resolved_system, self.resolved_settings
        answers = Answers.of(labels, groups, self.levels, settings.objective, sample_weight)
        check_count(len(texts), "labels", len(answers.targets))
        features = self.featurize(texts)
        further = None if dev is None else (self.featurize(dev[0]), *dev[1:])
        training, held_out = answers.split(features, further, settings)
        begun = _begun(system, settings, answers, training, held_out)

        def watched(number: int, predict: Predict) -> None:
            view = copy(self)
            view.learnt_ = replace(begun, fitted=cast(Fitted, SimpleNamespace(predict=predict)))
            if on_epoch is not None:
                on_epoch(number, view)

        watch, order = None if on_epoch is None else watched, answers.label_order
        lesson = Lesson(training, answers.objective, held_out, settings.training.seed, watch, order)
        fitted = _fitted(system, lesson, trainer)
        # What predicts is what a file would give: a loaded model has the same digits.
        arrays = {name: np.ascontiguousarray(array) for name, array in fitted.arrays().items()}
        figures = {**begun.training, "chosen": dict(fitted.chosen)}
        learnt = replace(begun, fitted=system.restored(arrays, answers.objective), training=figures)
        # Only now, so that a training which fails leaves an earlier one whole.
        self.learnt_ = learnt.looked_back(training, held_out, bare=bare)
        return self

    def use_validation(self, validation: Validation) -> None:
        """Take over what cross-validation found about models like this one: what to expect, and the calibration."""
        figures = {**self.training_, "validation": validation.figures}
        self.learnt_ = replace(self.learnt_, training=figures, calibration=validation.calibration)

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
        features, objective = self._matching(documents), self.settings_.objective
        names = tuple(map(well_formed, map(str, range(1, len(features) + 1) if ids is None else ids)))
        kept = None if texts is None else tuple(map(well_formed, texts))
        if objective.is_of_levels:
            levels = level_numbers(labels, self.levels_, "kept")
        else:
            ratings = as_ratings(labels, objective.span)
            # Of a ranking, as the scores of documents: the share of these documents that are rated lower.
            shares = np.searchsorted(np.sort(ratings), ratings) / len(ratings) if objective.span is None else ratings
            levels = np.searchsorted(objective.thresholds, shares, side="right")
        for what, found in (("labels", levels), ("ids", names), ("texts", names if kept is None else kept)):
            check_count(len(features), what, len(found), "documents to keep")
        self.learnt_ = replace(self.learnt_, neighbours=Neighbours(features.counts, levels, names, kept))

    def score(
        self,
        texts: Texts,
        labels: Labels,
        sample_weight: npt.NDArray[Any] | None = None,
        *,
        groups: Sequence[Any] | None = None,
    ) -> float:
        """How good predictions are: the accuracy of levels, R² of ratings, the share of pairs that are ranked right.

        Only documents of the same group are compared in a ranking, which needs ``groups``.
        """
        objective = self.settings_.objective
        check_groups(groups, objective)
        predicted = self.predict(texts)
        if objective.is_of_levels:
            return float(np.average(predicted == as_labels(labels), weights=sample_weight))
        low, high = objective.range
        ratings = as_ratings(labels, objective.span)
        if objective.kind == "ranking":
            return ordered_pairs(predicted, Targets(ratings, group_numbers(groups)))
        error = np.average(((predicted - low) / (high - low) - ratings) ** 2, weights=sample_weight)
        spread = np.average((ratings - np.average(ratings, weights=sample_weight)) ** 2, weights=sample_weight)
        return float(1 - error / spread) if spread else 0.0

    def predict(self, texts: Texts) -> npt.NDArray[Any]:
        """What each text is predicted to be, by what the model learnt (`objective.kind`).

        - levels: the most probable level, one of `classes_`;
        - rating: a number within `objective.range`, on the scale of the ratings it was trained with;
        - ranking: a score from 0 to 100, the percentage of training documents that rank lower, whatever the range.
        """
        objective = self.settings_.objective
        if objective.is_of_levels:
            return np.asarray(self.classes_[self.predict_proba(texts).argmax(axis=1)])
        low, high = objective.range if objective.kind == "rating" else (0.0, 100.0)
        return low + self.learnt_.shares(self.predictions(texts)) * (high - low)

    def predict_proba(self, texts: Texts) -> npt.NDArray[np.float64]:
        """The probability of every level, (texts, classes), columns as in `classes_`."""
        if not self.settings_.objective.is_of_levels:
            raise CohegraphError(
                "This model learnt ratings and has no classes to give probabilities of: use predict or assess.",
                code="no-classes",
            )
        return self.calibration_(self.predictions(texts))

    def predictions(self, texts: Texts) -> npt.NDArray[np.float64]:
        """What the system itself predicts: probabilities that are not calibrated, columns as in `classes_`.

        Of a model that learnt ratings, the rating from 0 to 1; of one that learnt to rank, its rank score.
        """
        return self.learnt_.predictions(self._matching(texts))

    def assess(self, texts: Texts, *, show_progress: bool = False) -> list[Assessment]:
        """Level, score, probabilities, counts and notices of every text."""
        return self.assessed(texts, show_progress=show_progress)[1]

    def assessed(self, texts: Texts, *, show_progress: bool = False) -> tuple[Features, list[Assessment]]:
        """`assess`, and the features that it looked at."""
        features = self._matching(texts, show_progress=show_progress)
        return features, self.learnt_.assess(features)

    def explain(self, text: str, *, what_if: Collection[int] | int | None = None) -> Explanation:
        """Why a text has its level: shares of patterns, links, loose sentences, and what changes would do.

        Args:
            text: The text.
            what_if: The numbers of the sentences whose removal and move are tried, or how many of them, from the
                loosest on; by default a dozen.
        """
        _ = self.learnt_  # an untrained model is refused before a parser is loaded
        return explain(self, text, what_if=MOST_SENTENCES if what_if is None else what_if)

    def save(self, folder: str | Path, *, name: str | None = None, note: str = "") -> None:
        """Write the model to a folder that appears only when it is complete.

        Args:
            folder: Where to. A model that is there is replaced.
            name: What the model is called in its card and in results; by default the folder's name.
            note: A paragraph for its card.
        """
        named = replace(self.learnt_, name=name or Path(folder).resolve().name, note=note)
        self.learnt_ = replace(named, sha256=write(Path(folder), named))

    @classmethod
    def load(
        cls,
        folder: str | Path,
        *,
        parser: str | None = None,
        vectors: str | None = None,
        encoder: str | None = None,
        reader: str | None = None,
        heads: str | None = None,
        device: str = "auto",
    ) -> Self:
        """Read a model from the folder that `save` wrote; the other arguments are those of `cohegraph.load`."""
        places = {
            "parser.model": parser,
            "vectors.source": vectors,
            "encoder.source": encoder,
            "reader.source": reader,
            "reader.heads": heads,
        }
        learnt = read(Path(folder), {name: place for name, place in places.items() if place is not None})
        own = own_parameters(learnt.system, learnt.settings)
        # What the system fixes is not a choice: with another system, the settings have their own values again.
        defaults = Settings().flat()
        settings = learnt.settings.replaced({name: defaults[name] for name in learnt.system.fixed})
        model = cls(learnt.system.name, settings, learnt.levels, device, own or None)
        model.learnt_ = learnt
        return model

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The arguments of the constructor and, if deep, all settings and hyper-parameters one by one.

        These are named `settings__GROUP__NAME` and `hyper_parameters__NAME`.
        """
        params = super().get_params()
        if deep:
            settings = self.resolved_settings
            params |= single_params("settings", settings.flat())
            params |= single_params("hyper_parameters", own_parameters(self.resolved_system, settings))
        return params

    def _take_params(self, params: dict[str, Any]) -> None:
        settings, own = (taken_params(prefix, params) for prefix in ("settings", "hyper_parameters"))
        super()._take_params(params)
        if own:
            self.hyper_parameters = {**(self.hyper_parameters or {}), **own}
        if settings:
            self._take_settings(settings, {**(params.get("hyper_parameters") or {}), **own})
        if own:
            _ = self.resolved_system  # raises where one of them is not valid

    def _take_settings(self, changes: Mapping[str, Any], given: Mapping[str, Any]) -> None:
        """Change single settings, also where a system or hyper-parameters hold them, but not those just given."""
        held = (self.hyper_parameters or {}).items()
        self.hyper_parameters = {name: value for name, value in held if name in given or name not in changes} or None
        if isinstance(self.system, System):
            known = self.system.hyper_parameters
            self.system = self.system.changed({name: value for name, value in changes.items() if name in known})
        self.settings = self.given_settings.replaced(changes)
        wanted, found = self.settings.flat(), self.resolved_settings.flat()
        for name in changes:
            if found[name] != wanted[name]:
                raise CohegraphError(
                    f"The setting {name}={wanted[name]} would have no effect: the system '{self.resolved_system.name}' "
                    f"or its hyper_parameters set it to {found[name]}.",
                    code="fixed-setting",
                )

    def _matching(self, texts: Texts, *, show_progress: bool = False) -> Features:
        """Features of texts, made with the settings and the pretrained parts of the training."""
        learnt = self.learnt_
        if not isinstance(texts, Features):
            check_places(learnt.parts, learnt.settings)
        needs, options = learnt.system.needs, {"places": False, "show_progress": show_progress}
        features = features_of(texts, self.featurizer, needs, **options)
        check_like_training(features, learnt)
        return features


def _begun(system: System, settings: Settings, answers: Answers, training: Graded, dev: Graded | None) -> Learnt:
    """A model before its training: all but what the system learns."""
    return Learnt(
        system=system,
        fitted=cast(Fitted, SimpleNamespace()),
        settings=settings,
        classes=answers.classes,
        levels=answers.levels,
        ordered=answers.ordered,
        documents=len(training),
        dimensions=training.features.vectors.shape[1],
        widths=widths_of(training.features, system.needs),
        parts=dict(training.features.parts),
        training={
            "documents": answers.counted(training.targets),
            "dev_documents": 0 if dev is None else len(dev),
            "chosen": {},
            "dev_quality": None,
        },
        name=system.name,
    )


def _fitted(system: System, lesson: Lesson, trainer: Trainer | None) -> Fitted:
    if trainer is None:
        return system.fit(lesson)
    if not isinstance(system, TrainsInChunks):
        raise CohegraphError(
            f"The system '{system.name}' can only be trained in memory: leave out the trainer.", code="not-in-chunks"
        )
    return system.fit_with(lesson, trainer)


def own_parameters(system: System, settings: Settings) -> dict[str, Any]:
    """Those hyper-parameters of a system that are not settings."""
    known = settings.flat()
    return {name: value for name, value in system.hyper_parameters.items() if name not in known}
