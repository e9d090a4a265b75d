"""A model as a folder of three files: weights as safetensors, everything else as JSON, and a card for people.

Nothing is trusted when it is read: format, names, shapes, sizes and the checksum of the weights are compared first.
"""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, Field
from safetensors import SafetensorError
from safetensors.numpy import load as load_safetensors
from safetensors.numpy import save as save_safetensors

from cohegraph.errors import CohegraphError, DamagedFileError
from cohegraph.files import new_folder
from cohegraph.text.packaged import sha256_of

FORMAT = 1
WEIGHTS, ABOUT, CARD = "model.safetensors", "model.json", "README.md"

_MOST_JSON_BYTES = 4_000_000


class Description(BaseModel):
    """The values of the JSON file that are needed to use any model, each of its type."""

    model_config = ConfigDict(strict=True)

    name: str
    note: str
    classes: list[str | int | float | bool]
    levels: list[str | int | float | bool]
    ordered: bool
    documents: int = Field(ge=1, lt=2**53)
    parts: dict[str, str]
    training: dict[str, Any]
    settings: dict[str, Any]


@dataclass(frozen=True)
class StoredModel:
    """What a model folder holds: the arrays by name, and the values of the JSON file."""

    arrays: dict[str, npt.NDArray[Any]]
    about: dict[str, Any]


def check_target(folder: Path) -> Path:
    """Where a model will be written: a new or empty folder, or one that holds a model and nothing else.

    Raises a CohegraphError before any work is done where nothing can or may be written.
    """
    folder = folder.resolve()
    if folder.exists() and not _may_replace(folder):
        raise CohegraphError(f"{folder} exists and holds other things than a model: choose another folder.")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}."):
            pass
    except OSError as error:
        raise CohegraphError(f"The model cannot be written to {folder}: {error.strerror or error}.") from None
    return folder


def _may_replace(folder: Path) -> bool:
    if not folder.is_dir():
        return False
    inside = {path.name for path in folder.iterdir()}
    if not inside:
        return True
    try:
        about = json.loads((folder / ABOUT).read_text("utf-8"))
    except (OSError, ValueError):
        return False
    return inside <= {WEIGHTS, ABOUT, CARD} and isinstance(about, dict) and isinstance(about.get("format"), int)


def write_model(folder: Path, model: StoredModel, card: str) -> None:
    """Write a model folder; a model that was there is replaced once the new one is complete."""
    if not all(np.isfinite(array).all() for array in model.arrays.values()):
        raise CohegraphError("The model's weights are not finite: train it again with a lower training.learning_rate.")
    folder = check_target(folder)
    try:
        with new_folder(folder) as work:
            arrays = {name: np.ascontiguousarray(array) for name, array in model.arrays.items()}
            (work / WEIGHTS).write_bytes(save_safetensors(arrays))
            weights = {
                "bytes": (work / WEIGHTS).stat().st_size,
                "sha256": sha256_of(work / WEIGHTS),
                "shapes": {name: list(array.shape) for name, array in arrays.items()},
            }
            about = {"format": FORMAT, **model.about, "weights": weights}
            (work / ABOUT).write_text(json.dumps(about, indent=2, ensure_ascii=False) + "\n", "utf-8")
            (work / CARD).write_text(card, "utf-8")
    except OSError as error:
        raise CohegraphError(f"The model cannot be written to {folder}: {error.strerror or error}.") from error


def read_model(folder: Path) -> StoredModel:
    """Read and check a model folder; which arrays a model has is for the model to check."""
    about = read_about(folder)
    try:
        expected = about["weights"]
        size, sha256, shapes = int(expected["bytes"]), str(expected["sha256"]), dict(expected["shapes"])
    except (KeyError, TypeError, ValueError, OverflowError):
        raise DamagedFileError(f"{folder / ABOUT} does not describe the weights: the model is damaged.") from None
    file = folder / WEIGHTS
    if not file.is_file():
        raise DamagedFileError(f"The model in {folder} lacks its file {WEIGHTS}: copy the folder again, whole.")
    if file.stat().st_size != size:
        raise DamagedFileError(
            f"{file} has {file.stat().st_size} bytes instead of {size}: it was cut or changed; copy it again."
        )
    if sha256_of(file) != sha256:
        raise DamagedFileError(
            f"{file} is not the file that was saved with this model (its SHA-256 differs): copy it again."
        )
    try:
        arrays = load_safetensors(file.read_bytes())
    except (SafetensorError, OSError) as error:
        raise DamagedFileError(f"{file} is not a safetensors file ({error}): the model is damaged.") from None
    found = {name: list(array.shape) for name, array in arrays.items()}
    if found != shapes:
        raise wrong_arrays(folder)
    if not all(np.isfinite(array).all() for array in arrays.values()):
        raise DamagedFileError(f"{file} holds numbers that are not finite: the model is damaged.")
    return StoredModel(arrays, about)


def wrong_arrays(folder: str | Path) -> DamagedFileError:
    """What to raise where weights have other names or shapes than they should."""
    return DamagedFileError(
        f"{Path(folder) / WEIGHTS} does not hold the arrays that {ABOUT} names: the model is damaged."
    )


def read_about(folder: Path) -> dict[str, Any]:
    """The values of a model's JSON file, of which only the format is checked."""
    if not folder.is_dir():
        raise CohegraphError(
            f"There is no model folder {folder}: train one with 'cohegraph train CORPUS --out FOLDER'."
        )
    file = folder / ABOUT
    if not file.is_file():
        raise DamagedFileError(f"{folder} is not a model: it has no file {ABOUT}.")
    if file.stat().st_size > _MOST_JSON_BYTES:
        raise DamagedFileError(f"{file} is larger than any model description: the model is damaged.")
    try:
        about = json.loads(file.read_text("utf-8"))
    except (ValueError, RecursionError):
        raise DamagedFileError(f"{file} is not valid JSON: the model is damaged.") from None
    version = about.get("format") if isinstance(about, dict) else None
    if not isinstance(version, int) or version < 1:
        raise DamagedFileError(f"{file} does not say which format it has: the model is damaged.")
    if version > FORMAT:
        raise CohegraphError(
            f"The model in {folder} has format {version}, and this version of cohegraph reads formats up to {FORMAT}: "
            "upgrade cohegraph."
        )
    return dict(about)
