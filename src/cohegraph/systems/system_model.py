"""Any system as a model that people use: trained on graded texts, saved, loaded, and scored with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal, Protocol, Self

import numpy as np
import numpy.typing as npt
from pydantic import Field
from scipy import sparse

from cohegraph.errors import CohegraphError, DamagedFileError
from cohegraph.features import TALLIES, Features, Material
from cohegraph.graph.catalogue import catalogue
from cohegraph.graph.entity_grid import build_entity_grid
from cohegraph.model.assessment import notices
from cohegraph.model.card import CardText, on_dev
from cohegraph.model.coherence_model import CoherenceModel
from cohegraph.model.conventions import single_params, taken_params
from cohegraph.model.estimator import Codes, CoherenceEstimator, Learnt, Lesson, Watch
from cohegraph.model.persistence import Description, read_about
from cohegraph.model.saved_model import Arrays
from cohegraph.settings import Settings
from cohegraph.systems.gcn import CorpusGCN
from cohegraph.systems.neural import MOST_SENTENCES, SequenceModel
from cohegraph.systems.registry import SYSTEMS, system_named
from cohegraph.systems.system import (
    Graded,
    Probabilities,
    Reading,
    StorableSystem,
    System,
)
from cohegraph.text.token_sequence import TokenSequence

Width = Annotated[int, Field(ge=1, lt=2**20)]

# Settings of the split that all models are trained with.
_OF_ALL = ("training.seed", "training.dev_share")
# Who is concerned by settings of features: systems that read one of these. The parser concerns all.
_READERS: Mapping[str, frozenset[Reading]] = {
    "encoder": frozenset({"vector", "states"}),
    "links": frozenset({"patterns"}),
    "subgraphs": frozenset({"patterns"}),
}
_OF_SEQUENCES: tuple[Literal["states", "words"], ...] = ("states", "words")


class SystemDescription(Description):
    """The description of a model of any system."""

    system: str
    hyper_parameters: dict[str, Any]
    dimensions: Width
    widths: dict[Literal["states", "words"], Width]


class _Predicts(Protocol):
    def probabilities(self, features: Features) -> Probabilities:
        """The probability of every level, (documents, levels)."""


@dataclass(frozen=True)
class _Epoch:
    """A system in training: it can predict, and nothing else."""

    probabilities: Any


class SystemModel(CoherenceEstimator[SystemDescription]):
    """Predicts the level of a document with any system but the method itself, which is `CoherenceModel`.

    It follows scikit-learn's conventions as `CoherenceModel` does; hyper-parameters of the system can be set one by
    one too: `set_params(hyper_parameters__strength=0.1)`.

    Args:
        system: The name of a system (`cohegraph systems` lists them), or a system.
        settings: As in `CoherenceModel`. Of `training`, the seed and the dev split concern all systems.
        levels: As in `CoherenceModel`.
        device: As in `CoherenceModel`.
        hyper_parameters: Those of the system that are changed, such as `{"strength": 0.1}`. They and those of a system
            that is given itself go before settings of the same name.

    Attributes:
        classes_: The labels in the order of the columns of `predict_proba`, sorted as scikit-learn sorts them.
        levels_: The labels from the lowest to the highest level.
        system_: The system that was trained.
        fitted_: What it has learnt.
    """

    _description = SystemDescription

    system_: StorableSystem

    def __init__(
        self,
        system: str | StorableSystem,
        settings: Settings | dict[str, Any] | str | None = None,
        levels: Sequence[Any] | None = None,
        device: str = "auto",
        hyper_parameters: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(settings, levels, device)
        self.system = system
        self.hyper_parameters = hyper_parameters

    @property
    def resolved_system(self) -> StorableSystem:
        """The system as a value, with its hyper-parameters."""
        if isinstance(self.system, StorableSystem):
            system = self.system
        else:
            kind = system_named(self.system)
            if not issubclass(kind, StorableSystem):
                raise CohegraphError(
                    f"The system '{kind.name}' is trained as a CoherenceModel, not as a SystemModel: "
                    "new_model(name, settings) makes either."
                )
            system = kind.of(super().resolved_settings)
        return system.changed(self.hyper_parameters or {})

    @property
    def resolved_settings(self) -> Settings:
        """The settings as a value; those that are hyper-parameters of the system have the system's values."""
        return _with_those_of(self.resolved_system, super().resolved_settings)

    @property
    def system_name(self) -> str:
        """The name of its system."""
        return self.resolved_system.name

    @property
    def needs(self) -> frozenset[Material]:
        """What features must hold besides counts, vector and tallies."""
        return self.resolved_system.needs

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """As of `CoherenceModel`; if deep, every hyper-parameter too, as `hyper_parameters__NAME`."""
        params = super().get_params(deep)
        if deep:
            params |= single_params("hyper_parameters", self.resolved_system.hyper_parameters)
        return params

    def _take_params(self, params: dict[str, Any]) -> None:
        changes = taken_params("hyper_parameters", params)
        super()._take_params(params)
        if changes:
            self.resolved_system.changed(changes)
            self.hyper_parameters = {**(self.hyper_parameters or {}), **changes}

    def _learn(self, lesson: Lesson, watch: Watch | None) -> Learnt:
        system, levels = self.resolved_system, len(lesson.labels.levels)
        number = _level_numbers(lesson.labels.classes, lesson.labels.levels)
        training = Graded(_of_settings(lesson.features, lesson.settings), number[lesson.codes])
        dev = (
            None if lesson.dev is None else Graded(_of_settings(lesson.dev[0], lesson.settings), number[lesson.dev[1]])
        )
        attributes: dict[str, Any] = {
            "system_": system,
            "name_": system.name,
            "dimensions_": lesson.features.vectors.shape[1],
            "widths_": _widths(lesson.features, system.needs),
        }

        def watched(epoch: int, probabilities: Any) -> None:
            if watch is not None:
                watch(epoch, {**attributes, "fitted_": _Epoch(probabilities)})

        seed = lesson.settings.training.seed
        learnt = system.fit(training, dev, levels, seed=seed, on_epoch=None if watch is None else watched)
        # What predicts is what a file would give: a loaded model has the same digits.
        arrays = {name: np.ascontiguousarray(array) for name, array in learnt.arrays().items()}
        fitted = system.restored(arrays, levels)
        figures: dict[str, Any] = {"chosen": dict(learnt.chosen), "dev_accuracy": None}
        if dev is not None and lesson.dev is not None:
            # Columns as in `predict_proba`, where the first of equals is predicted.
            found = _each(fitted, dev.features, levels)[:, number].argmax(axis=1)
            figures["dev_accuracy"] = float((found == lesson.dev[1]).mean())
        return Learnt({**attributes, "fitted_": fitted}, figures)

    def _probabilities(self, features: Features) -> npt.NDArray[np.float64]:
        for name, width in (_widths(features, self.system_.needs) if len(features) else {}).items():
            if width != self.widths_[name]:
                raise CohegraphError(
                    f"The model reads token vectors of {self.widths_[name]} dimensions, and these have {width}: use "
                    "the parts that it was trained with."
                )
        by_level = _each(self.fitted_, _of_settings(features, self.settings_), len(self.levels_))
        return by_level[:, _level_numbers(self.classes_, self.levels_)]

    @property
    def _dimensions(self) -> int:
        return int(self.dimensions_)

    @property
    def _fitted_needs(self) -> frozenset[Material]:
        needs: frozenset[Material] = self.system_.needs
        return needs

    def _counts(self, features: Features) -> list[dict[str, int]]:
        rows = super()._counts(features)
        for name in _OF_SEQUENCES:
            if name in self.system_.needs:
                for counts, sequence in zip(rows, features.sequences(name), strict=True):
                    counts["read_tokens"] = int(sequence.sentences.sum())
        return rows

    def _notices(self, counts: dict[str, int]) -> tuple[str, ...]:
        found = notices(counts, reads=self.system_.reads)
        fewest = self.system_.fewest_sentences(self.settings_)
        if 0 < counts["sentences"] < fewest:
            found += (f"Fewer than {fewest} sentences: this system sees hardly anything in it.",)
        if isinstance(self.system_, SequenceModel) and counts["sentences"] > MOST_SENTENCES:
            found += (f"Of {counts['sentences']} sentences the first {MOST_SENTENCES} were read.",)
        return found

    def _arrays(self) -> Arrays:
        arrays: Arrays = self.fitted_.arrays()
        return arrays

    def _about(self) -> dict[str, Any]:
        system = self.system_
        if SYSTEMS.get(system.name) is not type(system):
            raise CohegraphError(
                f"The system '{system.name}' is not one of cohegraph's own: a model of it could not be loaded again."
            )
        return {
            "system": system.name,
            "hyper_parameters": system.hyper_parameters,
            "parameters": self.fitted_.parameters,
            "dimensions": self.dimensions_,
            "widths": self.widths_,
        }

    def _card(self, about: dict[str, Any]) -> CardText:
        system, training = self.system_, about["training"]
        source = f", after {system.citation}" if system.citation else ""
        chosen = ", ".join(f"{name}={value}" for name, value in training["chosen"].items())
        dev = ""
        if training["dev_documents"]:
            dev = f"; {f'{chosen} was chosen on' if chosen else 'held out:'} {on_dev(training)}"
        return CardText(
            method=(
                f"Its system is {system.title} (`{system.name}`){source}; it has learnt {about['parameters']:,} "
                f"numbers from {about['documents']} graded documents."
            ),
            training=f"{about['documents']} documents, seed {self.settings_.training.seed}{dev}.",
            settings=self.settings_.of_features(),
            limits=system.limits,
            load="load_model",
            giver="system",
            hyper_parameters=system.hyper_parameters,
        )

    @classmethod
    def _other_kind(cls, about: dict[str, Any]) -> str:
        return "" if "system" in about else "a CoherenceModel and no SystemModel"

    @classmethod
    def _described(cls, about: SystemDescription, settings: Settings, device: str) -> Self:
        model = cls(about.system, settings, about.levels, device, about.hyper_parameters)
        model.system_ = model.resolved_system
        if set(about.hyper_parameters) != set(model.system_.hyper_parameters):
            raise CohegraphError("hyper-parameters are missing")
        return model

    def _restore(self, arrays: Arrays, about: SystemDescription, folder: str | Path) -> None:
        self.dimensions_, self.widths_ = about.dimensions, dict(about.widths)
        levels = len(self.levels_)
        # Arrays that do not belong together fail in any way; if not now, then with the first document.
        try:
            self.fitted_ = self.system_.restored(arrays, levels)
            with np.errstate(all="ignore"):
                found = self.fitted_.probabilities(_blank(self.settings_, self.dimensions_, self.widths_))
            fits = found.shape == (1, levels) and bool(np.isfinite(found).all())
        except Exception as error:
            raise _misfit(self.system_, folder) from error
        if not fits:
            raise _misfit(self.system_, folder)


