"""What the cells and notes of several tables of results have in common."""

from collections import Counter
from dataclasses import replace

from cohegraph.experiments.measures import Estimate
from cohegraph.experiments.outcome import Outcome
from cohegraph.experiments.significance import Comparison
from cohegraph.experiments.table import Interval, Number, with_best

# All other measures are in %.
OF_ONE = ("QWK", "Spearman")


def interval_of(found: Estimate | Comparison) -> Interval:
    """The interval of an accuracy in %, or of a difference in points."""
    return Interval(100 * found.low, 100 * found.high, signed=isinstance(found, Comparison))


def measured(found: Estimate, measure: str = "accuracy") -> Number:
    """A measure as a cell."""
    if measure in OF_ONE:
        return Number(found.mean, found.std, decimals=3)
    return Number(100 * found.mean, 100 * found.std)


def of_systems(outcome: Outcome, measure: str = "accuracy", section: str = "") -> list[Number]:
    """A measure of every system in a section, or over all of them, with the best marked.

    Never the majority, which is right about some things by saying nothing.
    """
    cells = [measured(outcome.estimates(system, measure)[section], measure) for system in outcome.systems]
    may_be_best = [system != "majority" for system in outcome.systems]
    if measure == "ECE":
        return with_best([replace(cell, std=None) for cell in cells], may_be_best, lowest=True)
    return with_best(cells, may_be_best)


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
