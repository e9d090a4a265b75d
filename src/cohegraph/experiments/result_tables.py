"""The tables of results: the paper's, and those that the paper leaves out."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from cohegraph.experiments import paper
from cohegraph.experiments.measures import Estimate
from cohegraph.experiments.outcome import Outcome, percent
from cohegraph.experiments.significance import Comparison
from cohegraph.experiments.table import Cell, Number, Table, with_best
from cohegraph.experiments.table import shown as shown_number

_IN_PERCENT = ("accuracy", "macro-F1", "adjacent", "ECE")
UNORDERED = (
    "The order of these levels is not known, so that QWK and adjacent accuracy are left out: name the levels from "
    "lowest to highest with --levels, or as levels among the corpus's options."
)
_ABLATION = ("gcn", "gcn-no-pmi", "gcn-no-edges")


def result_tables(outcome: Outcome) -> Iterator[Table]:
    """All tables of results but those with times, which differ from run to run."""
    yield statistics(outcome)
    for measure in ("accuracy", "macro-F1", *(("QWK",) if "QWK" in outcome.measures else ())):
        yield by_section(outcome, measure)
    yield all_measures(outcome)
    yield levels(outcome)
    yield comparisons(outcome)
    if all(name in outcome.systems for name in _ABLATION):
        yield ablation(outcome)
    if any(not variant.sensitivity for variant in outcome.experiment.variants):
        yield variants(outcome)
    yield choices(outcome)
    if outcome.experiment.protocol.best_on_test:
        yield best_on_test(outcome)


def timed_tables(outcome: Outcome) -> Iterator[Table]:
    """The tables that differ from run to run."""
    yield overview(outcome)
    yield costs(outcome)


def statistics(outcome: Outcome) -> Table:
    """Documents, words, sentences and levels by section, as in the paper's table of statistics."""
    corpus, features = outcome.corpus, outcome.finished.work.features
    rows: list[tuple[Cell, ...]] = []
    for section in corpus.section_names:
        numbers = corpus.rows_of(section)
        counted = features["", section]
        test = None if corpus.test is None else np.array(corpus.test)[numbers]
        parts = [("total", np.ones(len(numbers), dtype=bool))] if test is None else [("train", ~test), ("test", test)]
        for name, chosen in parts:
            words, sentences = counted.tally("words")[chosen], counted.tally("sentences")[chosen]
            by_level = np.bincount(corpus.codes[numbers][chosen], minlength=len(corpus.levels))
            rows.append(
                (
                    section,
                    name,
                    Number(int(chosen.sum()), decimals=0),
                    Number(float(words.mean()), decimals=1),
                    Number(int(words.max()), decimals=0),
                    Number(float(sentences.mean()), decimals=1),
                    *(Number(int(count), decimals=0) for count in by_level),
                )
            )
    columns = ("section", "split", "documents", "words (mean)", "words (max)", "sentences (mean)", *corpus.levels)
    return Table("statistics", f"Documents of {corpus.name}", columns, tuple(rows))


def by_section(outcome: Outcome, measure: str) -> Table:
    """A measure of every system in every section: the paper's main tables, its own figures beside ours."""
    corpus = outcome.corpus
    sections = corpus.section_names
    single = len(sections) == 1
    shown = sections if single else (*sections, "")
    scale, decimals = (100.0, 2) if measure in _IN_PERCENT else (1.0, 3)
    cells = {
        system: [_number(outcome.estimates(system, measure)[section], scale, decimals) for section in shown]
        for system in outcome.systems
    }
    best = [_best(outcome, [cells[system][column] for system in outcome.systems]) for column in range(len(shown))]
    theirs = paper.rows_of(corpus.name, measure, sections)
    rows: list[tuple[Cell, ...]] = []
    muted, ruled = set(), set()
    for row, places in theirs:
        if row.system not in outcome.systems:
            muted.add(len(rows))
            rows.append(_paper_row(row, places, shown))
    for number, system in enumerate(outcome.systems):
        if system == outcome.method or (not rows and number) or (number == 0 and rows):
            ruled.add(len(rows))
        rows.append((outcome.title(system), *(best[column][number] for column in range(len(shown)))))
        for row, places in theirs:
            if row.system == system:
                muted.add(len(rows))
                rows.append(_paper_row(row, places, shown))
    names = tuple(measure if single else section or "average" for section in shown)
    unit = " in %" if scale == 100 else ""
    notes = [f"Mean (std) over {runs_in_words(outcome)}; {_bold(outcome, ' of ours')}."]
    if not single:
        notes.append("The std of an average is the mean of the sections' stds.")
    if theirs:
        notes.append("In italics: the paper's own figures (XLNet, GloVe 840B).")
    return Table(
        measure.lower(),
        f"{measure[0].upper()}{measure[1:]}{unit} on {corpus.name}",
        ("system", *names),
        tuple(rows),
        tuple(notes),
        frozenset(muted),
        frozenset(ruled),
    )


