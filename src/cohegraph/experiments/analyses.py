"""The paper's analyses: what systems predict, where they fail, and which patterns go with which level."""

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from matplotlib import cbook
from scipy import stats

from cohegraph.experiments.cells import interval_of
from cohegraph.experiments.outcome import Outcome
from cohegraph.experiments.table import Cell, Number, Table, by_columns
from cohegraph.features import Features, patterns_of
from cohegraph.graph.catalogue import Pattern
from cohegraph.plots.charts import BOX_PARTS

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
WILSON = "The 95 % intervals are Wilson's, from the share of right decisions and the number of documents."
PATTERN_NAMES = (
    "A pattern is named after its sentences and links: 4:12.13.23 has four sentences, the first linked to the second "
    "and to the third, the second to the third; 4:- has no links. With an o before it, the order of sentences counts."
)
# The columns that a box plot is drawn from, as in BOX_PARTS.
BOX = ("lower whisker", "lower quartile", "median", "upper quartile", "upper whisker", "mean")
_FEWEST_DOCUMENTS = 3
_MOST_PATTERNS = 20


def analysis_tables(outcome: Outcome) -> Iterator[Table]:
    """The tables behind all figures."""
    yield level_distribution(outcome)
    yield accuracy_by_length(outcome)
    by_level = _structure_by_level(outcome)
    yield structure(outcome, by_level)
    yield structure_quartiles(outcome, by_level)
    yield pattern_frequencies(outcome)
    yield pattern_correlations(outcome)
    if outcome.experiment.sensitivity:
        yield sensitivity(outcome)


def level_distribution(outcome: Outcome) -> Table:
    """The share of each level among predictions, averaged over sections, against the true shares."""
    sections = [outcome.runs(outcome.systems[0], section) for section in outcome.corpus.section_names]
    true = _shares([[runs.gold[run.documents] for run in runs.runs] for runs in sections], outcome)
    rows: list[tuple[Cell, ...]] = [("true levels", *(Number(100 * share, decimals=1) for share in true), "")]
    for system in outcome.systems:
        sections = [outcome.runs(system, section) for section in outcome.corpus.section_names]
        shares = _shares([[run.predicted for run in runs.runs] for runs in sections], outcome)
        figures = (*(100 * shares), 50 * np.abs(shares - true).sum())
        rows.append((outcome.title(system), *(Number(figure, decimals=1) for figure in figures)))
    return Table(
        "level-distribution",
        f"Predicted levels in % against the true ones on {outcome.corpus.name}",
        ("system", *outcome.corpus.levels, "distance"),
        tuple(rows),
        ("Distance: percentage points that would have to move to another level to match the true shares.",),
    )


def _shares(codes: list[list[Ints]], outcome: Outcome) -> Floats:
    """The mean over sections of the share of each level in all runs."""
    levels = len(outcome.corpus.levels)
    by_section = [np.bincount(np.concatenate(runs), minlength=levels) / sum(map(len, runs)) for runs in codes]
    return np.asarray(np.mean(by_section, axis=0))


