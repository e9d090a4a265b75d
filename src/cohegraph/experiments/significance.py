"""Whether one system is better than another: paired bootstrap over documents, and McNemar's test."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from cohegraph.experiments.measures import Estimate, SectionRuns


@dataclass(frozen=True)
class Comparison:
    """The first system against the second.

    ``difference`` with its 95 % interval and ``p_bootstrap`` (two-sided) are of the mean accuracy, with documents drawn
    alike for both. McNemar's exact test looks at one decision per document and system, that of the mean probabilities
    over runs: ``only_first`` and ``only_second`` count the documents that one alone has right.
    """

    difference: float
    low: float
    high: float
    p_bootstrap: float
    only_first: int
    only_second: int
    p_mcnemar: float


def compare(
    first: Estimate, second: Estimate, first_runs: Sequence[SectionRuns], second_runs: Sequence[SectionRuns]
) -> Comparison:
    """Compare two systems on the same documents, given their accuracies and their runs in all sections."""
    draws = first.draws - second.draws
    low, high = np.percentile(draws, (2.5, 97.5))
    below, above = (draws <= 0).sum(), (draws >= 0).sum()
    # One is added: with so many draws, no probability can be told from 0.
    p_bootstrap = min(1.0, 2 * (min(below, above) + 1) / (len(draws) + 1))
    right = [np.concatenate([_right(runs) for runs in of_all]) for of_all in (first_runs, second_runs)]
    only_first, only_second = int((right[0] & ~right[1]).sum()), int((~right[0] & right[1]).sum())
    p_mcnemar = mcnemar(only_first, only_second)
    difference = first.mean - second.mean
    return Comparison(difference, float(low), float(high), float(p_bootstrap), only_first, only_second, p_mcnemar)


def mcnemar(only_first: int, only_second: int) -> float:
    """The exact two-sided p value: how likely so uneven a split of the differing documents is by a fair coin."""
    differing = only_first + only_second
    return float(stats.binomtest(only_first, differing, 0.5).pvalue) if differing else 1.0


def _right(section: SectionRuns) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    tested = section.tested
    predicted = section.mean_probabilities()[tested].argmax(axis=1)
    return np.asarray(predicted == section.gold[tested])
