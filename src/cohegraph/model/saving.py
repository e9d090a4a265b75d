"""A trained model as a folder, and back."""

from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from cohegraph.errors import CohegraphError
from cohegraph.explain.neighbours import Neighbours
from cohegraph.features import TALLIES, Features, Material, patterns_of
from cohegraph.features.document_features import DocumentReading
from cohegraph.graph.entity_grid import build_entity_grid
from cohegraph.labels import encode_labels
from cohegraph.learning.objectives import objective_of
from cohegraph.model.card import model_card
from cohegraph.model.familiarity import Familiarity
from cohegraph.model.formats import Description
from cohegraph.model.learnt import Learnt
from cohegraph.model.persistence import StoredModel, read_model, refusing_damage, write_model
from cohegraph.model.rank_scale import RankScale
from cohegraph.settings import Settings
from cohegraph.systems.registry import SYSTEMS, system_named
from cohegraph.systems.system import System
from cohegraph.text.token_sequence import TokenSequence
from cohegraph.version import __version__

# What of a model is a plain value, in memory and in its description.
_AS_THEY_ARE = ("name", "note", "levels", "ordered", "documents", "dimensions", "widths", "parts", "training")


def write(folder: Path, model: Learnt) -> str:
    """Write a model to a folder that appears only when it is complete; what tells the model from others."""
    system = model.system
    if SYSTEMS.get(system.name) is not type(system):
        raise CohegraphError(
            f"The system '{system.name}' is not one of cohegraph's own: a model of it could not be loaded again.",
            code="foreign-system",
        )
    about = {name: getattr(model, name) for name in _AS_THEY_ARE} | {
        "cohegraph": __version__,
        "system": system.name,
        "hyper_parameters": system.hyper_parameters,
        "parameters": model.fitted.parameters,
        "classes": model.classes.tolist(),
        "settings": model.settings.to_dict(),
        "calibration": model.calibration.model_dump(),
    }
    arrays = dict(model.fitted.arrays())
    for also in (model.familiarity, model.scale, model.neighbours):
        arrays |= {} if also is None else also.arrays()
    kept = None if model.neighbours is None else model.neighbours.lines()
    return write_model(folder, StoredModel(arrays, about, kept), model_card(model))


def read(folder: Path, places: dict[str, str]) -> Learnt:
    """Read a model of any format; ``places`` are settings that say where pretrained parts are on this machine."""
    stored = read_model(folder)
    with refusing_damage(folder):
        about, arrays = Description.model_validate(stored.about), dict(stored.arrays)
        settings = Settings.from_dict(about.settings).replaced(places)
        system, classes, levels = _system(about, settings), np.array([]), list(about.levels)
        if settings.objective.is_of_levels:
            encoded = encode_labels(about.classes, about.levels)
            classes, levels = encoded.classes, encoded.levels
        elif len(levels) != len(settings.objective.thresholds) + 1:
            raise ValueError("there are other levels than the thresholds make")
        blank, objective = _blank(settings, about), objective_of(settings.objective.kind, len(levels))
        neighbours = Neighbours.taken_from(arrays, stored.documents, blank.counts.shape[1], len(levels))
        familiarity, scale = Familiarity.taken_from(arrays), RankScale.taken_from(arrays)
        if familiarity is not None and familiarity.dimensions != about.dimensions:
            raise ValueError("its parts have different dimensions")
        if (scale is None) == (objective.kind == "ranking"):
            raise ValueError("the scale of its ranks is missing or too many")
        fitted = system.restored(arrays, objective)
        with np.errstate(all="ignore"):
            found = fitted.predict(blank)
        if found.shape != (1, objective.outputs) or not np.isfinite(found).all():
            raise ValueError(f"the weights do not fit the system '{system.name}' and its settings")
        return Learnt(
            system=system,
            fitted=fitted,
            settings=settings,
            classes=classes,
            calibration=about.calibration,
            scale=scale,
            familiarity=familiarity,
            neighbours=neighbours,
            sha256=stored.sha256,
            **{name: getattr(about, name) for name in _AS_THEY_ARE} | {"levels": levels},
        )


def _system(about: Description, settings: Settings) -> System:
    """The system of a model; an error where its hyper-parameters are not those that it has, or not the settings."""
    system = system_named(about.system).of(settings)
    if set(about.hyper_parameters) != set(system.hyper_parameters):
        raise ValueError("hyper-parameters are missing or too many")
    system, flat = system.changed(about.hyper_parameters), settings.flat()
    if any(flat.get(name, value) != value for name, value in system.hyper_parameters.items()):
        raise ValueError("settings and hyper-parameters contradict each other")
    return system


def _blank(settings: Settings, about: Description) -> Features:
    """The features of a document without a word, which has every pattern once."""
    none = np.zeros(0, dtype=np.int64)
    material: dict[Material, tuple[Any, ...]] = {"grid": (build_entity_grid(0, ()),)}
    for name, width in about.widths.items():
        if name == "reading":
            material[name] = (DocumentReading.blank(width),)
        else:
            material[name] = (TokenSequence(np.zeros((0, width), dtype=np.float16), none, none),)
    return Features(
        sparse.csr_array(np.ones((1, len(patterns_of(settings))), dtype=np.int64)),
        np.zeros((1, about.dimensions), dtype=np.float32),
        np.zeros((1, len(TALLIES)), dtype=np.int64),
        settings=settings,
        material=material,
    )
