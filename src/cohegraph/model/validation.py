"""How good a model will be on new documents: cross-validation on the training documents."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from cohegraph.features import Features
from cohegraph.learning.calibration import Calibration
from cohegraph.learning.objectives import number_of_pairs
from cohegraph.model.answers import Answers
from cohegraph.model.label_checks import fold_splits
from cohegraph.model.learnt import calibrated, share_right
from cohegraph.progress import track

if TYPE_CHECKING:
    from cohegraph.model.coherence_model import CoherenceModel


@dataclass(frozen=True)
class Validation:
    """What cross-validation found.

    Args:
        figures: Of levels, the mean accuracy over folds, its standard deviation, and the accuracy of the most frequent
            level; of ratings, the share of pairs in the right order, how many pairs were compared, and the mean error.
        calibration: Fitted on all documents, each with the predictions of the model that had not seen it.
    """

    figures: dict[str, Any]
    calibration: Calibration


def cross_validate(
    model: "CoherenceModel",
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
    answers = Answers.of(labels, groups, model.levels, objective)
    levels = labels if objective.is_of_levels else None
    splits, truth, scores = fold_splits(levels, len(labels), groups, folds), answers.truth, []
    held_out = np.zeros((len(labels), answers.objective.outputs))
    for training, test in track(splits, "cross-validating", folds, show=show_progress):
        own = None if groups is None else [groups[row] for row in training]
        fold = clone(model).fit(features[training], labels[training], groups=own, bare=True, **options)
        held_out[test] = fold.predictions(features[test])
        scores.append(share_right(objective, held_out[test], truth[test]))
    quality = "accuracy" if objective.is_of_levels else "ordered_pairs"
    figures: dict[str, Any] = {"folds": folds, "grouped": groups is not None}
    figures |= {quality: float(np.mean(scores)), "std": float(np.std(scores))}
    if objective.is_of_levels:
        figures["majority"] = max(Counter(labels.tolist()).values()) / len(labels)
    else:
        figures["pairs"] = sum(number_of_pairs(truth[test]) for _, test in splits)
    if objective.kind == "rating":
        figures["error"] = float(np.abs(held_out[:, 0] - truth.values).mean())
    return Validation(figures, calibrated(objective, held_out, truth))


def validated_fit(
    model: "CoherenceModel",
    features: Features,
    labels: npt.NDArray[Any],
    groups: Sequence[str] | None,
    folds: int,
    *,
    show_progress: bool = True,
    **options: Any,
) -> Validation | None:
    """Cross-validate, if there are folds, and train on all documents; further options are those of `fit`."""
    further = {"show_progress": show_progress, **options}
    validation = cross_validate(model, features, labels, groups, folds, **further) if folds else None
    model.fit(features, labels, groups=groups, **options)
    if validation is not None:
        model.use_validation(validation)
    return validation
