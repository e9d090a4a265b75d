"""Labels as people give them, and the order from the lowest to the highest level."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cohegraph.errors import CohegraphError

_WORDS = ("low", "medium", "high")


def as_labels(labels: Sequence[Any] | npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Labels as an array of strings, numbers or truth values, none of them missing."""
    array = np.asarray(labels)
    if array.ndim != 1:
        raise CohegraphError("Labels are a list with one label for each document.")
    if array.dtype == object:
        for number, label in enumerate(array, start=1):
            if label is None or label != label:
                raise CohegraphError(f"Document {number} has no label.")
        array = np.asarray(array.tolist())
    if array.dtype.kind == "f" and np.isnan(array).any():
        raise CohegraphError(f"Document {int(np.flatnonzero(np.isnan(array))[0]) + 1} has no label.")
    if array.dtype.kind not in "UiufbS":
        raise CohegraphError("Labels are strings or numbers.")
    return array


@dataclass(frozen=True)
class EncodedLabels:
    """Labels as given, the sorted classes, the class of each document, and the classes from low to high."""

    values: npt.NDArray[Any]
    classes: npt.NDArray[Any]
    codes: npt.NDArray[np.int64]
    levels: list[Any]


def encode_labels(labels: Sequence[Any] | npt.NDArray[Any], levels: Sequence[Any] | None = None) -> EncodedLabels:
    """Check the labels of training documents and number them."""
    values = as_labels(labels)
    if not len(values):
        raise CohegraphError("There are no documents to learn from.")
    classes, codes = np.unique(values, return_inverse=True)
    if len(classes) < 2:
        raise CohegraphError(f"All documents have the same label '{values[0]}': a model needs two labels or more.")
    return EncodedLabels(values, classes, codes, order_levels(classes, levels))


def order_levels(classes: npt.NDArray[Any], given: Sequence[Any] | None = None) -> list[Any]:
    """The classes from the lowest to the highest level."""
    found = classes.tolist()
    if given is not None:
        if sorted(map(str, given)) != sorted(map(str, found)):
            raise CohegraphError(
                f"The levels {', '.join(map(str, given))} are not the labels of the documents: "
                f"{', '.join(map(str, found))}."
            )
        by_name = {str(label): label for label in found}
        return [by_name[str(label)] for label in given]
    if all(str(label).lower() in _WORDS for label in found):
        return sorted(found, key=lambda label: _WORDS.index(label.lower()))
    if classes.dtype.kind == "U" and all(_is_number(label) for label in found):
        return sorted(found, key=float)
    return list(found)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