def accuracy_by_length(outcome: Outcome) -> Table:
    """Accuracy in bins of about equally many documents, from the shortest to the longest, with Wilson's interval.

    Documents of the same length are in the same bin.
    """
    lengths, right = [], defaultdict[str, list[Floats]](list)
    for section in outcome.corpus.section_names:
        tested = outcome.runs(outcome.systems[0], section).tested
        lengths.append(outcome.features(section).tally("words")[tested])
        for system in outcome.systems:
            right[system].append(outcome.runs(system, section).mean_accuracy()[tested])
    words = np.concatenate(lengths)
    shares = {system: np.concatenate(parts) for system, parts in right.items()}
    wanted = outcome.experiment.analyses.length_bins
    begins = np.sort(words)[[number * len(words) // wanted for number in range(1, wanted)]]
    bin_of = np.searchsorted(np.unique(begins), words, side="right")
    columns: list[tuple[str, list[Cell]]] = [("system", ["documents", *outcome.titles])]
    for number in np.unique(bin_of):
        chosen = bin_of == number
        documents, fewest, most = (int(count) for count in (chosen.sum(), words[chosen].min(), words[chosen].max()))
        cells: list[Cell] = [Number(documents, decimals=0)]
        for system in outcome.systems:
            share, low, high = wilson(float(shares[system][chosen].mean()), documents)
            cells.append(Number(100 * share, decimals=1, interval=(100 * low, 100 * high)))
        columns.append((f"{fewest}" if fewest == most else f"{fewest} to {most}", cells))
    title = f"Accuracy in % by length in words on {outcome.corpus.name}"
    return by_columns("accuracy-by-length", title, columns, f"Mean over runs. {WILSON}")


def wilson(share: float, number: int) -> tuple[float, float, float]:
    """A share of so many documents with Wilson's 95 % interval, which never leaves 0 to 1."""
    z2 = 1.96**2
    middle = (share + z2 / (2 * number)) / (1 + z2 / number)
    half = 1.96 / (1 + z2 / number) * math.sqrt(share * (1 - share) / number + z2 / (4 * number**2))
    return share, max(0.0, min(share, middle - half)), min(1.0, max(share, middle + half))


@dataclass(frozen=True)
class Correlation:
    """Pearson's r between the share of a pattern in documents and whether they have a level."""

    pattern: Pattern
    r: float
    p: float
    corrected_p: float


def correlations(features: Features, classes: Ints, levels: int) -> list[list[Correlation]]:
    """For every level, the patterns that not all documents have alike, from the highest r to the lowest.

    The p value is that of a t test of r; ``corrected_p`` is Holm's, over all patterns and levels tested.
    """
    found: list[list[Correlation]] = [[] for _ in range(levels)]
    counts = features.counts.toarray().astype(np.float64)
    long_enough = counts.sum(axis=1) > 0
    if features.settings is None or long_enough.sum() < _FEWEST_DOCUMENTS:
        return found
    shares = counts[long_enough] / counts[long_enough].sum(axis=1, keepdims=True)
    varying = np.flatnonzero(np.ptp(shares, axis=0) > 0).tolist()
    tests = []
    for level in range(levels):
        has_level = (classes[long_enough] == level).astype(np.float64)
        if np.ptp(has_level) > 0:
            tests += [(level, number, stats.pearsonr(shares[:, number], has_level)) for number in varying]
    corrected = holm(np.array([test.pvalue for *_, test in tests]))
    patterns = patterns_of(features.settings)
    for (level, number, test), p in zip(tests, corrected.tolist(), strict=True):
        found[level].append(Correlation(patterns[number], float(test.statistic), float(test.pvalue), p))
    return [sorted(of_level, key=lambda one: (-one.r, one.pattern.name)) for of_level in found]


def holm(p: Floats) -> Floats:
    """Holm's step-down correction: the k-th smallest of m p values times m - k + 1, never below those before it."""
    order = np.argsort(p, kind="stable")
    stepped = np.maximum.accumulate(p[order] * (len(p) - np.arange(len(p))))
    corrected = np.empty(len(p))
    corrected[order] = np.minimum(stepped, 1)
    return corrected


def pattern_correlations(outcome: Outcome) -> Table:
    """Every pattern with every level, over all documents of a section, as in the paper."""
    rows: list[tuple[Cell, ...]] = []
    for section in outcome.corpus.section_names:
        classes = outcome.corpus.codes[outcome.corpus.rows_of(section)]
        by_level = correlations(outcome.features(section), classes, len(outcome.corpus.levels))
        for level, found in zip(outcome.corpus.levels, by_level, strict=True):
            for one in found:
                figures = (Number(one.r, decimals=3), _p_value(one.p), _p_value(one.corrected_p))
                rows.append((section, level, one.pattern.name, _kind(one.pattern), *figures))
    return Table(
        "pattern-correlations",
        f"Pearson correlation of patterns with levels on {outcome.corpus.name}",
        ("section", "level", "pattern", "kind", "r", "p", "p (Holm)"),
        tuple(rows) or (("–",) * 7,),
        (
            "Share of the pattern among a document's subgraphs against whether it has the level; over all documents. "
            "p (Holm) is corrected for all patterns and levels of the section.",
            PATTERN_NAMES,
        ),
    )


def _p_value(p: float) -> Number:
    return Number(p, decimals=3, significant=True)


def _kind(pattern: Pattern) -> str:
    return "connected" if pattern.connected else "disconnected"


def pattern_frequencies(outcome: Outcome) -> Table:
    """The mean share of the most frequent patterns among documents of each level."""
    sections = outcome.corpus.section_names
    settings = outcome.features(sections[0]).settings
    if settings is None or len({outcome.features(section).counts.shape[1] for section in sections}) > 1:
        sections = sections[:1]
    counts = np.concatenate([outcome.features(section).counts.toarray() for section in sections]).astype(np.float64)
    classes = np.concatenate([outcome.corpus.codes[outcome.corpus.rows_of(section)] for section in sections])
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    top = np.argsort(-shares.mean(axis=0), kind="stable")[:_MOST_PATTERNS]
    patterns = [patterns_of(settings)[number] for number in top] if settings else []
    columns: list[tuple[str, list[Cell]]] = [
        ("pattern", [pattern.name for pattern in patterns]),
        ("kind", [_kind(pattern) for pattern in patterns]),
    ]
    for code, level in enumerate(outcome.corpus.levels):
        of_level = [shares[classes == code, number] for number in top]
        columns.append((level, [Number(100 * float(one.mean()) if len(one) else math.nan) for one in of_level]))
    title = f"Share of the {_MOST_PATTERNS} most frequent patterns in % by level on {outcome.corpus.name}"
    return by_columns("pattern-frequencies", title, columns, PATTERN_NAMES)


def _structure_by_level(outcome: Outcome) -> dict[str, dict[str, Floats]]:
    """For each figure of structure, the values of all documents by level."""
    codes = np.concatenate([outcome.corpus.codes[outcome.corpus.rows_of(s)] for s in outcome.corpus.section_names])
    by_section = [_structure(outcome.features(section)) for section in outcome.corpus.section_names]
    found = {}
    for name in by_section[0]:
        values = np.concatenate([figures[name] for figures in by_section])
        found[name] = {level: values[codes == code] for code, level in enumerate(outcome.corpus.levels)}
    return found


def _structure(features: Features) -> dict[str, Floats]:
    window = features.settings.subgraphs.window if features.settings else 2
    sentences, links = (features.tally(name).astype(np.float64) for name in ("sentences", "links"))
    nodes = sentences - features.tally("dropped_sentences")
    near = sum(np.maximum(nodes - distance, 0) for distance in range(1, window))
    connected = np.zeros(features.counts.shape[1])
    if features.settings is not None:
        connected = np.array([pattern.connected for pattern in patterns_of(features.settings)], dtype=np.float64)
    return {
        "sentences": sentences,
        "density": links / np.maximum(near, 1),
        "links a sentence": links / np.maximum(nodes, 1),
        "connected subgraphs": (features.counts @ connected) / np.maximum(features.tally("subgraphs"), 1),
    }


def structure(outcome: Outcome, figures: dict[str, dict[str, Floats]]) -> Table:
    """Sentences, density and connectedness by level, and how far levels differ."""
    rows: list[tuple[Cell, ...]] = []
    for name, by_level in figures.items():
        samples = [values for values in by_level.values() if len(values)]
        constant = np.ptp(np.concatenate(samples)) == 0
        p = 1.0 if constant or len(samples) < 2 else float(stats.kruskal(*samples).pvalue)
        decimals = 1 if name == "sentences" else 2
        known = {
            level: (float(values.mean()), float(values.std())) for level, values in by_level.items() if len(values)
        }
        means = (Number(*known[level], decimals) if level in known else Number(math.nan) for level in by_level)
        rows.append((name, *means, _p_value(p)))
    return Table(
        "structure-by-level",
        f"Structure of the documents of {outcome.corpus.name} by level",
        ("figure", *outcome.corpus.levels, "p (Kruskal–Wallis)"),
        tuple(rows),
        (
            "Mean (std) over documents. Density: the share of sentence pairs within a window that are linked; "
            "connected subgraphs: the share of a document's subgraphs that hang together.",
        ),
    )


def structure_quartiles(outcome: Outcome, figures: dict[str, dict[str, Floats]]) -> Table:
    """What box plots of the structure by level are drawn from."""
    rows: list[tuple[Cell, ...]] = []
    for name, by_level in figures.items():
        decimals = 1 if name == "sentences" else 3
        shown = {level: values for level, values in by_level.items() if len(values)}
        for level, box in zip(shown, cbook.boxplot_stats(list(shown.values())), strict=True):
            rows.append((name, level, *(Number(float(box[part]), decimals=decimals) for part in BOX_PARTS)))
    return Table(
        "structure-quartiles",
        f"Structure of the documents of {outcome.corpus.name} by level: quartiles",
        ("figure", "level", *BOX),
        tuple(rows),
        ("Whiskers end at the last document within 1.5 times the distance of the quartiles from these.",),
    )


def sensitivity(outcome: Outcome) -> Table:
    """The accuracy with other values of a setting."""
    rows: list[tuple[Cell, ...]] = []
    for setting, values in outcome.experiment.sensitivity.items():
        decimals = max(len(f"{value:.10f}".rstrip("0").partition(".")[2]) for value in values)
        for variant in outcome.experiment.variants:
            if variant.sensitivity and setting in variant.settings:
                accuracy = outcome.overall(variant.systems[0], "accuracy", variant.name)
                value = Number(float(variant.settings[setting]), decimals=decimals)
                rows.append((setting, value, Number(100 * accuracy.mean), interval_of(accuracy)))
    return Table(
        "sensitivity",
        f"Accuracy of {outcome.title(outcome.method)} in % on {outcome.corpus.name} with one setting changed at a time",
        ("setting", "value", "accuracy", "95 % interval"),
        tuple(rows),
        (f"Seed {outcome.experiment.protocol.seeds[0]} only.",),
    )
