"""A model as a folder: weights as safetensors, everything else as JSON, and a card for people.

Where the model keeps training documents to compare with, their ids are in a fourth file. Nothing is trusted when it is
read: format, names, shapes, sizes and checksums are compared first.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError
from safetensors.numpy import load as load_safetensors
from safetensors.numpy import save as save_safetensors

from cohegraph.errors import CohegraphError, DamagedFileError
from cohegraph.files import new_folder
from cohegraph.model.formats import FORMAT, READERS
from cohegraph.text.packaged import sha256_of

WEIGHTS, ABOUT, CARD, DOCUMENTS = "model.safetensors", "model.json", "README.md", "documents.jsonl"

_MOST_JSON_BYTES = 4_000_000


@dataclass(frozen=True)
class StoredModel:
    """What a model folder holds.

    ``arrays`` by name, ``about``, the values of the JSON file, ``documents``, a line per kept document, and ``sha256``,
    the hash of the JSON file, which holds those of all others: it tells a model from any other.
    """

    arrays: dict[str, npt.NDArray[Any]]
    about: dict[str, Any]
    documents: list[dict[str, Any]] | None = None
    sha256: str = ""


def check_target(folder: Path) -> Path:
    """Where a model will be written: a new or empty folder, or one that holds a model and nothing else.

    Raises a CohegraphError before any work is done where nothing can or may be written.
    """
    folder = folder.resolve()
    if folder.exists() and not _may_replace(folder):
        raise CohegraphError(
            f"{folder} exists and holds other things than a model: choose another folder.", code="foreign-folder"
        )
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}."):
            pass
    except OSError as error:
        raise CohegraphError(
            f"The model cannot be written to {folder}: {error.strerror or error}.", code="cannot-write"
        ) from None
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


def write_model(folder: Path, model: StoredModel, card: str) -> str:
    """Write a model folder; a model that was there is replaced once the new one is complete. The hash of its JSON."""
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
            content = (json.dumps(about, indent=2, ensure_ascii=False) + "\n").encode("utf-8")
            (work / ABOUT).write_bytes(content)
            (work / CARD).write_text(card, "utf-8")
            return hashlib.sha256(content).hexdigest()
    except OSError as error:
        raise CohegraphError(
            f"The model cannot be written to {folder}: {error.strerror or error}.", code="cannot-write"
        ) from error


def _seal(file: Path) -> dict[str, Any]:
    """What tells later that a file is the one that was written."""
    return {"bytes": file.stat().st_size, "sha256": sha256_of(file)}


def read_model(folder: Path) -> StoredModel:
    """Read and check a model folder of any format; which arrays a model has is for the model to check."""
    about, sha256 = read_about(folder)
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
        raise DamagedFileError(f"{file} does not hold the arrays that {ABOUT} names: the model is damaged.")
    if not all(np.isfinite(array).all() for array in arrays.values()):
        raise DamagedFileError(f"{file} holds numbers that are not finite: the model is damaged.")
    documents = None
    if kept:
        try:
            lines = (folder / DOCUMENTS).read_text("utf-8").removesuffix("\n")
            documents = [dict(json.loads(line)) for line in lines.split("\n")] if lines else []
        except (ValueError, TypeError, RecursionError):
            raise DamagedFileError(f"{folder / DOCUMENTS} is not JSON line by line: the model is damaged.") from None
    try:
        about, arrays = READERS[about["format"]](about, arrays)
    except (KeyError, TypeError, AttributeError, ValueError, IndexError) as error:
        raise DamagedFileError(f"The description of the model in {folder} is damaged: {error}") from None
    return StoredModel(arrays, about, documents, sha256)


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


def read_about(folder: Path) -> tuple[dict[str, Any], str]:
    """The values of a model's JSON file, of which only the format is checked, and the file's hash."""
    if not folder.is_dir():
        raise CohegraphError(
            f"There is no model folder {folder}: train one with 'cohegraph train CORPUS --out FOLDER'.",
            code="no-model",
        )
    file = folder / ABOUT
    if not file.is_file():
        raise DamagedFileError(f"{folder} is not a model: it has no file {ABOUT}.")
    if file.stat().st_size > _MOST_JSON_BYTES:
        raise DamagedFileError(f"{file} is larger than any model description: the model is damaged.")
    state = file.stat()
    content = _content(file, (state.st_ino, state.st_mtime_ns, state.st_size))
    try:
        about = json.loads(content.decode("utf-8"))
    except (ValueError, RecursionError):
        raise DamagedFileError(f"{file} is not valid JSON: the model is damaged.") from None
    version = about.get("format") if isinstance(about, dict) else None
    if not isinstance(version, int) or version < 1:
        raise DamagedFileError(f"{file} does not say which format it has: the model is damaged.")
    if version > FORMAT:
        raise CohegraphError(
            f"The model in {folder} has format {version}, and this version of cohegraph reads formats up to {FORMAT}: "
            "upgrade cohegraph.",
            code="newer-format",
        )
    return dict(about), hashlib.sha256(content).hexdigest()


@lru_cache(maxsize=4)
def _content(file: Path, version: tuple[int, int, int]) -> bytes:
    """A file as it is in some version: who names a model in results and then loads it reads it once."""
    return file.read_bytes()
