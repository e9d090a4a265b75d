"""The tables of results: the paper's, and those that the paper leaves out."""

import math
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import combinations

import numpy as np

from cohegraph.experiments import paper
from cohegraph.experiments.cells import OF_ONE, bold_in_words, interval_of, measured, of_systems, runs_in_words
from cohegraph.experiments.outcome import Outcome
from cohegraph.experiments.table import Cell, Number, Table, by_columns
from cohegraph.experiments.units import Cost

UNORDERED = (
    "The order of these levels is not known, so that QWK and adjacent accuracy are left out: name the levels from "
    "lowest to highest with --levels, or as levels among the corpus's options."
)
_ABLATION = ("gcn", "gcn-no-pmi", "gcn-no-edges")


def result_tables(outcome: Outcome) -> Iterator[Table]:
    """All tables of results but those with times."""
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
    """The tables with times, which differ from run to run."""
    yield overview(outcome)
    yield costs(outcome)


def statistics(outcome: Outcome) -> Table:
    """Documents, words, sentences and levels by section, as in the paper's table of statistics."""
    corpus = outcome.corpus
    rows: list[tuple[Cell, ...]] = []
    for section in corpus.section_names:
        numbers, features = corpus.rows_of(section), outcome.features(section)
        test = None if corpus.test is None else np.array(corpus.test)[numbers]
        parts = [("total", np.ones(len(numbers), dtype=bool))] if test is None else [("train", ~test), ("test", test)]
        for name, chosen in parts:
            words, sentences = features.tally("words")[chosen], features.tally("sentences")[chosen]
            by_level = np.bincount(corpus.codes[numbers][chosen], minlength=len(corpus.levels))
            mean_words, mean_sentences = (Number(float(one.mean()), decimals=1) for one in (words, sentences))
            documents, most_words, *in_levels = (
                Number(int(count), decimals=0) for count in (chosen.sum(), words.max(), *by_level)
            )
            rows.append((section, name, documents, mean_words, most_words, mean_sentences, *in_levels))
    columns = ("section", "split", "documents", "words (mean)", "words (max)", "sentences (mean)", *corpus.levels)
    return Table("statistics", f"Documents of {corpus.name}", columns, tuple(rows))


def by_section(outcome: Outcome, measure: str) -> Table:
    """A measure of every system in every section: the paper's main tables, its own figures beside ours."""
    corpus = outcome.corpus
    sections = corpus.section_names
    single = len(sections) == 1
    shown = sections if single else (*sections, "")
    cells = list(zip(*(of_systems(outcome, measure, section) for section in shown), strict=True))
    theirs = paper.rows_of(corpus.name, measure, sections)
    rows = [_paper_row(row, places, shown) for row, places in theirs if row.system not in outcome.systems]
    muted, ruled = set(range(len(rows))), set()
    for number, system in enumerate(outcome.systems):
        if system == outcome.method or (number == 0 and rows):
            ruled.add(len(rows))
        rows.append((outcome.title(system), *cells[number]))
        beside = [_paper_row(row, places, shown) for row, places in theirs if row.system == system]
        muted |= set(range(len(rows), len(rows) + len(beside)))
        rows += beside
    notes = [f"Mean (std) over {runs_in_words(outcome)}; {bold_in_words(outcome, ' of ours')}."]
    if not single:
        notes.append("The std of an average is the mean of the sections' stds.")
    if theirs:
        notes.append("In italics: the paper's own figures (XLNet, GloVe 840B).")
    title = f"{measure[0].upper()}{measure[1:]}{'' if measure in OF_ONE else ' in %'} on {corpus.name}"
    columns = ("system", *(measure if single else section or "average" for section in shown))
    return Table(measure.lower(), title, columns, tuple(rows), tuple(notes), frozenset(muted), frozenset(ruled))


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
    first, *others = (name for name in outcome.measures if not name.startswith("accuracy on "))
    averaged = ", within sections and then averaged" if len(outcome.corpus.section_names) > 1 else ""
    adjacent = ", adjacent accuracy and " if "adjacent" in others else " and "
    return by_columns(
        "measures",
        f"All measures on {outcome.corpus.name}",
        [
            ("system", outcome.titles),
            (first, of_systems(outcome, first)),
            ("95 % interval", [interval_of(outcome.overall(system)) for system in outcome.systems]),
            *((name, of_systems(outcome, name)) for name in others),
        ],
        f"Mean (std) over {runs_in_words(outcome)}{averaged}. Accuracy, macro-F1{adjacent}ECE (expected calibration "
        "error, the lower the better) in %. The interval of the accuracy is a bootstrap over documents; "
        f"{bold_in_words(outcome)}.",
        *(() if outcome.corpus.ordered else (UNORDERED,)),
    )


