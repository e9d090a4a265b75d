"""What the cells of several tables of results have in common."""

from __future__ import annotations

from collections import Counter

from cohegraph.experiments.measures import Estimate
from cohegraph.experiments.outcome import Outcome, percent
from cohegraph.experiments.significance import Comparison
from cohegraph.experiments.table import Cell, Interval, Number, with_best

_SMALLEST_P = 0.0001
COMPARISON_COLUMNS = ("difference", "95 % interval", "p (bootstrap)", "only first", "only second", "p (McNemar)")


def comparison_cells(found: Comparison) -> tuple[Cell, ...]:
    """A comparison as cells under COMPARISON_COLUMNS."""
    return (
        Number(100 * found.difference, signed=True),
        interval_of(found),
        Number(found.p_bootstrap, decimals=4),
        Number(found.only_first, decimals=0),
        Number(found.only_second, decimals=0),
        Number(found.p_mcnemar, decimals=4) if found.p_mcnemar >= _SMALLEST_P else f"<{_SMALLEST_P}",
    )


def interval_of(found: Comparison) -> Interval:
    """The interval of a difference, in points."""
    return Interval(100 * found.low, 100 * found.high, signed=True)


def measured(found: Estimate, scale: float, decimals: int) -> Number:
    """A measure as a cell."""
    if scale == 100.0:
        return Number(*percent(found), decimals)
    return Number(found.mean, found.std, decimals)


def interval_of_accuracy(found: Estimate) -> Interval:
    """The interval of an accuracy, in %."""
    return Interval(100 * found.low, 100 * found.high)


def marked(outcome: Outcome, cells: list[Number], *, lowest: bool = False) -> list[Number]:
    """The best marked; never the majority, which is right about some things by saying nothing."""
    return with_best(cells, [system != "majority" for system in outcome.systems], lowest=lowest)


def bold_in_words(outcome: Outcome, which: str = "") -> str:
    """What bold figures mean."""
    return f"the best{which} in bold" + (" (never the majority)" if "majority" in outcome.systems else "")


def folds_in_words(outcome: Outcome) -> str:
    """How many folds there are, as in "5 folds of each section"."""
    folds = Counter(fold.section for fold in outcome.finished.work.folds)
    fewest, most = min(folds.values()), max(folds.values())
    number = f"{most} fold{'' if most == 1 else 's'}" if fewest == most else f"{fewest} to {most} folds"
    return number + (" of each section" if len(outcome.corpus.section_names) > 1 else "")


def runs_in_words(outcome: Outcome) -> str:
    """What means and stds are taken over."""
    seeds = len(outcome.experiment.protocol.seeds)
    return folds_in_words(outcome) + (f" × {seeds} seeds" if seeds > 1 else "")
