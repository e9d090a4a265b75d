"""Whether a model can learn from labels: checked without torch, whose import takes seconds."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from cohegraph.errors import CohegraphError
from cohegraph.labels import EncodedLabels, Labels, as_ratings, encode_labels
from cohegraph.settings import ObjectiveSettings

Rows = npt.NDArray[np.int64]


def checked_labels(
    labels: Labels, groups: Sequence[Any] | None, levels: Sequence[Any] | None, settings: ObjectiveSettings
) -> EncodedLabels:
    """The labels of training documents; where they are ratings, as numbers from 0 to 1 and without classes."""
    if groups is not None:
        check_count(len(labels), "groups", len(groups))
    check_groups(groups, settings)
    if settings.is_of_levels:
        encoded = encode_labels(labels, levels)
        if settings.kind == "ordinal" and not encoded.ordered:
            raise CohegraphError(
                "The order of these levels is not known: name them from lowest to highest with --levels.",
                code="unknown-order",
            )
        return encoded
    ratings = as_ratings(labels, settings.span)
    if not len(ratings):
        raise CohegraphError("There are no documents to learn from.", code="no-documents")
    return EncodedLabels(ratings, np.array([]), _level_names(settings, levels), ordered=True)


def checked_weights(weights: npt.ArrayLike, documents: int) -> npt.NDArray[np.float64]:
    """How much each training document counts."""
    try:
        found = np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError):
        found = np.array(np.nan)
    if found.ndim == 1:
        check_count(documents, "weights", len(found))
    if found.ndim != 1 or not (np.isfinite(found) & (found > 0)).all():
        raise CohegraphError(
            "The weights of documents must be a list of numbers above 0: leave out documents that should not count.",
            code="bad-weights",
        )
    return found


def check_count(documents: int, what: str, found: int, which: str = "documents") -> None:
    """Raise where there is not one of something for every document."""
    if found != documents:
        raise CohegraphError(
            f"There are {documents} {which} and {found} {what}: give one for each document.", code="label-count"
        )


def check_groups(groups: Sequence[Any] | None, settings: ObjectiveSettings) -> None:
    """Raise where documents are to be ranked within groups and have none."""
    if groups is None and settings.kind == "ranking":
        raise CohegraphError(
            "Ranking needs to know which documents belong together: name the column with --group-column (features "
            "have groups if 'cohegraph featurize' was given one), or pass groups, also for dev documents.",
            code="no-groups",
        )


def fold_splits(
    levels: npt.NDArray[Any] | None, documents: int, groups: Sequence[str] | None, folds: int
) -> list[tuple[Rows, Rows]]:
    """Training and test documents of every fold: equal shares of every level, if there are levels, and whole groups.

    A CohegraphError says where that is not possible.
    """
    wrong = _why_no_folds(levels, documents, groups, folds)
    if not wrong:
        from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold

        codes = None if levels is None else np.unique(levels, return_inverse=True)[1]
        stratified = StratifiedKFold if groups is None else StratifiedGroupKFold
        splitter = stratified if codes is not None else KFold if groups is None else GroupKFold
        splits = list(splitter(folds, shuffle=True, random_state=0).split(np.zeros(documents), codes, groups))
        if codes is None or all(len(test) and set(codes[rows]) == set(codes) for rows, test in splits):
            return splits
        wrong = f"The groups cannot be split into {folds} folds so that each training part has all levels"
    raise CohegraphError(
        f"{wrong}: change --folds or add documents; --folds 0 skips cross-validation.", code="bad-folds"
    )


def _why_no_folds(levels: npt.NDArray[Any] | None, documents: int, groups: Sequence[str] | None, folds: int) -> str:
    if folds < 2:
        return "Cross-validation needs 2 folds or more"
    counts = {"to validate on": documents}
    if levels is not None:
        counts = {f"of the level '{level}'": number for level, number in Counter(levels.tolist()).items()}
    which, fewest = min(counts.items(), key=lambda item: item[1])
    if fewest < folds:
        return f"The number of documents {which} is {fewest}, less than the {folds} folds"
    if groups is not None and len(set(groups)) < folds:
        return f"There are {len(set(groups))} groups, fewer than the {folds} folds"
    return ""


def _level_names(settings: ObjectiveSettings, given: Sequence[Any] | None) -> list[Any]:
    """The names of the levels that thresholds make of ratings."""
    number = len(settings.thresholds) + 1
    if given is None:
        return {2: ["low", "high"], 3: ["low", "medium", "high"]}.get(number, list(range(1, number + 1)))
    names = [given] if isinstance(given, str) else list(given)
    if len(names) != number:
        raise CohegraphError(
            f"There are {number - 1} thresholds, so give the names of {number} levels, not {len(names)}.",
            code="level-count",
        )
    # The names that levels have by default, when there are many, are whole numbers.
    is_name = [isinstance(name, str | int) and not isinstance(name, bool) and bool(str(name).strip()) for name in names]
    if not all(is_name) or len({str(name).strip() for name in names}) < number:
        raise CohegraphError(
            f"The names of levels must be different strings: {', '.join(map(repr, names))}.", code="bad-levels"
        )
    return names
