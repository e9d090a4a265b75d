"""The paper's analyses: what systems predict, where they fail, and which patterns go with which level."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from matplotlib import cbook
from scipy import stats

from cohegraph.experiments.outcome import Outcome
from cohegraph.experiments.table import Cell, Interval, Number, Table
from cohegraph.features import Features, patterns_of
from cohegraph.graph.catalogue import Pattern

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
WILSON = "The 95 % intervals are Wilson's, from the share of right decisions and the number of documents."
PATTERN_NAMES = (
    "A pattern is named after its sentences and links: 4:12.13.23 has four sentences, the first linked to the second "
    "and to the third, the second to the third; 4:- has no links. With an o before it, the order of sentences counts."
)
# The columns that a box plot is drawn from.
BOX = ("lower whisker", "lower quartile", "median", "upper quartile", "upper whisker", "mean")
_FEWEST_DOCUMENTS = 3


@dataclass(frozen=True)
class Correlation:
    """Pearson's r between the share of a pattern in documents and whether they have a level."""

    pattern: Pattern
    r: float
    p: float
    corrected_p: float


@dataclass(frozen=True)
class LengthBin:
    """Documents of similar length: the fewest and most words, how many, and each system's accuracy with interval."""

    fewest: int
    most: int
    documents: int
    accuracy: dict[str, tuple[float, float, float]]

    @property
    def title(self) -> str:
        """What the bin is called."""
        return f"{self.fewest}" if self.fewest == self.most else f"{self.fewest} to {self.most}"


def level_shares(outcome: Outcome) -> dict[str, Floats]:
    """The share of each level among predictions, averaged over sections; under "" among the true levels."""
    levels = len(outcome.corpus.levels)

    def shares(codes: Ints) -> Floats:
        return np.bincount(codes, minlength=levels) / len(codes)

    found: dict[str, Floats] = {}
    for system in ("", *outcome.systems):
        by_section = []
        for section in outcome.corpus.section_names:
            runs = outcome.runs(system or outcome.systems[0], section)
            seen = [runs.gold[run.documents] if system == "" else run.predicted for run in runs.runs]
            by_section.append(shares(np.concatenate(seen)))
        found[system] = np.mean(by_section, axis=0)
    return found


def level_distribution_table(outcome: Outcome) -> Table:
    """What systems predict against what is true."""
    found = level_shares(outcome)
    distance = {name: 50 * np.abs(share - found[""]).sum() for name, share in found.items()}
    rows: list[tuple[Cell, ...]] = [
        (
            outcome.title(name) if name else "true levels",
            *(Number(100 * value, decimals=1) for value in share),
            Number(distance[name], decimals=1) if name else "",
        )
        for name, share in found.items()
    ]
    return Table(
        "level-distribution",
        f"Predicted levels in % against the true ones on {outcome.corpus.name}",
        ("system", *outcome.corpus.levels, "distance"),
        tuple(rows),
        ("Distance: percentage points that would have to move to another level to match the true shares.",),
    )


