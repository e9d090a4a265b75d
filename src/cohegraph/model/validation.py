"""How good a model will be on new documents: cross-validation on the training documents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from cohegraph.features import Features
from cohegraph.learning.calibration import Calibration
from cohegraph.learning.objectives import Targets, ordered_pairs
from cohegraph.model.answers import group_numbers
from cohegraph.model.label_checks import check_folds
from cohegraph.progress import track

if TYPE_CHECKING:
    from cohegraph.model.coherence_model import CoherenceModel


@dataclass(frozen=True)
class Validation:
    """What cross-validation found.

    Args:
        figures: Of levels, the mean accuracy over folds, its standard deviation, and the accuracy of the most frequent
            level; of ratings, the share of pairs in the right order and the mean error.
        calibration: Fitted on all documents, each with the predictions of the model that had not seen it.
    """

    figures: dict[str, Any]
    calibration: Calibration


def cross_validate(
    model: CoherenceModel,
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

    objective = model.resolved_settings.objective
    levels = labels if objective.is_of_levels else None
    check_folds(levels, groups, folds)
    numbers = group_numbers(groups)
    codes = np.unique(labels, return_inverse=True)[1]
    held_out = np.zeros((len(labels), codes.max() + 1 if objective.is_of_levels else 1))
    ratings = None if objective.is_of_levels else model.ratings_of(labels)
    within = numbers if objective.kind == "ranking" else None
    scores = []
    splits = _splits(levels, groups, folds, len(labels))
    for training, test in track(splits, "cross-validating", folds, show=show_progress):
        own = None if groups is None else [groups[row] for row in training]
        fold = clone(model).fit(features[training], labels[training], groups=own, bare=True, **options)
        held_out[test] = fold.predictions(features[test])
        if ratings is None:
            scores.append(float((held_out[test].argmax(axis=1) == codes[test]).mean()))
        else:
            scores.append(ordered_pairs(held_out[test, 0], Targets(ratings, within)[test]))
    figures: dict[str, Any] = {"folds": folds, "grouped": groups is not None}
    mean, std = float(np.mean(scores)), float(np.std(scores))
    if ratings is None:
        majority = max(Counter(labels.tolist()).values()) / len(labels)
        return Validation(
            {**figures, "accuracy": mean, "std": std, "majority": majority}, Calibration.of(held_out, codes)
        )
    figures |= {"ordered_pairs": mean, "std": std}
    if objective.kind == "ranking":
        return Validation(figures, Calibration())
    figures["error"] = float(np.abs(held_out[:, 0] - ratings).mean())
    return Validation(figures, Calibration.of_ratings(held_out[:, 0], ratings))


def _splits(
    levels: npt.NDArray[Any] | None, groups: Sequence[str] | None, folds: int, documents: int
) -> Iterator[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]:
    """Folds with equal shares of every level where there are levels, and with whole groups where there are groups."""
    from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold

    rows = np.zeros(documents)
    if levels is None:
        splitter = KFold if groups is None else GroupKFold
        yield from splitter(folds, shuffle=True, random_state=0).split(rows, None, groups)
        return
    stratified = StratifiedKFold if groups is None else StratifiedGroupKFold
    codes = np.unique(levels, return_inverse=True)[1]
    yield from stratified(folds, shuffle=True, random_state=0).split(rows, codes, groups)


def validated_fit(
    model: CoherenceModel,
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
    model.fit(features, labels, groups=groups, **options)
    if validation is not None:
        model.use_validation(validation)
    return validation
