"""How good a model will be on new documents: cross-validation on the training documents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cohegraph.errors import CohegraphError
from cohegraph.features import Features
from cohegraph.model.calibration import Calibration
from cohegraph.progress import track


def check_folds(labels: npt.NDArray[Any], groups: Sequence[str] | None, folds: int) -> None:
    """Raise a CohegraphError where the documents cannot be split into so many folds."""
    if folds < 2:
        raise CohegraphError("Cross-validation needs 2 folds or more; --folds 0 goes without.")
    label, fewest = min(Counter(labels.tolist()).items(), key=lambda item: item[1])
    if fewest < folds:
        raise CohegraphError(
            f"The level '{label}' has {fewest} documents, fewer than the {folds} folds: give --folds {max(2, fewest)}"
            f"{' or more documents' if fewest < 2 else ''}, or --folds 0 for no cross-validation."
        )
    if groups is not None and len(set(groups)) < folds:
        raise CohegraphError(f"There are {len(set(groups))} groups, fewer than the {folds} folds: give fewer --folds.")


@dataclass(frozen=True)
class Validation:
    """What cross-validation found.

    Args:
        figures: Mean accuracy over folds, its standard deviation, and the accuracy of the most frequent level.
        calibration: Fitted on all documents, each with the probabilities of the model that had not seen it.
    """

    figures: dict[str, Any]
    calibration: Calibration


def cross_validate(
    model: Any,
    features: Features,
    labels: npt.NDArray[Any],
    groups: Sequence[str] | None,
    folds: int,
    *,
    show_progress: bool = True,
    **options: Any,
) -> Validation:
    """How good models like this one are on documents that they have not learnt from.

    Further options are those of the models' `fit`.
    """
    from sklearn.base import clone
    from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

    check_folds(labels, groups, folds)
    codes = np.unique(labels, return_inverse=True)[1]
    splitter = StratifiedKFold if groups is None else StratifiedGroupKFold
    splits = splitter(folds, shuffle=True, random_state=0).split(np.zeros(len(labels)), codes, groups)
    scores = []
    held_out = np.zeros((len(labels), codes.max() + 1))
    for training, test in track(splits, "cross-validating", folds, show=show_progress):
        fold = clone(model).fit(features[training], labels[training], bare=True, **options)
        held_out[test] = fold.predict_proba(features[test])
        scores.append(float((held_out[test].argmax(axis=1) == codes[test]).mean()))
    figures = {
        "folds": folds,
        "grouped": groups is not None,
        "accuracy": float(np.mean(scores)),
        "std": float(np.std(scores)),
        "majority": max(Counter(labels.tolist()).values()) / len(labels),
    }
    return Validation(figures, Calibration.of(held_out, codes))


def validated_fit(
    model: Any,
    features: Features,
    labels: npt.NDArray[Any],
    groups: Sequence[str] | None,
    folds: int,
    *,
    show_progress: bool = True,
    **options: Any,
) -> Validation | None:
    """Cross-validate, if there are folds, and train on all documents; further options are those of `fit`."""
    validation = None
    if folds:
        validation = cross_validate(model, features, labels, groups, folds, show_progress=show_progress, **options)
    model.fit(features, labels, **options)
    if validation is not None:
        model.use_validation(validation)
    return validation
