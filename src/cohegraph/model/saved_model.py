"""What every model that people use is in a folder: how it is saved and loaded."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy.typing as npt
from pydantic import ValidationError

from cohegraph.errors import CohegraphError, DamagedFileError
from cohegraph.graph.catalogue import catalogue
from cohegraph.labels import encode_labels
from cohegraph.model.calibration import Calibration
from cohegraph.model.card import KEPT_NOTHING, CardText, model_card
from cohegraph.model.conventions import Classifier
from cohegraph.model.familiarity import Familiarity
from cohegraph.model.neighbours import Neighbours
from cohegraph.model.persistence import Description, StoredModel, read_model, write_model
from cohegraph.settings import Settings
from cohegraph.version import __version__

Arrays = Mapping[str, npt.NDArray[Any]]
Described = TypeVar("Described", bound=Description)


class SavedModel(Classifier, ABC, Generic[Described]):
    """What all models save, and how; a subclass says what it saves besides."""

    _description: ClassVar[type[Description]]

    settings_: Settings
    classes_: npt.NDArray[Any]
    levels_: list[Any]
    ordered_: bool
    documents_: int
    parts_: dict[str, str]
    training_: dict[str, Any]
    name_: str
    note_: str
    calibration_: Calibration
    familiarity_: Familiarity | None
    neighbours_: Neighbours | None

    def save(self, folder: str | Path, *, name: str | None = None, note: str = "") -> None:
        """Write the model to a folder that appears only when it is complete.

        Args:
            folder: Where to. A model that is there is replaced.
            name: What the model is called in its card and in results; by default the folder's name.
            note: A paragraph for its card.
        """
        self._check_fitted()
        folder = Path(folder)
        self.name_, self.note_ = name or folder.resolve().name, note
        about = {
            "name": self.name_,
            "note": self.note_,
            "cohegraph": __version__,
            "classes": self.classes_.tolist(),
            "levels": list(self.levels_),
            "ordered": self.ordered_,
            "documents": self.documents_,
            **self._about(),
            "parts": self.parts_,
            "training": self.training_,
            "settings": self.settings_.to_dict(),
            "calibration": self.calibration_.model_dump(),
        }
        neighbours, arrays = self.neighbours_, dict(self._arrays())
        for beside in (self.familiarity_, neighbours):
            arrays |= {} if beside is None else beside.arrays()
        kept = None if neighbours is None else neighbours.lines()
        card = model_card(about, self._card(about), kept=KEPT_NOTHING if neighbours is None else neighbours.in_words())
        write_model(folder, StoredModel(arrays, about, kept), card)

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
        stored = read_model(Path(folder))
        other = cls._other_kind(stored.about)
        if other:
            raise CohegraphError(f"The model in {folder} is {other}: load it with cohegraph.load_model(…).")
        moved = {"parser.model": parser, "vectors.source": vectors, "encoder.source": encoder}
        try:
            about: Any = cls._description.model_validate(stored.about)
            settings = Settings.from_dict(about.settings)
            if "precision" not in about.settings.get("encoder", {}):  # saved when there was no choice
                settings = settings.replaced({"encoder.precision": "float32"})
            settings = settings.replaced({name: place for name, place in moved.items() if place is not None})
            model = cls._described(about, settings, device)
            encoded = encode_labels(about.classes, about.levels)
        except (ValidationError, CohegraphError) as error:
            what = error.errors()[0]["loc"] if isinstance(error, ValidationError) else error
            raise DamagedFileError(f"The description of the model in {folder} is damaged: {what}") from None
        model.settings_ = settings
        model.classes_, model.levels_, model.ordered_ = encoded.classes, encoded.levels, about.ordered
        model.documents_, model.parts_, model.training_ = about.documents, about.parts, about.training
        model.name_, model.note_ = about.name, about.note
        model.calibration_ = about.calibration
        arrays = dict(stored.arrays)
        subgraphs = settings.subgraphs
        patterns = len(catalogue(subgraphs.k, subgraphs.patterns))
        try:
            model.neighbours_ = Neighbours.taken_from(arrays, stored.documents, patterns, len(model.classes_))
            model.familiarity_ = Familiarity.taken_from(arrays)
        except (ValueError, KeyError, TypeError) as error:
            raise DamagedFileError(f"The model in {folder} is damaged: {error}.") from None
        model._restore(arrays, about, folder)
        if model.familiarity_ is not None and model.familiarity_.dimensions != model._dimensions:
            raise DamagedFileError(f"The model in {folder} is damaged: its parts have different dimensions.")
        return model

    @property
    @abstractmethod
    def _dimensions(self) -> int:
        """How long the encoder's vectors were in training."""

    @abstractmethod
    def _arrays(self) -> Arrays:
        """All that was learnt, by name."""

    @abstractmethod
    def _about(self) -> dict[str, Any]:
        """What the description says besides what it says of all models."""

    @abstractmethod
    def _card(self, about: dict[str, Any]) -> CardText:
        """What the card says of the way of predicting."""

    @classmethod
    @abstractmethod
    def _other_kind(cls, about: dict[str, Any]) -> str:
        """What a stored model is if it is not one of this class, else nothing."""

    @classmethod
    @abstractmethod
    def _described(cls, about: Described, settings: Settings, device: str) -> Self:
        """The model with the constructor's arguments of a description."""

    @abstractmethod
    def _restore(self, arrays: Arrays, about: Described, folder: str | Path) -> None:
        """Take the arrays of a stored model, or raise a DamagedFileError; all that models share is there already."""