def levels(outcome: Outcome) -> Table:
    """Accuracy on the documents of each level."""
    by_level = [(level, of_systems(outcome, f"accuracy on {level}")) for level in outcome.corpus.levels]
    return by_columns(
        "levels",
        f"Accuracy by level in % on {outcome.corpus.name}",
        [("system", outcome.titles), *by_level],
        f"Mean (std) over {runs_in_words(outcome)}; {bold_in_words(outcome)}.",
    )


def comparisons(outcome: Outcome) -> Table:
    """Every two systems against each other, the method's pairs first."""
    others = [system for system in outcome.systems if system != outcome.method]
    pairs = [*((outcome.method, other) for other in others), *combinations(reversed(others), 2)]
    found = [outcome.comparison(first, second) for first, second in pairs]
    return by_columns(
        "comparisons",
        f"All pairs of systems on {outcome.corpus.name}",
        [
            ("system", [outcome.title(first) for first, _ in pairs]),
            ("against", [outcome.title(second) for _, second in pairs]),
            ("difference", [Number(100 * one.difference, signed=True) for one in found]),
            ("95 % interval", [interval_of(one) for one in found]),
            ("p (bootstrap)", [Number(one.p_bootstrap, decimals=4) for one in found]),
            ("only first", [Number(one.only_first, decimals=0) for one in found]),
            ("only second", [Number(one.only_second, decimals=0) for one in found]),
            ("p (McNemar)", [Number(p, decimals=4) if (p := one.p_mcnemar) >= 0.0001 else "<0.0001" for one in found]),
        ],
        "Difference of the mean accuracies in points, its 95 % interval and two-sided p from a paired bootstrap "
        "over documents; McNemar's exact test on one decision per document (mean probabilities over runs): documents "
        "that only the first, and only the second, has right. p values are not corrected for the number of pairs.",
    )


def ablation(outcome: Outcome) -> Table:
    """What each kind of edge is worth."""
    sections = outcome.corpus.section_names
    columns: list[tuple[str, list[Cell]]] = [("model", [outcome.title(system) for system in _ABLATION])]
    for section in sections if len(sections) == 1 else (*sections, ""):
        name = "accuracy" if len(sections) == 1 else section or "average"
        columns.append((name, [measured(outcome.estimates(system, "accuracy")[section]) for system in _ABLATION]))
        theirs = paper.ABLATION.get((outcome.corpus.name, section))
        if theirs:
            columns.append((f"{section}, paper", [Number(theirs[system]) for system in _ABLATION]))
    return by_columns(
        "ablation",
        f"Accuracy in % on {outcome.corpus.name} without edges between patterns, and without any",
        columns,
        "Without any edges the method is the DNN with the method's own inputs, surface figures among them where "
        "document nodes carry these: the difference to it is what edges are worth.",
    )


def variants(outcome: Outcome) -> Table:
    """The experiment with other settings: pretrained parts, other readings of the method."""
    rows: list[tuple[Cell, ...]] = []
    ruled = set()
    shown = [variant for variant in outcome.experiment.variants if not variant.sensitivity]
    for system in dict.fromkeys(name for variant in shown for name in variant.systems):
        title = outcome.title(system)
        ruled.add(len(rows))
        rows.append((title, "as above", measured(outcome.overall(system)), "", ""))
        for variant in shown:
            if system in variant.systems:
                found = outcome.comparison(system, system, (variant.name, ""))
                accuracy = measured(outcome.overall(system, "accuracy", variant.name))
                difference = Number(100 * found.difference, signed=True)
                rows.append((title, variant.name, accuracy, difference, interval_of(found)))
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
    notes: list[str] = []
    for system in outcome.systems:
        title, results = outcome.title(system), outcome.results(system)
        for name in dict.fromkeys(name for result in results for name in result.chosen):
            values = [result.chosen[name] for result in results]
            if name.endswith("epochs"):
                low, middle, high = np.percentile(values, (25, 50, 75))
                shown = f"median {middle:.0f} (half of them from {low:.0f} to {high:.0f})"
                if sum(value <= 1 for value in values) > len(values) / 2:
                    notes.append(
                        f"{title} has hardly trained: in most folds the first epoch was the best on dev documents, "
                        "which more of them, another learning rate or choosing by loss may change."
                    )
            else:
                counted = sorted(Counter(map(str, values)).items(), key=lambda item: (-item[1], item[0]))
                shown = ", ".join(f"{value} ({times}×)" for value, times in counted)
            rows.append((title, name, shown))
    title = f"What was chosen on dev documents of {outcome.corpus.name}"
    nothing = (("–", "–", "nothing was searched"),)
    return Table("choices", title, ("system", "hyper-parameter", "chosen"), tuple(rows) or nothing, tuple(notes))


