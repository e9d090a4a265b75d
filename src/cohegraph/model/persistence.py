"""A model as a folder: weights as safetensors, everything else as JSON, and a card for people.

Where the model keeps training documents to compare with, their ids are in a fourth file. Nothing is trusted when it is
read: format, names, shapes, sizes and checksums are compared first.
"""

import hashlib
import json
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from pydantic import ValidationError
from safetensors.numpy import load as load_safetensors
from safetensors.numpy import save as save_safetensors

from cohegraph.errors import CohegraphError, DamagedFileError
from cohegraph.files import new_folder
from cohegraph.model.formats import FORMAT, up_to_date
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
    with _writing(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}."):
            pass
    return folder


@contextmanager
def _writing(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise CohegraphError(
            f"The model cannot be written to {folder}: {error.strerror or error}.", code="cannot-write"
        ) from error


def _may_replace(folder: Path) -> bool:
    try:
        inside = {path.name for path in folder.iterdir()}
        about = json.loads((folder / ABOUT).read_text("utf-8")) if inside else {"format": FORMAT}
        return inside <= {WEIGHTS, ABOUT, CARD, DOCUMENTS} and isinstance(about["format"], int)
    except (OSError, ValueError, TypeError, KeyError):
        return False


def write_model(folder: Path, model: StoredModel, card: str) -> str:
    """Write a model folder; a model that was there is replaced once the new one is complete. The hash of its JSON."""
    if not all(np.isfinite(array).all() for array in model.arrays.values()):
        raise CohegraphError(
            "The model's weights are not finite: train it again with a lower training.learning_rate.", code="diverged"
        )
    folder = check_target(folder)
    with _writing(folder), new_folder(folder) as work:
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


def _seal(file: Path) -> dict[str, Any]:
    """What tells later that a file is the one that was written."""
    return {"bytes": file.stat().st_size, "sha256": sha256_of(file)}


@contextmanager
def refusing_damage(folder: Path) -> Iterator[None]:
    """Whatever fails in here fails because the model is not what was written: a DamagedFileError says so."""
    try:
        yield
    except Exception as error:
        if isinstance(error, DamagedFileError):
            raise
        where = error.errors()[0]["loc"] if isinstance(error, ValidationError) else error
        why = " ".join(str(where).split()).rstrip(".")
        raise DamagedFileError(f"The model in {folder} is damaged ({why}): copy the whole folder again.") from error


def read_model(folder: Path) -> StoredModel:
    """Read and check a model folder of any format; which arrays a model has is for the model to check."""
    about, sha256 = read_about(folder)
    with refusing_damage(folder):
        weights, kept, documents = about["weights"], about.get("kept_documents"), None
        _check_seal(folder / WEIGHTS, weights)
        arrays = load_safetensors((folder / WEIGHTS).read_bytes())
        if {name: list(array.shape) for name, array in arrays.items()} != weights["shapes"]:
            raise ValueError(f"{WEIGHTS} does not hold the arrays that {ABOUT} names")
        if not all(np.isfinite(array).all() for array in arrays.values()):
            raise ValueError(f"{WEIGHTS} holds numbers that are not finite")
        if kept is not None:
            _check_seal(folder / DOCUMENTS, kept)
            lines = (folder / DOCUMENTS).read_text("utf-8").removesuffix("\n")
            documents = [dict(json.loads(line)) for line in lines.split("\n")] if lines else []
        about, arrays = up_to_date(about, arrays)
    return StoredModel(arrays, about, documents, sha256)


def _check_seal(file: Path, seal: Mapping[str, Any]) -> None:
    """Raise where a file is not the one that was written with the model."""
    if not file.is_file() or _seal(file) != {name: seal[name] for name in ("bytes", "sha256")}:
        raise ValueError(f"{file.name} is missing, cut or changed")


def read_about(folder: Path) -> tuple[dict[str, Any], str]:
    """The values of a model's JSON file, of which only the format is checked, and the file's hash."""
    file = folder / ABOUT
    if not file.is_file():
        raise CohegraphError(
            f"There is no model in {folder}, which would have a file {ABOUT}: train one with 'cohegraph train CORPUS "
            "--out FOLDER'.",
            code="no-model",
        )
    state = file.stat()
    with refusing_damage(folder):
        if state.st_size > _MOST_JSON_BYTES:
            raise ValueError(f"{ABOUT} is larger than any model description")
        content = _content(file, (state.st_ino, state.st_mtime_ns, state.st_size))
        about = dict(json.loads(content.decode("utf-8")))
        if type(about.get("format")) is not int or about["format"] < 1:
            raise ValueError(f"{ABOUT} does not say which format it has")
    if about["format"] > FORMAT:
        raise CohegraphError(
            f"The model in {folder} has format {about['format']}, and this version of cohegraph reads formats up to "
            f"{FORMAT}: upgrade cohegraph.",
            code="newer-format",
        )
    return about, hashlib.sha256(content).hexdigest()


@lru_cache(maxsize=4)
def _content(file: Path, version: tuple[int, int, int]) -> bytes:
    """A file as it is in some version: who names a model in results and then loads it reads it once."""
    return file.read_bytes()
