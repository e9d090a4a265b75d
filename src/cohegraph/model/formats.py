"""The formats that model folders have had: one reader for each, which gives the description and arrays of the newest.

A model of format 2 says which system it is of, all hyper-parameters of that system, and everything that the system has
learnt as arrays. Models of format 1 were of two kinds: those of the method, which did not name a system and kept the
statistics of the surface figures in the description, and those of other systems.
"""

from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, Field, field_validator

from cohegraph.learning.calibration import Calibration
from cohegraph.settings import Settings

FORMAT = 2
Arrays = dict[str, npt.NDArray[Any]]
About = dict[str, Any]
_OF_METHOD = ("corpus_graph", "nodes", "training")
_SURFACE = ("surface_mean", "surface_scale")


class Description(BaseModel):
    """The values of a model's JSON file that are needed to use it, each of its type."""

    model_config = ConfigDict(strict=True)

    name: str
    note: str
    system: str
    hyper_parameters: dict[str, Any]
    classes: list[str | int | float | bool]
    levels: list[str | int | float | bool]
    ordered: bool
    documents: int = Field(ge=1, lt=2**53)
    dimensions: int = Field(ge=1, lt=2**20)
    widths: dict[Literal["states", "words", "reading"], Annotated[int, Field(ge=1, lt=2**20)]]
    parts: dict[str, str]
    training: dict[str, Any]
    settings: dict[str, Any]
    calibration: Calibration = Calibration()

    @field_validator("training")
    @classmethod
    def _with_dev_quality(cls, value: dict[str, Any]) -> dict[str, Any]:
        """The share of right answers on dev was once saved as accuracy, also where pairs were counted."""
        if missing := {"documents", "dev_documents", "chosen"} - set(value):
            raise ValueError(f"{', '.join(sorted(missing))} missing")
        return {"dev_quality" if name == "dev_accuracy" else name: found for name, found in value.items()}


def settings_of(about: About) -> dict[str, dict[str, Any]]:
    """The settings in the description of a model of any format."""
    settings = {group: dict(values) for group, values in about["settings"].items()}
    if about["format"] == 1:
        settings.setdefault("encoder", {}).setdefault("precision", "float32")  # saved when there was no choice
    return settings


def _from_1(about: About, arrays: Arrays) -> tuple[About, Arrays]:
    """Format 1, written before a model named its system in every case."""
    about, arrays = dict(about), dict(arrays)
    about["settings"] = settings = settings_of(about)
    # Classes were numbered as sorted; now levels are, from the lowest on.
    places = {level: number for number, level in enumerate(about["levels"])}
    numbers = np.array([places[label] for label in sorted(about["classes"])], dtype=np.int64)
    if "neighbour_classes" in arrays:
        arrays["neighbour_classes"] = numbers[arrays["neighbour_classes"]]
    if "system" in about:
        return about, arrays
    flat = Settings.from_dict(settings).flat()
    about["hyper_parameters"] = {name: value for name, value in flat.items() if name.split(".")[0] in _OF_METHOD}
    without_edges = flat["corpus_graph.weighting"] == "none" and not flat["corpus_graph.pmi"]
    about["system"] = "gcn-no-edges" if without_edges else "gcn"
    surface = about.pop("surface", None) if flat["nodes.surface"] else None
    if surface is not None:
        arrays |= {name: np.array(values) for name, values in zip(_SURFACE, surface, strict=True)}
    arrays["training_documents"] = np.array([about["documents"]])
    arrays["columns"] = numbers
    about["dimensions"] = int(arrays["w0"].shape[0]) - (0 if surface is None else len(surface[0]))
    about["widths"] = {}
    training = dict(about["training"])
    about["training"] = training | {"chosen": {"training.epochs": training.get("chosen_epoch", 0)}}
    return about, arrays


def up_to_date(about: About, arrays: Arrays) -> tuple[About, Arrays]:
    """The description and arrays of a model of any format, as the newest has them."""
    return _from_1(about, arrays) if about["format"] == 1 else (about, arrays)
