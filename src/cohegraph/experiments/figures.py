"""The figures of an experiment, drawn from the tables of its summary alone."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from matplotlib.figure import Figure

from cohegraph.experiments.analyses import BOX, WILSON
from cohegraph.experiments.summary import Summary
from cohegraph.experiments.table import Cell, Interval, Number, Table
from cohegraph.graph.catalogue import Pattern, pattern_named
from cohegraph.plots import charts
from cohegraph.plots.style import save
from cohegraph.plots.top_patterns import draw_top_patterns

_SIGNIFICANT = 0.05
_TOP_PATTERNS = 2
# Bytes: names of files may have 255 of them, with what stands before and behind this part.
_LONGEST_FILE_NAME = 80


@dataclass(frozen=True)
class NamedFigure:
    """A figure with its file's name and a caption."""

    name: str
    caption: str
    draw: Callable[[], Figure]


def write_figures(figures: Iterable[NamedFigure], folder: Path) -> list[tuple[NamedFigure, str]]:
    """Write every figure as SVG and PNG into the subfolder ``figures``; they are returned with their SVG for a page."""
    place = folder / "figures"
    place.mkdir(parents=True, exist_ok=True)
    return [(one, save(one.draw(), place, one.name)) for one in figures]


def figures(summary: Summary) -> Iterator[NamedFigure]:
    """All figures of an experiment but those that show documents."""
    tables = summary.tables
    yield NamedFigure(
        "systems",
        "Accuracy of every system with its 95 % interval over documents.",
        lambda: charts.draw_systems(_systems(tables["measures"]), summary.method, "accuracy, %"),
    )
    # The same order in all figures: the baseline, then the method.
    compared = tuple(dict.fromkeys((summary.baseline, summary.method)))
    yield NamedFigure(
        "level-distribution",
        "Predicted levels against the true ones.",
        lambda: charts.draw_level_distribution(*_level_shares(tables["level-distribution"], compared)),
    )
    yield NamedFigure(
        "accuracy-by-length",
        f"Accuracy against document length, in bins of about equally many documents. {WILSON}",
        lambda: charts.draw_accuracy_by_length(*_accuracy_by_length(tables["accuracy-by-length"], compared)),
    )
    yield NamedFigure(
        "structure-by-level",
        "Structure of documents by level: boxes hold half of the documents, dots are means.",
        lambda: charts.draw_structure_by_level(_boxes(tables["structure-quartiles"])),
    )
    yield from _figures_of_top_patterns(summary)
    if "sensitivity" in tables:
        curves = _curves(tables["sensitivity"])
        yield NamedFigure(
            "sensitivity",
            f"Accuracy of {summary.method} with one setting changed at a time, with its 95 % interval over documents; "
            "dotted: the value used elsewhere here.",
            lambda: charts.draw_sensitivity(curves, _used(summary, curves)),
        )


def _systems(measures: Table) -> list[tuple[str, float, float, float]]:
    rows = measures.under("system", "accuracy", "95 % interval")
    return [(str(title), _value(accuracy), *_ends(interval)) for title, accuracy, interval in rows]


def _level_shares(table: Table, compared: tuple[str, ...]) -> tuple[list[str], dict[str, list[float]]]:
    """The levels, and their shares: the true ones are in the first row, and only systems have a distance to them."""
    true, *predicted = table.rows
    by_title = {str(row[0]): row for row in predicted}
    rows = {str(true[0]): true} | {title: by_title[title] for title in compared}
    return list(table.columns[1:-1]), {title: [_value(cell) for cell in row[1:-1]] for title, row in rows.items()}


def _accuracy_by_length(
    table: Table, compared: tuple[str, ...]
) -> tuple[list[str], dict[str, list[tuple[float, float, float]]]]:
    """The bins, and a point for each; the first row has the numbers of documents."""
    points = {str(row[0]): [(_value(cell), *_ends(cell)) for cell in row[1:]] for row in table.rows[1:]}
    return list(table.columns[1:]), {title: points[title] for title in compared}