def _paper_row(row: paper.PaperRow, places: dict[str, int], shown: tuple[str, ...]) -> tuple[Cell, ...]:
    cells: list[Cell] = [f"paper: {row.title}"]
    for section in shown:
        place = places.get(section)
        if place is not None:
            cells.append(Number(row.means[place], row.stds[place] if row.stds else None))
        elif section == "" and row.average is not None and len(places) == len(row.means):
            cells.append(Number(row.average))
        else:
            # Of some sections the paper gives no average, and it is comparable only if it has all of ours.
            all_known = section == "" and len(places) == len(shown) - 1
            cells.append(Number(float(np.mean([row.means[i] for i in places.values()])) if all_known else math.nan))
    return tuple(cells)


def all_measures(outcome: Outcome) -> Table:
    """Every measure of every system, averaged over sections, with the interval of the accuracy."""
    names = [name for name in outcome.measures if not name.startswith("accuracy on ")]
    columns = {
        name: _best(
            outcome,
            [
                _number(outcome.overall(system, name), *((100.0, 2) if name in _IN_PERCENT else (1.0, 3)))
                for system in outcome.systems
            ],
        )
        for name in names
    }
    if "ECE" in columns:
        plain = [Number(cell.value, None, cell.decimals) for cell in columns["ECE"]]
        columns["ECE"] = _best(outcome, plain, lowest=True)
    averaged = ", within sections and then averaged" if len(outcome.corpus.section_names) > 1 else ""
    adjacent = "adjacent accuracy and " if "adjacent" in names else ""
    rows = []
    for number, system in enumerate(outcome.systems):
        found = outcome.overall(system)
        interval = f"{100 * found.low:.1f} to {100 * found.high:.1f}"
        cells: list[Cell] = [columns[name][number] for name in names]
        rows.append((outcome.title(system), cells[0], interval, *cells[1:]))
    return Table(
        "measures",
        f"All measures on {outcome.corpus.name}",
        ("system", names[0], "95 % interval", *names[1:]),
        tuple(rows),
        (
            f"Mean (std) over {runs_in_words(outcome)}{averaged}. Accuracy, macro-F1{', ' if adjacent else ' and '}"
            f"{adjacent}ECE (expected calibration error, the lower the better) in %. The interval of the accuracy is a "
            f"bootstrap over documents; {_bold(outcome)}.",
            *(() if outcome.corpus.ordered else (UNORDERED,)),
        ),
    )


def levels(outcome: Outcome) -> Table:
    """Accuracy on the documents of each level."""
    names = [name for name in outcome.measures if name.startswith("accuracy on ")]
    columns = [
        _best(outcome, [_number(outcome.overall(system, name), 100.0, 2) for system in outcome.systems])
        for name in names
    ]
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (outcome.title(system), *(column[number] for column in columns))
        for number, system in enumerate(outcome.systems)
    )
    return Table(
        "levels",
        f"Accuracy by level in % on {outcome.corpus.name}",
        ("system", *(name.removeprefix("accuracy on ") for name in names)),
        rows,
        (f"Mean (std) over {runs_in_words(outcome)}; {_bold(outcome)}.",),
    )


def comparisons(outcome: Outcome, *, all_pairs: bool = True) -> Table:
    """Every two systems against each other, the method's pairs first; or its pairs alone."""
    others = [system for system in outcome.systems if system != outcome.method]
    pairs = [(outcome.method, other) for other in others] if outcome.method in outcome.systems else []
    pairs += list(combinations(reversed(others), 2)) if all_pairs else []
    rows = tuple(
        (outcome.title(first), outcome.title(second), *comparison_cells(outcome.comparison(first, second)))
        for first, second in pairs
    )
    return Table(
        "comparisons" if all_pairs else "method-pairs",
        f"{'All pairs of systems' if all_pairs else outcome.title(outcome.method) + ' against the others'} on "
        f"{outcome.corpus.name}",
        ("system", "against", *COMPARISON_COLUMNS),
        rows,
        (
            "Difference of the mean accuracies in points, its 95 % interval and two-sided p from a paired bootstrap "
            "over documents; McNemar's exact test on one decision a document (mean probabilities over runs): documents "
            "that only the first, and only the second, has right. p values are not corrected for the number of pairs.",
        ),
    )


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


def interval_of(found: Comparison) -> str:
    """The interval of a difference, in points."""
    return " to ".join(shown_number(100 * end, 1, signed=True) for end in (found.low, found.high))


def ablation(outcome: Outcome) -> Table:
    """What each kind of edge is worth."""
    sections = outcome.corpus.section_names
    shown = sections if len(sections) == 1 else (*sections, "")
    theirs = {section: paper.ABLATION.get((outcome.corpus.name, section), {}) for section in sections}
    rows = []
    for system in _ABLATION:
        cells: list[Cell] = [outcome.title(system)]
        for section in shown:
            cells.append(_number(outcome.estimates(system, "accuracy")[section], 100.0, 2))
            if theirs.get(section):
                cells.append(Number(theirs[section][system]))
        rows.append(tuple(cells))
    columns = ["model"]
    for section in shown:
        columns.append("accuracy" if len(sections) == 1 else section or "average")
        if theirs.get(section):
            columns.append(f"{section}, paper")
    return Table(
        "ablation",
        f"Accuracy in % on {outcome.corpus.name} without edges between patterns, and without any",
        tuple(columns),
        tuple(rows),
        (
            "Without any edges the method is the DNN with the method's own inputs, surface figures among them where "
            "document nodes carry these: the difference to it is what edges are worth.",
        ),
    )


