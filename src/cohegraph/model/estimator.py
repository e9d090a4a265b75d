"""What every model that people use has in common: labels, the dev split, scores and assessments."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable, Collection, Sequence
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from cohegraph.errors import CohegraphError
from cohegraph.features import TALLIES, Features, Featurizer, Material
from cohegraph.labels import EncodedLabels, as_labels, encode_labels
from cohegraph.mapped_vectors import MappedVectors
from cohegraph.model.assessment import NOT_ENGLISH, Assessment, unlike_notices
from cohegraph.model.calibration import Calibration
from cohegraph.model.checks import check_material, check_patterns, check_same_settings, checked_texts
from cohegraph.model.conventions import single_params, taken_params
from cohegraph.model.familiarity import Familiarity
from cohegraph.model.neighbours import Neighbours
from cohegraph.model.saved_model import Described, SavedModel
from cohegraph.model.training import Trainer, TrainerInMemory
from cohegraph.model.validation import Validation
from cohegraph.presets import preset
from cohegraph.settings import Settings
from cohegraph.text.document import Document, well_formed
from cohegraph.text.language import looks_english

if TYPE_CHECKING:
    from cohegraph.explain.explanation import Explanation

Texts = Sequence[str] | Sequence[Document] | Features
Labels = Sequence[Any] | npt.NDArray[Any]
Codes = npt.NDArray[np.int64]
# Documents whose vectors are read from disk together.
_READ_AT_ONCE = 4_096
Watch = Callable[[int, dict[str, Any]], None]


@dataclass(frozen=True)
class Lesson:
    """What is learnt from: training documents and, if there are any, dev documents; codes number ``labels.classes``."""

    settings: Settings
    labels: EncodedLabels
    features: Features
    codes: Codes
    dev: tuple[Features, Codes] | None
    trainer: Trainer


@dataclass(frozen=True)
class Learnt:
    """What a training leaves: attributes of the model, and figures that its card and its description give."""

    attributes: dict[str, Any]
    figures: dict[str, Any]


class CoherenceEstimator(SavedModel[Described]):
    """A model with scikit-learn's conventions that tells the level of documents; see its subclasses.

    A subclass says how it learns, how it predicts, and what it saves besides what all models save.
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

    @property
    def system_name(self) -> str:
        """The name of the system that the model is of, as `cohegraph systems` lists it."""
        return "gcn"

    @property
    def needs(self) -> frozenset[Material]:
        """What features must hold besides counts, vector and tallies."""
        return frozenset()

    def featurize(self, texts: Texts, *, show_progress: bool = False) -> Features:
        """The features of texts; features are given back as they are if they were made with the same settings."""
        settings = self.resolved_settings
        if not isinstance(texts, Features):
            return self.featurizer.featurize(checked_texts(texts), needs=self.needs, show_progress=show_progress)
        if texts.settings is not None:
            check_same_settings(settings.of_features(), texts.settings.of_features())
        check_material(texts, self.needs)
        return texts

    def fit(
        self,
        texts: Texts,
        labels: Labels,
        *,
        dev: tuple[Texts, Labels] | None = None,
        on_epoch: Callable[[int, Self], None] | None = None,
        bare: bool = False,
        trainer: Trainer | None = None,
    ) -> Self:
        """Train on graded texts.

        Args:
            texts: The documents.
            labels: Their levels: any two or more different strings or numbers.
            dev: Documents and labels to choose the epoch with. Without them `training.dev_share` of the documents are
                held out for it, and where that is 0 the last epoch is taken.
            on_epoch: Called after every epoch with its number and the model as it is then.
            bare: Learn the levels and nothing else: probabilities are not calibrated on dev documents, and how unlike
                its training documents a text is will not be known.
            trainer: How the GCN is trained, by default in memory; see `cohegraph.scale.training.ChunkTrainer`.
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
        for documents in (rows,) if held_out is None else (rows, held_out[0]):
            check_patterns(documents, settings)
        attributes: dict[str, Any] = {
            "settings_": settings,
            "classes_": classes,
            "levels_": encoded.levels,
            "ordered_": encoded.ordered,
            "documents_": len(rows),
            "parts_": dict(features.parts),
            "name_": type(self).__name__,
            "note_": "",
            "calibration_": Calibration(),
            "familiarity_": None,
            "neighbours_": None,
        }

        def watch(number: int, now: dict[str, Any]) -> None:
            view = copy(self)
            view.__dict__.update(attributes | now)
            if on_epoch is not None:
                on_epoch(number, view)

        lesson = Lesson(settings, encoded, rows, codes[training], held_out, trainer or TrainerInMemory())
        learnt = self._learn(lesson, None if on_epoch is None else watch)
        # Only now, so that a training which fails leaves an earlier one whole.
        self.__dict__.update(attributes | learnt.attributes)
        self.training_ = {
            "documents": {str(level): int((lesson.codes == code).sum()) for code, level in enumerate(classes)},
            "dev_documents": 0 if held_out is None else len(held_out[0]),
            **learnt.figures,
        }
        if not bare:
            self._look_back(rows, held_out)
        return self

    def _look_back(self, training: Features, dev: tuple[Features, Codes] | None) -> None:
        """Take from the documents what single verdicts need: how sure to be, and what is unlike all of them."""
        self.familiarity_ = Familiarity.of(training)
        if dev is not None:
            self.calibration_ = Calibration.of(self._probabilities(dev[0]), dev[1])

    def use_validation(self, validation: Validation) -> None:
        """Take what cross-validation has found of models like this one: what to expect of it, and its calibration."""
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
        """Keep training documents beside the model, so that explanations can show those most similar to a new one.

        Args:
            documents: The training documents, or others with levels of the same kind; of these, pattern counts are
                kept and nothing else.
            labels: Their levels.
            ids: Their names; by default their numbers, counted from 1.
            texts: Their texts, only if these are to be kept too: whoever has the model can then read them.
        """
        self._check_fitted()
        features = self._matching(documents)
        names = tuple(map(well_formed, map(str, range(1, len(features) + 1) if ids is None else ids)))
        kept = None if texts is None else tuple(map(well_formed, texts))
        codes = _codes(as_labels(labels), self.classes_, "kept")
        for what, found in (("labels", codes), ("ids", names), ("texts", names if kept is None else kept)):
            if len(found) != len(features):
                raise CohegraphError(f"There are {len(features)} documents to keep and {len(found)} {what}.")
        self.neighbours_ = Neighbours(features.counts, codes, names, kept)

    def score(self, texts: Texts, labels: Labels, sample_weight: npt.NDArray[Any] | None = None) -> float:
        """The share of texts whose level is predicted right; labels may be any numbers, also fractions."""
        return float(np.average(self.predict(texts) == as_labels(labels), weights=sample_weight))

    def predict(self, texts: Texts) -> npt.NDArray[Any]:
        """The most probable level of every text."""
        probabilities = self.predict_proba(texts)
        return np.asarray(self.classes_[probabilities.argmax(axis=1)])

    def predict_proba(self, texts: Texts) -> npt.NDArray[np.float64]:
        """The probability of every level, (texts, classes), columns as in `classes_`."""
        self._check_fitted()
        features = self._matching(texts)
        if not isinstance(features.vectors, MappedVectors):
            return self.calibration_(self._probabilities(features))
        starts = range(0, len(features), _READ_AT_ONCE)
        parts = [self._probabilities(features[start : start + _READ_AT_ONCE].in_memory()) for start in starts]
        return self.calibration_(np.concatenate(parts))

    def assess(
        self, texts: Texts, *, show_progress: bool = False, spoken: Sequence[str] | None = None
    ) -> list[Assessment]:
        """Level, probabilities, counts and notices of every text.

        Where texts are given as features, ``spoken`` are the texts themselves, if they are at hand: that a text is not
        English can be told by nothing else.
        """
        return self.assessed(texts, show_progress=show_progress, spoken=spoken)[1]

    def assessed(
        self, texts: Texts, *, show_progress: bool = False, spoken: Sequence[str] | None = None
    ) -> tuple[Features, list[Assessment]]:
        """`assess`, and the features that it looked at."""
        self._check_fitted()
        features = self._matching(texts, show_progress=show_progress)
        results = []
        originals: Sequence[str | Document | None] = texts if not isinstance(texts, Features) else spoken or []
        rows = zip(
            self._counts(features),
            self.calibration_(self._probabilities(features)),
            [None] * len(features) if self.familiarity_ is None else self.familiarity_.unlikeness(features).tolist(),
            originals or [None] * len(features),
            strict=True,
        )
        for counts, probabilities, unlike, text in rows:
            notices = [*self._notices(counts), *unlike_notices(unlike if counts["sentences"] else None)]
            if text is not None and not looks_english(text.text if isinstance(text, Document) else text):
                notices.append(NOT_ENGLISH)
            by_class = dict(zip(self.classes_.tolist(), probabilities.tolist(), strict=True))
            results.append(
                Assessment(
                    level=self.classes_[probabilities.argmax()].item() if counts["sentences"] else None,
                    probabilities={level: by_class[level] for level in self.levels_},
                    counts=counts,
                    notices=tuple(notices),
                    unlikeness=unlike,
                )
            )
        return features, results

    def explain(self, text: str, *, what_if: Collection[int] | int | None = None) -> Explanation:
        """Why a text has its level: shares of patterns, links, loose sentences, and what changes would do.

        Args:
            text: The text.
            what_if: The numbers of the sentences whose removal and move are tried, or how many of them, from the
                loosest on; by default a dozen.
        """
        from cohegraph.explain.explain import MOST_SENTENCES, explain

        self._check_fitted()
        return explain(self, text, what_if=MOST_SENTENCES if what_if is None else what_if)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The arguments of the constructor and, if deep, every single setting as `settings__GROUP__NAME`."""
        params = super().get_params()
        if deep:
            params |= single_params("settings", self.resolved_settings.flat())
        return params

    def _take_params(self, params: dict[str, Any]) -> None:
        changes = taken_params("settings", params)
        super()._take_params(params)
        if changes:
            self.settings = self.resolved_settings.replaced(changes)

    @abstractmethod
    def _learn(self, lesson: Lesson, watch: Watch | None) -> Learnt:
        """Learn; ``watch`` is called after every epoch with its number and the attributes of the model as it is then.

        Attributes of the model itself are not touched.
        """

    @abstractmethod
    def _probabilities(self, features: Features) -> npt.NDArray[np.float64]:
        """The probabilities of documents whose features match, columns as in `classes_`."""

    def _counts(self, features: Features) -> list[dict[str, int]]:
        """What an assessment reports of every document."""
        return [dict(zip(TALLIES, row, strict=True)) for row in features.tallies.tolist()]

    @abstractmethod
    def _notices(self, counts: dict[str, int]) -> tuple[str, ...]:
        """What limits the verdict on a document, a sentence each."""

    @classmethod
    def _described(cls, about: Described, settings: Settings, device: str) -> Self:
        return cls(settings=settings, levels=about.levels, device=device)

    @property
    def _fitted_needs(self) -> frozenset[Material]:
        """`needs` as they were in training."""
        return frozenset()

    def _matching(self, texts: Texts, *, show_progress: bool = False) -> Features:
        """Features of texts, made with the settings and the pretrained parts of the training."""
        needs = self._fitted_needs
        if isinstance(texts, Features):
            features = texts
            if features.settings is not None:
                wanted = self.settings_.of_features(places=False)
                check_same_settings(wanted, features.settings.of_features(places=False))
            check_material(features, needs)
        else:
            self._check_places()
            featurizer = Featurizer(self.settings_, device=self.device)
            features = featurizer.featurize(checked_texts(texts), needs=needs, show_progress=show_progress)
        check_patterns(features, self.settings_)
        for part, identity in self.parts_.items():
            found = features.parts.get(part, identity)
            if found == identity:
                continue
            message = f"The model was trained with the {part} {identity}, and this is {found}"
            if part != "parser":
                raise CohegraphError(f"{message}: name the right one when loading the model, or train anew.")
            warnings.warn(f"{message}: results may differ a little.", stacklevel=3)
        if features.vectors.shape[1] != self._dimensions:
            raise CohegraphError(
                f"The model takes vectors of {self._dimensions} dimensions, and the encoder gives "
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


def _codes(labels: npt.NDArray[Any], classes: npt.NDArray[Any], which: str = "dev") -> Codes:
    unknown = sorted(set(labels.tolist()) - set(classes.tolist()), key=str)
    if unknown:
        raise CohegraphError(f"The {which} documents have a label that the training documents lack: '{unknown[0]}'.")
    return np.searchsorted(classes, labels)


def _split(codes: Codes, share: float, seed: int) -> tuple[Codes, Codes]:
    """Training and dev documents, each with all classes in their shares."""
    from sklearn.model_selection import train_test_split

    try:
        training, dev = train_test_split(np.arange(len(codes)), test_size=share, random_state=seed, stratify=codes)
    except ValueError as error:
        raise CohegraphError(
            f"training.dev_share={share} cannot be held out of {len(codes)} documents: {error}"
        ) from None
    return np.sort(training), np.sort(dev)
