"""A trained model as a folder, and back."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from pydantic import ValidationError
from scipy import sparse

from cohegraph.errors import CohegraphError, DamagedFileError
from cohegraph.explain.neighbours import Neighbours
from cohegraph.features import TALLIES, Features, Material, patterns_of
from cohegraph.graph.entity_grid import build_entity_grid
from cohegraph.labels import encode_labels
from cohegraph.learning.calibration import Calibration
from cohegraph.learning.objectives import Objective, objective_of
from cohegraph.model.card import KEPT_NOTHING, model_card
from cohegraph.model.familiarity import Familiarity
from cohegraph.model.formats import Description
from cohegraph.model.persistence import StoredModel, read_model, write_model
from cohegraph.model.rank_scale import RankScale
from cohegraph.settings import Settings
from cohegraph.systems.registry import SYSTEMS, system_named
from cohegraph.systems.system import Fitted, System
from cohegraph.text.token_sequence import TokenSequence
from cohegraph.version import __version__


@dataclass(frozen=True)
class Saved:
    """All that a trained model is: the attributes of a `CoherenceModel` without their underscore."""

    system: System
    fitted: Fitted
    objective: Objective
    settings: Settings
    classes: npt.NDArray[Any]
    levels: list[Any]
    ordered: bool
    documents: int
    dimensions: int
    widths: dict[str, int]
    parts: dict[str, str]
    training: dict[str, Any]
    name: str
    note: str
    sha256: str
    calibration: Calibration
    scale: RankScale | None
    familiarity: Familiarity | None
    neighbours: Neighbours | None

    @classmethod
    def names(cls) -> list[str]:
        """The names of all fields."""
        return [item.name for item in fields(cls)]


def write(folder: Path, model: Saved) -> str:
    """Write a model to a folder that appears only when it is complete; what tells the model from others."""
    system = model.system
    if SYSTEMS.get(system.name) is not type(system):
        raise CohegraphError(
            f"The system '{system.name}' is not one of cohegraph's own: a model of it could not be loaded again.",
            code="foreign-system",
        )
    about = {
        "name": model.name,
        "note": model.note,
        "cohegraph": __version__,
        "system": system.name,
        "hyper_parameters": system.hyper_parameters,
        "parameters": model.fitted.parameters,
        "classes": model.classes.tolist(),
        "levels": list(model.levels),
        "ordered": model.ordered,
        "documents": model.documents,
        "dimensions": model.dimensions,
        "widths": model.widths,
        "parts": model.parts,
        "training": model.training,
        "settings": model.settings.to_dict(),
        "calibration": model.calibration.model_dump(),
    }
    arrays = dict(model.fitted.arrays())
    for also in (model.familiarity, model.scale, model.neighbours):
        arrays |= {} if also is None else also.arrays()
    neighbours = model.neighbours
    kept = None if neighbours is None else neighbours.lines()
    card = model_card(about, system, kept=KEPT_NOTHING if neighbours is None else neighbours.in_words())
    return write_model(folder, StoredModel(arrays, about, kept), card)


def read(folder: Path, places: dict[str, str]) -> Saved:
    """Read a model of any format; ``places`` are settings that say where pretrained parts are on this machine."""
    stored = read_model(folder)
    try:
        about = Description.model_validate(stored.about)
        settings = Settings.from_dict(about.settings).replaced(places)
        system = system_named(about.system).of(settings)
        if set(about.hyper_parameters) != set(system.hyper_parameters):
            raise CohegraphError("hyper-parameters are missing or too many")
        system = system.changed(about.hyper_parameters)
        flat = settings.flat()
        if any(flat.get(name, value) != value for name, value in system.hyper_parameters.items()):
            raise CohegraphError("settings and hyper-parameters contradict each other")
        objective = objective_of(settings.objective.kind, len(about.levels))
        classes, levels = np.array([]), list(about.levels)
        if settings.objective.is_of_levels:
            encoded = encode_labels(about.classes, about.levels)
            classes, levels = encoded.classes, encoded.levels
        elif len(levels) != len(settings.objective.thresholds) + 1:
            raise CohegraphError("there are other levels than the thresholds make")
    except (ValidationError, CohegraphError) as error:
        what = error.errors()[0]["loc"] if isinstance(error, ValidationError) else error
        raise DamagedFileError(f"The description of the model in {folder} is damaged: {what}") from None
    arrays = dict(stored.arrays)
    patterns = _patterns(settings)
    try:
        neighbours = Neighbours.taken_from(arrays, stored.documents, patterns, len(levels))
        familiarity = Familiarity.taken_from(arrays)
        scale = RankScale.taken_from(arrays)
        if familiarity is not None and familiarity.dimensions != about.dimensions:
            raise ValueError("its parts have different dimensions")
        if (scale is None) == (objective.kind == "ranking"):
            raise ValueError("the scale of its ranks is missing or too many")
    except (ValueError, KeyError, TypeError) as error:
        raise DamagedFileError(f"The model in {folder} is damaged: {error}.") from None
    return Saved(
        system=system,
        fitted=_restored(system, arrays, objective, about, settings, folder),
        objective=objective,
        settings=settings,
        classes=classes,
        levels=levels,
        ordered=about.ordered,
        documents=about.documents,
        dimensions=about.dimensions,
        widths={str(name): width for name, width in about.widths.items()},
        parts=about.parts,
        training=about.training,
        name=about.name,
        note=about.note,
        sha256=stored.sha256,
        calibration=about.calibration,
        scale=scale,
        familiarity=familiarity,
        neighbours=neighbours,
    )


def _restored(
    system: System,
    arrays: dict[str, npt.NDArray[Any]],
    objective: Objective,
    about: Description,
    settings: Settings,
    folder: Path,
) -> Fitted:
    """What a system has learnt, tried on a document; arrays that do not belong together fail in any way."""
    try:
        fitted = system.restored(arrays, objective)
        with np.errstate(all="ignore"):
            found = fitted.predict(_blank(settings, about))
        fits = found.shape == (1, objective.outputs) and bool(np.isfinite(found).all())
    except Exception as error:
        raise _misfit(system, folder) from error
    if not fits:
        raise _misfit(system, folder)
    return fitted


def _patterns(settings: Settings) -> int:
    return len(patterns_of(settings))


def _blank(settings: Settings, about: Description) -> Features:
    """The features of a document without a word, which has every pattern once."""
    none = np.zeros(0, dtype=np.int64)
    material: dict[Material, tuple[Any, ...]] = {"grid": (build_entity_grid(0, ()),)}
    for name, width in about.widths.items():
        material[name] = (TokenSequence(np.zeros((0, width), dtype=np.float16), none, none),)
    return Features(
        sparse.csr_array(np.ones((1, _patterns(settings)), dtype=np.int64)),
        np.zeros((1, about.dimensions), dtype=np.float32),
        np.zeros((1, len(TALLIES)), dtype=np.int64),
        settings=settings,
        material=material,
    )


def _misfit(system: System, folder: Path) -> DamagedFileError:
    return DamagedFileError(
        f"The weights in {folder} do not fit the system '{system.name}' and its settings: the model is damaged."
    )
