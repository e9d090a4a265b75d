"""The tables with times, which differ from run to run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from cohegraph.experiments.cells import bold_in_words, interval_of_accuracy, marked, runs_in_words
from cohegraph.experiments.outcome import Outcome, percent
from cohegraph.experiments.table import Number, Table


def timed_tables(outcome: Outcome) -> Iterator[Table]:
    """The tables that differ from run to run."""
    yield overview(outcome)
    yield costs(outcome)


def overview(outcome: Outcome) -> Table:
    """What each system reaches and what it costs, in one row."""
    accuracies = marked(outcome, [Number(*percent(outcome.overall(system)), 2) for system in outcome.systems])
    rows = []
    for system, accuracy in zip(outcome.systems, accuracies, strict=True):
        found = outcome.overall(system)
        cost = _cost(outcome, system)
        rows.append(
            (
                outcome.title(system),
                accuracy,
                interval_of_accuracy(found),
                Number(cost.parameters, decimals=0),
                Number(cost.seconds, decimals=1),
                Number(1e3 * cost.seconds_a_document, decimals=2),
            )
        )
    return Table(
        "overview",
        f"Every system on {outcome.corpus.name}: what it reaches, and what it costs",
        ("system", "accuracy", "95 % interval", "parameters", "s to train", "ms a document"),
        tuple(rows),
        (
            f"Accuracy in %, mean (std) over {runs_in_words(outcome)}, its interval a bootstrap over documents; "
            f"{bold_in_words(outcome)}. Time of a fold's search and training, and of scoring one document, features "
            "ready, on one thread; times differ from run to run.",
        ),
    )


@dataclass(frozen=True)
class _Cost:
    """Means over runs, but the sum of all seconds and the most memory; NaN where nothing was noted."""

    parameters: float
    seconds: float
    all_seconds: float
    seconds_a_document: float
    megabytes: float


def _cost(outcome: Outcome, system: str) -> _Cost:
    results = [r for r in outcome.finished.results if r.system == system and r.variant == ""]
    found = [c for c in outcome.finished.costs if c.system == system and c.variant == ""]
    parameters = float(np.mean([result.parameters for result in results]))
    if not found:
        return _Cost(parameters, *(float("nan"),) * 4)
    seconds = [cost.seconds for cost in found]
    return _Cost(
        parameters,
        float(np.mean(seconds)),
        float(np.sum(seconds)),
        float(np.mean([cost.seconds_a_document for cost in found])),
        float(np.max([cost.megabytes for cost in found])),
    )


def costs(outcome: Outcome) -> Table:
    """Parameters, time and memory of each system."""
    rows = []
    for system in outcome.systems:
        cost = _cost(outcome, system)
        rows.append(
            (
                outcome.title(system),
                Number(cost.parameters, decimals=0),
                Number(cost.seconds, decimals=2),
                Number(cost.all_seconds, decimals=0),
                Number(1e6 * cost.seconds_a_document, decimals=1),
                Number(cost.megabytes, decimals=0),
            )
        )
    return Table(
        "costs",
        f"What each system costs on {outcome.corpus.name}, features ready",
        ("system", "parameters", "s a fold and seed", "s in all", "µs a document", "MB"),
        tuple(rows),
        (
            "Search on dev and training of one fold with one seed, all of them together, scoring of one document, and "
            "memory above what the process had before, on one thread. These differ from run to run.",
        ),
    )
