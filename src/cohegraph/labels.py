"""Labels as people give them, and the order from the lowest to the highest level."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt

from cohegraph.errors import CohegraphError
from cohegraph.strings import well_formed

_WORDS = ("low", "medium", "high")
# Beyond it, two whole numbers may be one and the same as floats.
_LARGEST = 2**53
# A word, a number or a truth value (a bool is an int).
Label = str | int | float
Labels = Sequence[Any] | npt.NDArray[Any]


def as_label(value: Any, name: str) -> Label | None:
    """A label as it is given, or nothing where it is missing, which may also be written as the word nan.

    Args:
        value: A word, a number or a truth value; anything else is an error.
        name: What has the label, for the message of an error.
    """
    if isinstance(value, np.generic):
        value = value.item()
    elif isinstance(value, Decimal):
        value = int(value) if float(value).is_integer() else float(value)
    if value is None or (value != value) is True:
        return None
    if not isinstance(value, str | int | float):
        raise CohegraphError(f"The label of {name} is neither a string nor a number.", code="not-a-label")
    label: Label = well_formed(value) if isinstance(value, str) else value
    if isinstance(label, str) and label.strip().lower() in ("", "nan"):
        return None
    if isinstance(label, int) and abs(label) > _LARGEST:
        raise CohegraphError(
            f"The label of {name} is {label}, which is too large a number for a level.", code="label-too-large"
        )
    if math.isinf(_number(label)):
        raise CohegraphError(
            f"The label of {name} is '{label}', which is not a finite number.", code="label-not-finite"
        )
    return label


def as_labels(labels: Labels) -> npt.NDArray[Any]:
    """Labels as an array of strings, numbers or truth values, none of them missing."""
    values = [as_label(label, f"document {number}") for number, label in enumerate(labels, start=1)]
    if None in values:
        raise CohegraphError(f"Document {values.index(None) + 1} has no label.", code="missing-label")
    if len({type(label) if isinstance(label, str | bool) else float for label in values}) > 1:
        raise CohegraphError(
            "Labels are all strings, all numbers or all true or false, not a mixture.", code="mixed-labels"
        )
    return np.array(values)


def as_ratings(labels: Labels, span: tuple[float, float] | None) -> npt.NDArray[np.float64]:
    """Ratings as numbers from 0 to 1, where ``span`` gives the lowest and the highest; without it, as they are."""
    ratings = []
    for number, label in enumerate(as_labels(labels).tolist(), start=1):
        rating = math.nan if isinstance(label, bool) else _number(label)
        if math.isnan(rating):
            raise CohegraphError(
                f"The rating of document {number} is '{label}', which is not a number: ratings are numbers, and levels "
                "are learnt with objective.kind=levels.",
                code="bad-rating",
            )
        if span is not None and not span[0] <= rating <= span[1]:
            raise CohegraphError(
                f"The rating of document {number} is '{label}', not between {span[0]:g} and {span[1]:g}: set the "
                "lowest and the highest rating that can be given, such as --set objective.range=1,5.",
                code="bad-rating",
            )
        ratings.append(rating if span is None else (rating - span[0]) / (span[1] - span[0]))
    return np.array(ratings, dtype=np.float64)


@dataclass(frozen=True)
class EncodedLabels:
    """Labels as given, the sorted classes, and the classes from low to high, with whether that order is known."""

    values: npt.NDArray[Any]
    classes: npt.NDArray[Any]
    levels: list[Any]
    ordered: bool


def encode_labels(labels: Labels, levels: Sequence[Any] | None = None) -> EncodedLabels:
    """Check the labels of training documents and number them."""
    values = as_labels(labels)
    if not len(values):
        raise CohegraphError("There are no documents to learn from.", code="no-documents")
    _refuse_ratings(values)
    classes = np.unique(values)
    if len(classes) < 2:
        raise CohegraphError(
            f"All documents have the same label '{values[0]}': a model needs two labels or more.", code="one-label"
        )
    return EncodedLabels(values, classes, *order_levels(classes, levels))


def _refuse_ratings(values: npt.NDArray[Any]) -> None:
    """Raise where a label is a number with a fraction, also with a decimal comma: a rating, and no class."""
    if values.dtype.kind not in "fU":
        return
    written = [label.replace(",", ".", 1) if isinstance(label, str) else label for label in values.tolist()]
    if any(math.isfinite(number) and not number.is_integer() for number in map(_number, written)):
        raise CohegraphError(
            "The labels are ratings, numbers with fractions, and not levels: learn ratings with objective.kind=rating "
            "(--objective rating), or give levels as words or whole numbers.",
            code="ratings-as-levels",
        )


def order_levels(classes: npt.NDArray[Any], given: Sequence[Any] | None = None) -> tuple[list[Any], bool]:
    """The classes from the lowest to the highest level, and whether that order is known."""
    found = classes.tolist()
    if given is not None:
        if sorted(map(str, given)) != sorted(map(str, found)):
            raise CohegraphError(
                f"The levels {', '.join(map(str, given))} are not the labels of the documents: "
                f"{', '.join(map(str, found))}.",
                code="unknown-level",
            )
        by_name = {str(label): label for label in found}
        return [by_name[str(label)] for label in given], True
    if all(str(label).lower() in _WORDS for label in found):
        return sorted(found, key=lambda label: _WORDS.index(label.lower())), True
    if classes.dtype.kind == "U" and not any(math.isnan(_number(label)) for label in found):
        return sorted(found, key=float), True
    return list(found), classes.dtype.kind != "U"


def _number(label: str | float) -> float:
    """The number that a label is, or that it spells; NaN for a word."""
    try:
        return float(label)
    except ValueError:
        return math.nan