def variants(outcome: Outcome) -> Table:
    """The experiment with other settings: pretrained parts, other readings of the method."""
    rows: list[tuple[Cell, ...]] = []
    ruled = set()
    first = [variant for variant in outcome.experiment.variants if not variant.sensitivity]
    systems = dict.fromkeys(name for variant in first for name in variant.systems)
    for system in systems:
        ruled.add(len(rows))
        base = outcome.overall(system)
        rows.append((outcome.title(system), "as above", _number(base, 100.0, 2), "", ""))
        for variant in first:
            if system in variant.systems:
                found = outcome.comparison(system, system, (variant.name, ""))
                rows.append(
                    (
                        outcome.title(system),
                        variant.name,
                        _number(outcome.overall(system, "accuracy", variant.name), 100.0, 2),
                        Number(100 * found.difference, signed=True),
                        interval_of(found),
                    )
                )
    return Table(
        "variants",
        f"Other settings and pretrained parts on {outcome.corpus.name}",
        ("system", "variant", "accuracy", "difference", "95 % interval"),
        tuple(rows),
        ("Difference to the same system as above, paired over documents.",),
        ruled=frozenset(ruled),
    )


def choices(outcome: Outcome) -> Table:
    """Which hyper-parameters were chosen on dev, how often."""
    rows: list[tuple[Cell, ...]] = []
    hardly: list[str] = []
    for system in outcome.systems:
        results = [r for r in outcome.finished.results if r.system == system and r.variant == ""]
        names = dict.fromkeys(name for result in results for name in result.chosen)
        for name in names:
            values = [result.chosen[name] for result in results]
            if name.endswith("epochs"):
                low, middle, high = np.percentile(values, (25, 50, 75))
                if sum(value <= 1 for value in values) > len(values) / 2:
                    hardly.append(outcome.title(system))
                shown = f"median {middle:.0f} (half of them from {low:.0f} to {high:.0f})"
            else:
                counted = sorted(Counter(map(str, values)).items(), key=lambda item: (-item[1], item[0]))
                shown = ", ".join(f"{value} ({times}×)" for value, times in counted)
            rows.append((outcome.title(system), name, shown))
    return Table(
        "choices",
        f"What was chosen on dev documents of {outcome.corpus.name}",
        ("system", "hyper-parameter", "chosen"),
        tuple(rows) or (("–", "–", "nothing was searched"),),
        tuple(
            f"{title} has hardly trained: in most folds the first epoch was the best on dev documents, which more of "
            "them, another learning rate or choosing by loss may change."
            for title in hardly
        ),
    )


def best_on_test(outcome: Outcome) -> Table:
    """What the accuracy would be if the epoch were chosen on test: for comparison with figures reported so."""
    rows = []
    for system in outcome.systems:
        found = [r.best_on_test for r in outcome.finished.results if r.system == system and r.variant == ""]
        known = [100 * value for value in found if value is not None]
        best = Number(float(np.mean(known)), float(np.std(known, ddof=min(1, len(known) - 1)))) if known else "–"
        rows.append((outcome.title(system), _number(outcome.overall(system), 100.0, 2), best))
    return Table(
        "best-on-test",
        f"NOT a result: the best accuracy on test over all epochs and candidates, on {outcome.corpus.name}",
        ("system", "accuracy (chosen on dev)", "best on test (chosen on test)"),
        tuple(rows),
        ("The last column looks at the test documents to choose; it says how much that flatters, and nothing else.",),
    )


def overview(outcome: Outcome) -> Table:
    """What each system reaches and what it costs, in one row."""
    accuracies = _best(outcome, [Number(*percent(outcome.overall(system)), 2) for system in outcome.systems])
    rows = []
    for system, accuracy in zip(outcome.systems, accuracies, strict=True):
        found = outcome.overall(system)
        cost = _cost(outcome, system)
        rows.append(
            (
                outcome.title(system),
                accuracy,
                f"{100 * found.low:.1f} to {100 * found.high:.1f}",
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
            f"{_bold(outcome)}. Time of a fold's search and training, and of scoring one document, features ready, on "
            "one thread; times differ from run to run.",
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


def _number(found: Estimate, scale: float, decimals: int) -> Number:
    if scale == 100.0:
        return Number(*percent(found), decimals)
    return Number(found.mean, found.std, decimals)


def _best(outcome: Outcome, cells: list[Number], *, lowest: bool = False) -> list[Number]:
    """The best marked; never the majority, which is right about some things by saying nothing."""
    return with_best(cells, [system != "majority" for system in outcome.systems], lowest=lowest)


def _bold(outcome: Outcome, which: str = "") -> str:
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
