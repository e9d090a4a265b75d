"""How good a model will be on new documents: cross-validation on the training documents."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from cohegraph.errors import CohegraphError
from cohegraph.features import Features
from cohegraph.learning.calibration import Calibration
from cohegraph.learning.objectives import number_of_pairs
from cohegraph.model.answers import Answers
from cohegraph.model.label_checks import Rows, fold_splits
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
    splits, truth = fold_splits(levels, len(labels), groups, folds), answers.truth
    _check_pairs(answers, splits)
    held_out = np.zeros((len(labels), answers.objective.outputs))
    for training, test in track(splits, "cross-validating", folds, show=show_progress):
        own = None if groups is None else [groups[row] for row in training]
        fold = clone(model).fit(features[training], labels[training], groups=own, bare=True, **options)
        held_out[test] = fold.predictions(features[test])
    compared = [1 if objective.is_of_levels else number_of_pairs(truth[test]) for _, test in splits]
    # A fold without a pair says nothing, and one with many pairs says more than one with few.
    weights = [number for number in compared if number]
    scores = [
        share_right(objective, held_out[test], truth[test])
        for (_, test), number in zip(splits, compared, strict=True)
        if number
    ]
    mean = float(np.average(scores, weights=weights))
    quality = "accuracy" if objective.is_of_levels else "ordered_pairs"
    figures: dict[str, Any] = {"folds": folds, "grouped": groups is not None}
    figures |= {quality: mean, "std": float(np.std(scores))}
    if objective.is_of_levels:
        figures["majority"] = max(Counter(labels.tolist()).values()) / len(labels)
    else:
        figures["pairs"] = sum(compared)
    if objective.kind == "rating":
        figures["error"] = float(np.abs(held_out[:, 0] - truth.values).mean())
    return Validation(figures, calibrated(objective, held_out, truth))


def _check_pairs(answers: Answers, splits: list[tuple[Rows, Rows]]) -> None:
    """Raise where a fold has nothing to rank in its training part, or no fold has a pair to compare."""
    learnable = all(answers.objective.can_learn(answers.targets[training]) for training, _ in splits)
    comparable = len(answers.classes) or any(number_of_pairs(answers.truth[test]) for _, test in splits)
    if not learnable or not comparable:
        raise CohegraphError(
            f"The {len(splits)} folds leave no two documents of a group with different ratings to learn from or to "
            "compare: change --folds; --folds 0 skips cross-validation.",
            code="bad-folds",
        )


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