def load_model(
    folder: str | Path,
    *,
    parser: str | None = None,
    vectors: str | None = None,
    encoder: str | None = None,
    device: str = "auto",
) -> CoherenceModel | SystemModel:
    """Read a model of any system from a folder; the arguments are those of `CoherenceModel.load`."""
    kind: type[CoherenceModel] | type[SystemModel] = (
        SystemModel if "system" in read_about(Path(folder)) else CoherenceModel
    )
    return kind.load(folder, parser=parser, vectors=vectors, encoder=encoder, device=device)


def new_model(
    system: str,
    settings: Settings,
    changes: Mapping[str, Any] | None = None,
    *,
    levels: Sequence[Any] | None = None,
    device: str = "auto",
) -> CoherenceModel | SystemModel:
    """An untrained model of any system.

    Args:
        system: Its name.
        settings: The settings to start from.
        changes: Settings to change, and hyper-parameters of the system that are not settings, by their dotted names.
        levels: See `CoherenceModel`.
        device: See `CoherenceModel`.
    """
    kind, changes, known = system_named(system), changes or {}, settings.flat()
    own = kind.of(settings).hyper_parameters
    hyper_parameters = {name: value for name, value in changes.items() if name in own and name not in known}
    for name in changes:
        if name not in known and name not in own and set(own) - set(known):
            raise CohegraphError(
                f"There is no setting '{name}', and the system '{system}' has no hyper-parameter of this name: it has "
                f"{', '.join(name for name in own if name not in known)}."
            )
    changed = settings.replaced({name: value for name, value in changes.items() if name not in hyper_parameters})
    reads = kind.of(changed).changed(hyper_parameters).reads
    for name in changes:
        if name in settings.of_features():
            # Where parts are found concerns all systems: they are loaded in any case.
            if name in settings.of_features(places=False) and changed.flat()[name] != settings.flat()[name]:
                _check_reader(system, reads, name)
        elif name not in hyper_parameters:
            _check_effect(kind, settings, changed, name)
    if issubclass(kind, CorpusGCN):
        return CoherenceModel(_with_those_of(kind.of(changed), changed), levels=levels, device=device)
    model = SystemModel(system, changed, levels, device, hyper_parameters)
    _ = model.resolved_system
    return model