def accuracy_by_length(outcome: Outcome, systems: tuple[str, ...]) -> list[LengthBin]:
    """Accuracy in bins of about equally many documents, from the shortest to the longest, with Wilson's interval.

    Documents of the same length are in the same bin.
    """
    lengths, right = [], {system: list[Floats]() for system in systems}
    for section in outcome.corpus.section_names:
        features = outcome.finished.work.features["", section]
        tested = outcome.runs(systems[0], section).tested
        lengths.append(features.tally("words")[tested])
        for system in systems:
            runs = outcome.runs(system, section)
            hits, times = np.zeros(len(runs.gold)), np.zeros(len(runs.gold))
            for run in runs.runs:
                np.add.at(hits, run.documents, run.predicted == runs.gold[run.documents])
                np.add.at(times, run.documents, 1)
            right[system].append(hits[tested] / times[tested])
    words = np.concatenate(lengths)
    shares = {system: np.concatenate(parts) for system, parts in right.items()}
    bins = []
    wanted = outcome.experiment.analyses.length_bins
    begins = np.sort(words)[[number * len(words) // wanted for number in range(1, wanted)]]
    bin_of = np.searchsorted(np.unique(begins), words, side="right")
    for number in np.unique(bin_of).tolist():
        chosen = np.flatnonzero(bin_of == number)
        found = {system: wilson(float(shares[system][chosen].mean()), len(chosen)) for system in systems}
        bins.append(LengthBin(int(words[chosen].min()), int(words[chosen].max()), len(chosen), found))
    return bins


def wilson(share: float, number: int) -> tuple[float, float, float]:
    """A share of so many documents with Wilson's 95 % interval, which never leaves 0 to 1."""
    z2 = 1.96**2
    middle = (share + z2 / (2 * number)) / (1 + z2 / number)
    half = 1.96 / (1 + z2 / number) * math.sqrt(share * (1 - share) / number + z2 / (4 * number**2))
    return share, max(0.0, min(share, middle - half)), min(1.0, max(share, middle + half))


def accuracy_by_length_table(outcome: Outcome) -> Table:
    """Every system's accuracy on short and long documents."""
    bins = accuracy_by_length(outcome, outcome.systems)
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (outcome.title(system), *(_with_interval(*one.accuracy[system]) for one in bins)) for system in outcome.systems
    )
    counts: tuple[Cell, ...] = ("documents", *(Number(one.documents, decimals=0) for one in bins))
    return Table(
        "accuracy-by-length",
        f"Accuracy in % by length in words on {outcome.corpus.name}",
        ("system", *(one.title for one in bins)),
        (counts, *rows),
        (f"Mean over runs. {WILSON}",),
    )


def _with_interval(share: float, low: float, high: float) -> Number:
    return Number(100 * share, decimals=1, interval=(100 * low, 100 * high))


def correlations(features: Features, classes: Ints, levels: int) -> list[list[Correlation]]:
    """For every level, the patterns that not all documents have alike, from the highest r to the lowest.

    The p value is that of a t test of r; ``corrected_p`` is Holm's, over all patterns and levels tested.
    """
    settings = features.settings
    counts = features.counts.toarray().astype(np.float64)
    long_enough = counts.sum(axis=1) > 0
    if settings is None or long_enough.sum() < _FEWEST_DOCUMENTS:
        return [[] for _ in range(levels)]
    patterns = patterns_of(settings)
    shares = counts[long_enough] / counts[long_enough].sum(axis=1, keepdims=True)
    varying = np.flatnonzero(np.ptp(shares, axis=0) > 0).tolist()
    tests: list[tuple[int, int, float, float]] = []
    for level in range(levels):
        has_level = (classes[long_enough] == level).astype(np.float64)
        if np.ptp(has_level) > 0:
            tests += [(level, number, *_pearson(shares[:, number], has_level)) for number in varying]
    corrected = holm(np.array([p for *_, p in tests]))
    found: list[list[Correlation]] = [[] for _ in range(levels)]
    for (level, number, r, p), better in zip(tests, corrected.tolist(), strict=True):
        found[level].append(Correlation(patterns[number], r, p, better))
    return [sorted(of_level, key=lambda one: (-one.r, one.pattern.name)) for of_level in found]


def _pearson(first: Floats, second: Floats) -> tuple[float, float]:
    found = stats.pearsonr(first, second)
    return float(found.statistic), float(found.pvalue)


def holm(p: Floats) -> Floats:
    """Holm's step-down correction: the k-th smallest of m p values times m - k + 1, never below those before it."""
    order = np.argsort(p, kind="stable")
    stepped = np.maximum.accumulate(p[order] * (len(p) - np.arange(len(p))))
    corrected = np.empty(len(p))
    corrected[order] = np.minimum(stepped, 1)
    return corrected


def section_correlations(outcome: Outcome, section: str) -> dict[str, list[Correlation]]:
    """The correlations of every level on all documents of a section, as in the paper."""
    classes = outcome.corpus.codes[outcome.corpus.rows_of(section)]
    features = outcome.finished.work.features["", section]
    by_level = correlations(features, classes, len(outcome.corpus.levels))
    return dict(zip(outcome.corpus.levels, by_level, strict=True))


def correlations_table(outcome: Outcome) -> Table:
    """Every pattern with every level."""
    rows: list[tuple[Cell, ...]] = []
    for section in outcome.corpus.section_names:
        for level, found in section_correlations(outcome, section).items():
            for one in found:
                connected = "connected" if one.pattern.connected else "disconnected"
                figures = (Number(one.r, decimals=3), _p_value(one.p), _p_value(one.corrected_p))
                rows.append((section, level, one.pattern.name, connected, *figures))
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


def structure_by_level(outcome: Outcome) -> dict[str, dict[str, Floats]]:
    """For each figure of structure, the values of all documents by level."""
    found: dict[str, dict[str, list[Floats]]] = {}
    for section in outcome.corpus.section_names:
        features = outcome.finished.work.features["", section]
        classes = outcome.corpus.codes[outcome.corpus.rows_of(section)]
        for name, values in _structure(features).items():
            for code, level in enumerate(outcome.corpus.levels):
                found.setdefault(name, {}).setdefault(level, []).append(values[classes == code])
    return {name: {level: np.concatenate(parts) for level, parts in by.items()} for name, by in found.items()}


def _structure(features: Features) -> dict[str, Floats]:
    window = features.settings.subgraphs.window if features.settings else 2
    nodes = (features.tally("sentences") - features.tally("dropped_sentences")).astype(np.float64)
    near = sum(np.maximum(nodes - distance, 0) for distance in range(1, window))
    links = features.tally("links").astype(np.float64)
    subgraphs = np.maximum(features.tally("subgraphs"), 1)
    connected = np.zeros(features.counts.shape[1])
    if features.settings is not None:
        kinds = patterns_of(features.settings)
        connected = np.array([pattern.connected for pattern in kinds], dtype=np.float64)
    return {
        "sentences": features.tally("sentences").astype(np.float64),
        "density": links / np.maximum(near, 1),
        "links a sentence": links / np.maximum(nodes, 1),
        "connected subgraphs": (features.counts @ connected) / subgraphs,
    }


def structure_table(outcome: Outcome) -> Table:
    """Sentences, density and connectedness by level, and how far levels differ."""
    rows: list[tuple[Cell, ...]] = []
    for name, by_level in structure_by_level(outcome).items():
        samples = [values for values in by_level.values() if len(values)]
        constant = np.ptp(np.concatenate(samples)) == 0
        p = 1.0 if constant or len(samples) < 2 else float(stats.kruskal(*samples).pvalue)
        rows.append(
            (
                name,
                *(
                    Number(float(values.mean()), float(values.std()), 1 if name == "sentences" else 2)
                    if len(values)
                    else Number(float("nan"))
                    for values in by_level.values()
                ),
                _p_value(p),
            )
        )
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


def structure_quartiles_table(outcome: Outcome) -> Table:
    """What box plots of the structure by level are drawn from."""
    rows: list[tuple[Cell, ...]] = []
    for name, by_level in structure_by_level(outcome).items():
        shown = {level: values for level, values in by_level.items() if len(values)}
        for level, box in zip(shown, cbook.boxplot_stats(list(shown.values())), strict=True):
            figures = (float(box[key]) for key in ("whislo", "q1", "med", "q3", "whishi", "mean"))
            rows.append(
                (name, level, *(Number(figure, decimals=1 if name == "sentences" else 3) for figure in figures))
            )
    return Table(
        "structure-quartiles",
        f"Structure of the documents of {outcome.corpus.name} by level: quartiles",
        ("figure", "level", *BOX),
        tuple(rows),
        ("Whiskers end at the last document within 1.5 times the distance of the quartiles from these.",),
    )


def pattern_frequency_table(outcome: Outcome) -> Table:
    """The mean share of the most frequent patterns among documents of each level."""
    features = [outcome.finished.work.features["", section] for section in outcome.corpus.section_names]
    settings = features[0].settings
    shapes = {one.counts.shape[1] for one in features}
    if settings is None or len(shapes) > 1:
        features = features[:1]
    counts = np.concatenate([one.counts.toarray() for one in features]).astype(np.float64)
    sections = outcome.corpus.section_names[: len(features)]
    classes = np.concatenate([outcome.corpus.codes[outcome.corpus.rows_of(section)] for section in sections])
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    top = np.argsort(-shares.mean(axis=0), kind="stable")[:20]
    patterns = patterns_of(settings) if settings else ()
    rows: list[tuple[Cell, ...]] = []
    for number in top.tolist():
        by_level = [shares[classes == code, number] for code in range(len(outcome.corpus.levels))]
        rows.append(
            (
                patterns[number].name,
                "connected" if patterns[number].connected else "disconnected",
                *(Number(100 * float(v.mean()) if len(v) else float("nan"), decimals=2) for v in by_level),
            )
        )
    return Table(
        "pattern-frequencies",
        f"Share of the 20 most frequent patterns in % by level on {outcome.corpus.name}",
        ("pattern", "kind", *outcome.corpus.levels),
        tuple(rows),
        (PATTERN_NAMES,),
    )


def sensitivity_points(outcome: Outcome) -> dict[str, list[tuple[float, float, float, float]]]:
    """For every setting that was varied: its values with the accuracy and its interval, in per cent."""
    found: dict[str, list[tuple[float, float, float, float]]] = {}
    for variant in outcome.experiment.variants:
        if variant.sensitivity:
            ((setting, value),) = variant.settings.items()
            accuracy = outcome.overall(variant.systems[0], "accuracy", variant.name)
            point = (float(value), 100 * accuracy.mean, 100 * accuracy.low, 100 * accuracy.high)
            found.setdefault(setting, []).append(point)
    return found


def sensitivity_table(outcome: Outcome) -> Table:
    """The accuracy with other values of a setting."""
    rows: list[tuple[Cell, ...]] = []
    for setting, points in sensitivity_points(outcome).items():
        decimals = max(len(f"{value:.10f}".rstrip("0").partition(".")[2]) for value, *_ in points)
        rows += [
            (setting, Number(value, decimals=decimals), Number(mean), Interval(low, high))
            for value, mean, low, high in points
        ]
    return Table(
        "sensitivity",
        f"Accuracy of {outcome.title(outcome.method)} in % on {outcome.corpus.name} with one setting changed at a time",
        ("setting", "value", "accuracy", "95 % interval"),
        tuple(rows),
        (f"Seed {outcome.experiment.protocol.seeds[0]} only.",),
    )


def analysis_tables(outcome: Outcome) -> Iterator[Table]:
    """The tables behind all figures."""
    yield level_distribution_table(outcome)
    yield accuracy_by_length_table(outcome)
    yield structure_table(outcome)
    yield structure_quartiles_table(outcome)
    yield pattern_frequency_table(outcome)
    yield correlations_table(outcome)
    if outcome.experiment.sensitivity:
        yield sensitivity_table(outcome)