def _boxes(table: Table) -> dict[str, dict[str, list[float]]]:
    found = defaultdict[str, dict[str, list[float]]](dict)
    for name, level, *box in table.under("figure", "level", *BOX):
        found[str(name)][str(level)] = [_value(cell) for cell in box]
    return found


def _figures_of_top_patterns(summary: Summary) -> Iterator[NamedFigure]:
    """A figure for each section that has a pattern to show."""
    names = list(dict.fromkeys(str(section) for (section,) in summary.tables["statistics"].under("section")))
    file_names = unique_file_names(names)
    for section in names:
        chosen = _top_patterns(summary, section)
        if any(chosen.values()):
            single = len(names) == 1
            yield NamedFigure(
                "top-patterns" if single else f"top-patterns-{file_names[section]}",
                f"The {_TOP_PATTERNS} patterns with the highest correlation with each level"
                + ("" if single else f" in {section}")
                + ": r is Pearson's, p is corrected for the number of tests (Holm). Circles are sentences in reading "
                "order, arrows are links, filled circles have none. Grey patterns (n.s.) could go with the level "
                "by chance.",
                lambda chosen=chosen: draw_top_patterns(chosen),  # type: ignore[misc]
            )


def _top_patterns(summary: Summary, section: str) -> dict[str, list[tuple[Pattern, str, bool]]]:
    """The first rows of each level, which are in order of r."""
    table = summary.tables["pattern-correlations"]
    found: dict[str, list[tuple[Pattern, str, bool]]] = {level: [] for level in summary.about["corpus"]["levels"]}
    for of_section, level, pattern, r, p in table.under("section", "level", "pattern", "r", "p (Holm)"):
        if of_section != section or len(found[str(level)]) == _TOP_PATTERNS or _value(r) <= 0:
            continue
        significant = _value(p) < _SIGNIFICANT
        caption = f"r = {r}, p = {p}" + ("" if significant else " (n.s.)")
        found[str(level)].append((pattern_named(str(pattern)), caption, significant))
    return found


def _curves(table: Table) -> dict[str, list[tuple[float, float, float, float]]]:
    found = defaultdict[str, list[tuple[float, float, float, float]]](list)
    for setting, value, accuracy, interval in table.under("setting", "value", "accuracy", "95 % interval"):
        found[str(setting)].append((_value(value), _value(accuracy), *_ends(interval)))
    return found


def _used(summary: Summary, settings: Iterable[str]) -> dict[str, float]:
    """The values that are used elsewhere; a setting that is off has none."""
    ((first_section,), *_) = summary.tables["statistics"].under("section")
    groups: Mapping[str, Mapping[str, float | None]] = summary.about["settings"][""][first_section]
    values = {name: groups[name.partition(".")[0]][name.partition(".")[2]] for name in settings}
    return {name: float(value) for name, value in values.items() if value is not None}


def _value(cell: Cell) -> float:
    if not isinstance(cell, Number):
        raise TypeError(f"'{cell}' is not a number")
    return cell.value


def _ends(cell: Cell) -> tuple[float, float]:
    if isinstance(cell, Interval):
        return cell.low, cell.high
    if not isinstance(cell, Number) or cell.interval is None:
        raise TypeError(f"'{cell}' has no interval")
    return cell.interval


def unique_file_names(names: Iterable[str]) -> dict[str, str]:
    """A short name for files of each name, all different on every file system."""
    found: dict[str, str] = {}
    for name in names:
        plain = "".join(letter if letter.isalnum() else "-" for letter in name.lower()).strip("-")
        short = plain.encode("utf-8")[:_LONGEST_FILE_NAME].decode("utf-8", "ignore").strip("-") or "x"
        number, chosen = 1, short
        while chosen in found.values():
            number += 1
            chosen = f"{short}-{number}"
        found[name] = chosen
    return found