def _check_reader(system: str, reads: frozenset[Reading], name: str) -> None:
    """Raise where a setting of features was changed that the system does not read."""
    readers = _READERS.get(name.split(".")[0])
    if readers is not None and readers.isdisjoint(reads):
        raise CohegraphError(f"The setting '{name}' does not concern the system '{system}'.")


def _check_effect(kind: type[System], settings: Settings, changed: Settings, name: str) -> None:
    """Raise where a setting was changed that the system does not heed: nobody would notice."""
    if name in _OF_ALL:
        return
    value, used = changed.flat()[name], _with_those_of(kind.of(changed), changed).flat()[name]
    if used != value:
        raise CohegraphError(f"The system '{kind.name}' always has {name}={used}: leave it as it is.")
    before = kind.of(settings)
    if value != settings.flat()[name] and kind.of(settings.replaced({name: value})) == before:
        raise CohegraphError(
            f"The setting '{name}' does not concern the system '{kind.name}'"
            + (f", which has {', '.join(before.hyper_parameters)}." if before.hyper_parameters else ".")
        )


def _with_those_of(system: System, settings: Settings) -> Settings:
    """Settings with the values of those hyper-parameters that are settings."""
    known = settings.flat()
    return settings.replaced({name: value for name, value in system.hyper_parameters.items() if name in known})


