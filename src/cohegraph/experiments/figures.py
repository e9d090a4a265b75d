"""The figures of an experiment, drawn from the tables of its summary alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from matplotlib.figure import Figure

from cohegraph.experiments.analyses import BOX, WILSON
from cohegraph.experiments.summary import Summary
from cohegraph.experiments.table import Cell, Interval, Number, Table
from cohegraph.graph.catalogue import Pattern, pattern_named
from cohegraph.plots.accuracy_by_length import draw_accuracy_by_length
from cohegraph.plots.level_distribution import draw_level_distribution
from cohegraph.plots.sensitivity import draw_sensitivity
from cohegraph.plots.structure_by_level import Box, draw_structure_by_level
from cohegraph.plots.style import save
from cohegraph.plots.systems import draw_systems
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


@dataclass(frozen=True)
class DrawnFigure:
    """A figure as SVG on no ground, for a page."""

    name: str
    caption: str
    svg: str


def write_figures(figures: Iterable[NamedFigure], folder: Path) -> list[DrawnFigure]:
    """Write every figure as SVG and PNG into the subfolder ``figures``."""
    place = folder / "figures"
    place.mkdir(parents=True, exist_ok=True)
    return [DrawnFigure(one.name, one.caption, save(one.draw(), place, one.name)) for one in figures]


def figures(summary: Summary) -> Iterator[NamedFigure]:
    """All figures of an experiment but those that show documents."""
    tables = summary.tables
    yield NamedFigure(
        "systems",
        "Accuracy of every system with its 95 % interval over documents.",
        lambda: draw_systems(_systems(tables["measures"]), summary.method, "accuracy, %"),
    )
    # The same order in all figures: the baseline, then the method.
    compared = tuple(dict.fromkeys((summary.baseline, summary.method)))
    yield NamedFigure(
        "level-distribution",
        "Predicted levels against the true ones.",
        lambda: draw_level_distribution(*_level_shares(tables["level-distribution"], compared)),
    )
    yield NamedFigure(
        "accuracy-by-length",
        f"Accuracy against document length, in bins of about equally many documents. {WILSON}",
        lambda: draw_accuracy_by_length(*_accuracy_by_length(tables["accuracy-by-length"], compared)),
    )
    yield NamedFigure(
        "structure-by-level",
        "Structure of documents by level: boxes hold half of the documents, dots are means.",
        lambda: draw_structure_by_level(_boxes(tables["structure-quartiles"])),
    )
    yield from _figures_of_top_patterns(summary)
    if "sensitivity" in tables:
        curves = _curves(tables["sensitivity"])
        yield NamedFigure(
            "sensitivity",
            f"Accuracy of {summary.method} with one setting changed at a time, with its 95 % interval over documents; "
            "dotted: the value used elsewhere here.",
            lambda: draw_sensitivity(curves, _used(summary, curves)),
        )


def _systems(measures: Table) -> list[tuple[str, float, float, float]]:
    cells = zip(*(measures.column(name) for name in ("system", "accuracy", "95 % interval")), strict=True)
    return [(str(title), _value(accuracy), *_ends(interval)) for title, accuracy, interval in cells]


def _level_shares(table: Table, compared: tuple[str, ...]) -> tuple[list[str], dict[str, list[float]]]:
    """The levels, and their shares: the true ones are in the first row, and only systems have a distance to them."""
    levels = list(table.columns[1:-1])
    true, *predicted = table.rows
    by_title = {row[0]: row for row in predicted}
    rows = {str(true[0]): true} | {title: by_title[title] for title in compared}
    return levels, {title: [_value(cell) for cell in row[1:-1]] for title, row in rows.items()}


def _accuracy_by_length(
    table: Table, compared: tuple[str, ...]
) -> tuple[list[str], dict[str, list[tuple[float, float, float]]]]:
    """The bins, and a point for each; the first row has the numbers of documents."""
    by_title = {row[0]: row for row in table.rows[1:]}
    return list(table.columns[1:]), {
        title: [(_value(cell), *_ends(cell)) for cell in by_title[title][1:]] for title in compared
    }


def _boxes(table: Table) -> dict[str, dict[str, Box]]:
    found: dict[str, dict[str, Box]] = defaultdict(dict)
    columns = [table.column(name) for name in ("figure", "level", *BOX)]
    for name, level, low, lower, median, upper, high, mean in zip(*columns, strict=True):
        box = (_value(low), _value(lower), _value(median), _value(upper), _value(high), _value(mean))
        found[str(name)][str(level)] = box
    return found


def _figures_of_top_patterns(summary: Summary) -> Iterator[NamedFigure]:
    """A figure for each section that has a pattern to show."""
    names = list(dict.fromkeys(map(str, summary.tables["statistics"].column("section"))))
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
    columns = [table.column(name) for name in ("section", "level", "pattern", "r", "p (Holm)")]
    for of_section, level, pattern, r, p in zip(*columns, strict=True):
        if of_section != section or len(found[str(level)]) == _TOP_PATTERNS or _value(r) <= 0:
            continue
        significant = _value(p) < _SIGNIFICANT
        caption = f"r = {r}, p = {p}" + ("" if significant else " (n.s.)")
        found[str(level)].append((pattern_named(str(pattern)), caption, significant))
    return found


def _curves(table: Table) -> dict[str, list[tuple[float, float, float, float]]]:
    found: dict[str, list[tuple[float, float, float, float]]] = defaultdict(list)
    columns = [table.column(name) for name in ("setting", "value", "accuracy", "95 % interval")]
    for setting, value, accuracy, interval in zip(*columns, strict=True):
        found[str(setting)].append((_value(value), _value(accuracy), *_ends(interval)))
    return found


def _used(summary: Summary, settings: Iterable[str]) -> dict[str, float]:
    """The values that are used elsewhere; a setting that is off has none."""
    first_section = summary.tables["statistics"].column("section")[0]
    groups: Mapping[str, Mapping[str, float | None]] = summary.about["settings"][""][first_section]
    found = {}
    for name in settings:
        group, _, setting = name.partition(".")
        value = groups[group][setting]
        if value is not None:
            found[name] = float(value)
    return found


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
    taken: set[str] = set()
    for name in names:
        plain = "".join(letter if letter.isalnum() else "-" for letter in name.lower()).strip("-")
        short = plain.encode("utf-8")[:_LONGEST_FILE_NAME].decode("utf-8", "ignore").strip("-") or "x"
        number, chosen = 1, short
        while chosen in taken:
            number += 1
            chosen = f"{short}-{number}"
        taken.add(chosen)
        found[name] = chosen
    return found
