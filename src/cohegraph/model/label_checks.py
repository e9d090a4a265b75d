"""Whether a model can learn from labels: checked without torch, whose import takes seconds."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from cohegraph.errors import CohegraphError
from cohegraph.labels import EncodedLabels, as_ratings, encode_labels
from cohegraph.settings import ObjectiveSettings


def checked_labels(
    labels: Sequence[Any] | npt.NDArray[Any],
    groups: Sequence[Any] | None,
    levels: Sequence[Any] | None,
    settings: ObjectiveSettings,
) -> EncodedLabels:
    """The labels of training documents; where they are ratings, as numbers from 0 to 1 and without classes."""
    if groups is not None and len(groups) != len(labels):
        raise CohegraphError(
            f"There are {len(labels)} labels and {len(groups)} groups: give one group each.", code="label-count"
        )
    if settings.is_of_levels:
        encoded = encode_labels(labels, levels)
        if settings.kind == "ordinal" and not encoded.ordered:
            raise CohegraphError(
                "The order of these levels is not known: name them from lowest to highest with --levels.",
                code="unknown-order",
            )
        return encoded
    if settings.kind == "ranking" and groups is None:
        raise no_groups()
    ratings = as_ratings(labels, settings.range)
    if not len(ratings):
        raise CohegraphError("There are no documents to learn from.", code="no-documents")
    none = np.zeros(0, dtype=np.int64)
    return EncodedLabels(ratings, np.array([]), none, level_names(settings, levels), ordered=True)


def no_groups() -> CohegraphError:
    """The error of documents that are to be ranked within groups and have none."""
    return CohegraphError(
        "Ranking needs to know which documents belong together: name the column with --group-column, or give groups to "
        "fit, also for dev documents.",
        code="no-groups",
    )


def level_names(settings: ObjectiveSettings, given: Sequence[Any] | None) -> list[Any]:
    """The names of the levels that thresholds make of ratings."""
    number = len(settings.thresholds) + 1
    if given is not None:
        if len(set(given)) != number or len(given) != number:
            raise CohegraphError(
                f"There are {len(settings.thresholds)} thresholds, so give the names of {number} levels, not "
                f"{len(given)}.",
                code="level-count",
            )
        return list(given)
    return {2: ["low", "high"], 3: ["low", "medium", "high"]}.get(number, list(range(1, number + 1)))


def check_folds(labels: npt.NDArray[Any] | None, groups: Sequence[str] | None, folds: int) -> None:
    """Raise where documents cannot be split into so many folds; ``labels`` are levels, and missing for ratings."""
    if folds < 2:
        raise CohegraphError("Cross-validation needs 2 folds or more; --folds 0 goes without.", code="bad-folds")
    if labels is not None:
        label, fewest = min(Counter(labels.tolist()).items(), key=lambda item: item[1])
        if fewest < folds:
            raise CohegraphError(
                f"The level '{label}' has {fewest} documents, fewer than the {folds} folds: give --folds "
                f"{max(2, fewest)}{' or more documents' if fewest < 2 else ''}, or --folds 0 for no cross-validation.",
                code="bad-folds",
            )
    if groups is not None and len(set(groups)) < folds:
        raise CohegraphError(
            f"There are {len(set(groups))} groups, fewer than the {folds} folds: give fewer --folds.", code="bad-folds"
        )