def _level_numbers(classes: npt.NDArray[Any], levels: Sequence[Any]) -> Codes:
    """For each of the sorted classes its number in the order of levels, 0 for the lowest."""
    place = {level: number for number, level in enumerate(levels)}
    return np.array([place[label] for label in classes.tolist()], dtype=np.int64)


def _each(fitted: _Predicts, features: Features, levels: int) -> Probabilities:
    """The probabilities of documents one by one, so that the digits of each do not depend on the others."""
    rows = [fitted.probabilities(features[row : row + 1]) for row in range(len(features))]
    return np.concatenate([np.zeros((0, levels)), *rows])


def _of_settings(features: Features, settings: Settings) -> Features:
    """Features that say which settings they were made with; their patterns have been compared with these."""
    return features if features.settings is not None else replace(features, settings=settings)


def _widths(features: Features, needs: frozenset[Material]) -> dict[Literal["states", "words"], int]:
    """How long the token vectors are that a system reads."""
    return {name: np.asarray(features.sequences(name)[0].vectors).shape[1] for name in _OF_SEQUENCES if name in needs}


def _blank(settings: Settings, dimensions: int, widths: Mapping[Literal["states", "words"], int]) -> Features:
    """The features of a document without a word."""
    patterns = len(catalogue(settings.subgraphs.k, settings.subgraphs.patterns))
    none = np.zeros(0, dtype=np.int64)
    material: dict[Material, tuple[Any, ...]] = {"grid": (build_entity_grid(0, ()),)}
    for name, width in widths.items():
        material[name] = (TokenSequence(np.zeros((0, width), dtype=np.float16), none, none),)
    return Features(
        sparse.csr_array((1, patterns), dtype=np.int64),
        np.zeros((1, dimensions), dtype=np.float32),
        np.zeros((1, len(TALLIES)), dtype=np.int64),
        settings=settings,
        material=material,
    )


def _misfit(system: System, folder: str | Path) -> DamagedFileError:
    return DamagedFileError(
        f"The weights in {folder} do not fit the system '{system.name}' and its settings: the model is damaged."
    )