def best_on_test(outcome: Outcome) -> Table:
    """What the accuracy would be if the epoch were chosen on test: for comparison with figures reported so."""

    def best(system: str) -> Cell:
        found = [100 * one.best_on_test for one in outcome.results(system) if one.best_on_test is not None]
        return Number(float(np.mean(found)), float(np.std(found, ddof=min(1, len(found) - 1)))) if found else "–"

    return by_columns(
        "best-on-test",
        f"NOT a result: the best accuracy on test over all epochs and candidates, on {outcome.corpus.name}",
        [
            ("system", outcome.titles),
            ("accuracy (chosen on dev)", [measured(outcome.overall(system)) for system in outcome.systems]),
            ("best on test (chosen on test)", [best(system) for system in outcome.systems]),
        ],
        "The last column looks at the test documents to choose; it says how much that flatters, and nothing else.",
    )


def overview(outcome: Outcome) -> Table:
    """What each system reaches and what it costs, in one row."""
    return by_columns(
        "overview",
        f"Every system on {outcome.corpus.name}: what it reaches, and what it costs",
        [
            ("system", outcome.titles),
            ("accuracy", of_systems(outcome)),
            ("95 % interval", [interval_of(outcome.overall(system)) for system in outcome.systems]),
            ("parameters", _parameters(outcome)),
            ("s to train", _costs(outcome, np.mean, lambda cost: cost.seconds, decimals=1)),
            ("ms a document", _costs(outcome, np.mean, lambda cost: 1e3 * cost.seconds_a_document, decimals=2)),
        ],
        f"Accuracy in %, mean (std) over {runs_in_words(outcome)}, its interval a bootstrap over documents; "
        f"{bold_in_words(outcome)}. Time of a fold's search and training, and of scoring one document, features "
        "ready, on one thread; times differ from run to run.",
    )


def costs(outcome: Outcome) -> Table:
    """Parameters, time and memory of each system."""
    return by_columns(
        "costs",
        f"What each system costs on {outcome.corpus.name}, features ready",
        [
            ("system", outcome.titles),
            ("parameters", _parameters(outcome)),
            ("s a fold and seed", _costs(outcome, np.mean, lambda cost: cost.seconds, decimals=2)),
            ("s in all", _costs(outcome, np.sum, lambda cost: cost.seconds, decimals=0)),
            ("µs a document", _costs(outcome, np.mean, lambda cost: 1e6 * cost.seconds_a_document, decimals=1)),
            ("MB", _costs(outcome, np.max, lambda cost: cost.megabytes, decimals=0)),
        ],
        "Search on dev and training of one fold with one seed, all of them together, scoring of one document, and "
        "memory above what the process had before, on one thread. These differ from run to run.",
    )


def _parameters(outcome: Outcome) -> list[Number]:
    means = [np.mean([result.parameters for result in outcome.results(system)]) for system in outcome.systems]
    return [Number(float(mean), decimals=0) for mean in means]


def _costs(
    outcome: Outcome, over_runs: Callable[[list[float]], float], of_run: Callable[[Cost], float], *, decimals: int
) -> list[Number]:
    """A cost of every system; NaN where nothing was noted."""
    cells = []
    for system in outcome.systems:
        found = [of_run(cost) for cost in outcome.finished.costs if (cost.system, cost.variant) == (system, "")]
        cells.append(Number(float(over_runs(found)) if found else math.nan, decimals=decimals))
    return cells
