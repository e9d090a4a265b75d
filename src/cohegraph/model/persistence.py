"""A model as a folder: weights as safetensors, everything else as JSON, and a card for people.

Where the model keeps training documents to compare with, their ids are in a fourth file. Nothing is trusted when it is
read: format, names, shapes, sizes and checksums are compared first.
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
from cohegraph.model.calibration import Calibration
from cohegraph.text.packaged import sha256_of

FORMAT = 1
WEIGHTS, ABOUT, CARD, DOCUMENTS = "model.safetensors", "model.json", "README.md", "documents.jsonl"

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
    calibration: Calibration = Calibration()


@dataclass(frozen=True)
class StoredModel:
    """What a model folder holds: the arrays by name, the values of the JSON file, and a line a kept document."""

    arrays: dict[str, npt.NDArray[Any]]
    about: dict[str, Any]
    documents: list[dict[str, Any]] | None = None


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
    return (
        inside <= {WEIGHTS, ABOUT, CARD, DOCUMENTS} and isinstance(about, dict) and isinstance(about.get("format"), int)
    )


def write_model(folder: Path, model: StoredModel, card: str) -> None:
    """Write a model folder; a model that was there is replaced once the new one is complete."""
    if not all(np.isfinite(array).all() for array in model.arrays.values()):
        raise CohegraphError("The model's weights are not finite: train it again with a lower training.learning_rate.")
    folder = check_target(folder)
    try:
        with new_folder(folder) as work:
            arrays = {name: np.ascontiguousarray(array) for name, array in model.arrays.items()}
            (work / WEIGHTS).write_bytes(save_safetensors(arrays))
            shapes = {name: list(array.shape) for name, array in arrays.items()}
            about = {"format": FORMAT, **model.about, "weights": {**_seal(work / WEIGHTS), "shapes": shapes}}
            if model.documents is not None:
                lines = (json.dumps(line, ensure_ascii=False) + "\n" for line in model.documents)
                (work / DOCUMENTS).write_text("".join(lines), "utf-8", errors="replace", newline="\n")
                about["kept_documents"] = _seal(work / DOCUMENTS)
            (work / ABOUT).write_text(json.dumps(about, indent=2, ensure_ascii=False) + "\n", "utf-8")
            (work / CARD).write_text(card, "utf-8")
    except OSError as error:
        raise CohegraphError(f"The model cannot be written to {folder}: {error.strerror or error}.") from error


def _seal(file: Path) -> dict[str, Any]:
    """What tells later that a file is the one that was written."""
    return {"bytes": file.stat().st_size, "sha256": sha256_of(file)}


def read_model(folder: Path) -> StoredModel:
    """Read and check a model folder; which arrays a model has is for the model to check."""
    about = read_about(folder)
    file, kept = folder / WEIGHTS, about.get("kept_documents") is not None
    try:
        shapes = dict(about["weights"]["shapes"])
        sealed = {file: about["weights"]} | ({folder / DOCUMENTS: about["kept_documents"]} if kept else {})
        seals = [(one, int(seal["bytes"]), str(seal["sha256"])) for one, seal in sealed.items()]
    except (KeyError, TypeError, ValueError, OverflowError):
        raise DamagedFileError(f"{folder / ABOUT} does not describe the weights: the model is damaged.") from None
    for seal in seals:
        _check_seal(*seal)
    try:
        arrays = load_safetensors(file.read_bytes())
    except (SafetensorError, OSError) as error:
        raise DamagedFileError(f"{file} is not a safetensors file ({error}): the model is damaged.") from None
    found = {name: list(array.shape) for name, array in arrays.items()}
    if found != shapes:
        raise wrong_arrays(folder)
    if not all(np.isfinite(array).all() for array in arrays.values()):
        raise DamagedFileError(f"{file} holds numbers that are not finite: the model is damaged.")
    documents = None
    if kept:
        try:
            lines = (folder / DOCUMENTS).read_text("utf-8").removesuffix("\n")
            documents = [dict(json.loads(line)) for line in lines.split("\n")] if lines else []
        except (ValueError, TypeError, RecursionError):
            raise DamagedFileError(f"{folder / DOCUMENTS} is not JSON line by line: the model is damaged.") from None
    return StoredModel(arrays, about, documents)


def _check_seal(file: Path, size: int, sha256: str) -> None:
    """Raise where a file is not the one that was written with the model."""
    if not file.is_file():
        raise DamagedFileError(f"The model in {file.parent} lacks its file {file.name}: copy the folder again, whole.")
    if file.stat().st_size != size:
        raise DamagedFileError(
            f"{file} has {file.stat().st_size} bytes instead of {size}: it was cut or changed; copy it again."
        )
    if sha256_of(file) != sha256:
        raise DamagedFileError(
            f"{file} is not the file that was saved with this model (its SHA-256 differs): copy it again."
        )


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
