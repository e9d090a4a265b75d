"""The tables of results: the paper's, and those that the paper leaves out."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from itertools import combinations

import numpy as np

from cohegraph.experiments import paper
from cohegraph.experiments.cells import (
    COMPARISON_COLUMNS,
    bold_in_words,
    comparison_cells,
    interval_of,
    interval_of_accuracy,
    marked,
    measured,
    runs_in_words,
)
from cohegraph.experiments.outcome import Outcome
from cohegraph.experiments.table import Cell, Number, Table

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
        system: [measured(outcome.estimates(system, measure)[section], scale, decimals) for section in shown]
        for system in outcome.systems
    }
    best = [marked(outcome, [cells[system][column] for system in outcome.systems]) for column in range(len(shown))]
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
    notes = [f"Mean (std) over {runs_in_words(outcome)}; {bold_in_words(outcome, ' of ours')}."]
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
        name: marked(
            outcome,
            [
                measured(outcome.overall(system, name), *((100.0, 2) if name in _IN_PERCENT else (1.0, 3)))
                for system in outcome.systems
            ],
        )
        for name in names
    }
    if "ECE" in columns:
        plain = [Number(cell.value, None, cell.decimals) for cell in columns["ECE"]]
        columns["ECE"] = marked(outcome, plain, lowest=True)
    averaged = ", within sections and then averaged" if len(outcome.corpus.section_names) > 1 else ""
    adjacent = "adjacent accuracy and " if "adjacent" in names else ""
    rows = []
    for number, system in enumerate(outcome.systems):
        found = outcome.overall(system)
        cells: list[Cell] = [columns[name][number] for name in names]
        rows.append((outcome.title(system), cells[0], interval_of_accuracy(found), *cells[1:]))
    return Table(
        "measures",
        f"All measures on {outcome.corpus.name}",
        ("system", names[0], "95 % interval", *names[1:]),
        tuple(rows),
        (
            f"Mean (std) over {runs_in_words(outcome)}{averaged}. Accuracy, macro-F1{', ' if adjacent else ' and '}"
            f"{adjacent}ECE (expected calibration error, the lower the better) in %. The interval of the accuracy is a "
            f"bootstrap over documents; {bold_in_words(outcome)}.",
            *(() if outcome.corpus.ordered else (UNORDERED,)),
        ),
    )


def levels(outcome: Outcome) -> Table:
    """Accuracy on the documents of each level."""
    names = [name for name in outcome.measures if name.startswith("accuracy on ")]
    columns = [
        marked(outcome, [measured(outcome.overall(system, name), 100.0, 2) for system in outcome.systems])
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
        (f"Mean (std) over {runs_in_words(outcome)}; {bold_in_words(outcome)}.",),
    )


def comparisons(outcome: Outcome) -> Table:
    """Every two systems against each other, the method's pairs first."""
    others = [system for system in outcome.systems if system != outcome.method]
    pairs = [*((outcome.method, other) for other in others), *combinations(reversed(others), 2)]
    rows = tuple(
        (outcome.title(first), outcome.title(second), *comparison_cells(outcome.comparison(first, second)))
        for first, second in pairs
    )
    return Table(
        "comparisons",
        f"All pairs of systems on {outcome.corpus.name}",
        ("system", "against", *COMPARISON_COLUMNS),
        rows,
        (
            "Difference of the mean accuracies in points, its 95 % interval and two-sided p from a paired bootstrap "
            "over documents; McNemar's exact test on one decision a document (mean probabilities over runs): documents "
            "that only the first, and only the second, has right. p values are not corrected for the number of pairs.",
        ),
    )


def ablation(outcome: Outcome) -> Table:
    """What each kind of edge is worth."""
    sections = outcome.corpus.section_names
    shown = sections if len(sections) == 1 else (*sections, "")
    theirs = {section: paper.ABLATION.get((outcome.corpus.name, section), {}) for section in sections}
    rows = []
    for system in _ABLATION:
        cells: list[Cell] = [outcome.title(system)]
        for section in shown:
            cells.append(measured(outcome.estimates(system, "accuracy")[section], 100.0, 2))
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
        rows.append((outcome.title(system), "as above", measured(base, 100.0, 2), "", ""))
        for variant in first:
            if system in variant.systems:
                found = outcome.comparison(system, system, (variant.name, ""))
                rows.append(
                    (
                        outcome.title(system),
                        variant.name,
                        measured(outcome.overall(system, "accuracy", variant.name), 100.0, 2),
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
        rows.append((outcome.title(system), measured(outcome.overall(system), 100.0, 2), best))
    return Table(
        "best-on-test",
        f"NOT a result: the best accuracy on test over all epochs and candidates, on {outcome.corpus.name}",
        ("system", "accuracy (chosen on dev)", "best on test (chosen on test)"),
        tuple(rows),
        ("The last column looks at the test documents to choose; it says how much that flatters, and nothing else.",),
    )
