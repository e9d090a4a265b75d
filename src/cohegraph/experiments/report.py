"""Everything that people look at: tables as files, figures as files, and one page that shows all of it.

The page is a single HTML file without anything from outside: figures are inside as SVG in the page's own ink, so that
it reads in light and dark.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from matplotlib.figure import Figure

from cohegraph.experiments.analyses import (
    SIGNIFICANT,
    TOP_PATTERNS,
    accuracy_by_length,
    analysis_tables,
    level_shares,
    section_correlations,
    sensitivity_points,
    structure_by_level,
)
from cohegraph.experiments.outcome import Outcome
from cohegraph.experiments.result_tables import costs, result_tables
from cohegraph.experiments.table import Table
from cohegraph.features import Featurizer
from cohegraph.files import write_atomically
from cohegraph.graph.catalogue import Pattern
from cohegraph.plots.accuracy_by_length import draw_accuracy_by_length
from cohegraph.plots.example import draw_example
from cohegraph.plots.level_distribution import draw_level_distribution
from cohegraph.plots.sensitivity import draw_sensitivity
from cohegraph.plots.structure_by_level import draw_structure_by_level
from cohegraph.plots.style import for_page, save
from cohegraph.plots.systems import draw_systems
from cohegraph.plots.top_patterns import draw_top_patterns

PAGE = "report.html"
_MOST_ROWS_ON_PAGE = 60


@dataclass(frozen=True)
class NamedFigure:
    """A figure with its file's name and a caption."""

    name: str
    caption: str
    draw: Callable[[], Figure]


def write_report(outcome: Outcome, folder: Path, *, device: str = "auto") -> Path:
    """Write tables, figures and the page into the folder of an experiment; the page's path is given back."""
    tables = [*result_tables(outcome), *analysis_tables(outcome)]
    cost = costs(outcome)
    _write_tables([*tables, cost], folder)
    place = folder / "figures"
    place.mkdir(exist_ok=True)
    drawn = [
        {"name": one.name, "caption": one.caption, "svg": save(one.draw(), place, one.name)}
        for one in figures(outcome, device)
    ]
    page = folder / PAGE
    write_atomically(page, _page(outcome, tables, cost, drawn))
    return page


def _write_tables(tables: list[Table], folder: Path) -> None:
    place = folder / "tables"
    place.mkdir(exist_ok=True)
    for table in tables:
        for ending, text in (("md", table.markdown()), ("csv", table.csv()), ("tex", table.latex())):
            write_atomically(place / f"{table.name}.{ending}", text)


def figures(outcome: Outcome, device: str = "auto") -> Iterator[NamedFigure]:
    """All figures of an experiment."""
    corpus = outcome.corpus
    yield NamedFigure(
        "systems",
        "Accuracy of every system with its 95 % interval over documents.",
        lambda: draw_systems(_system_rows(outcome), outcome.title(outcome.method), "accuracy, %"),
    )
    shares = level_shares(outcome)
    shown = {"true levels": shares[""].tolist()}
    shown |= {outcome.title(name): shares[name].tolist() for name in (outcome.baseline, outcome.method)}
    yield NamedFigure(
        "level-distribution",
        "Predicted levels against the true ones.",
        lambda: draw_level_distribution(corpus.levels, shown),
    )
    compared = tuple(dict.fromkeys((outcome.method, outcome.baseline)))
    bins = accuracy_by_length(outcome, compared)
    yield NamedFigure(
        "accuracy-by-length",
        "Accuracy against document length, in bins of equally many documents, with 95 % intervals.",
        lambda: draw_accuracy_by_length(
            [f"{one.fewest}–{one.most}" for one in bins],
            {outcome.title(name): [one.accuracy[name] for one in bins] for name in compared},
        ),
    )
    yield NamedFigure(
        "structure-by-level",
        "Structure of documents by level: boxes hold half of the documents, dots are means.",
        lambda: draw_structure_by_level(structure_by_level(outcome)),
    )
    for section in corpus.section_names:
        chosen = _top_patterns(outcome, section)
        if any(chosen.values()):
            single = len(corpus.section_names) == 1
            yield NamedFigure(
                "top-patterns" if single else f"top-patterns-{_file_name(section)}",
                f"The {TOP_PATTERNS} patterns that go most with each level"
                + ("" if single else f" in {section}")
                + ": r is Pearson's correlation, p is corrected for the number of tests (Holm).",
                lambda chosen=chosen: draw_top_patterns(chosen),  # type: ignore[misc]
            )
    if outcome.experiment.sensitivity:
        settings = outcome.experiment.settings_of(corpus.section_names[0]).flat()
        curves = sensitivity_points(outcome)
        yield NamedFigure(
            "sensitivity",
            "Accuracy of the method with one setting changed at a time; dotted: the value used elsewhere here.",
            lambda: draw_sensitivity(curves, {name: float(settings[name]) for name in curves}),
        )
    yield from _examples(outcome, device)


def _system_rows(outcome: Outcome) -> list[tuple[str, float, float, float]]:
    rows = []
    for system in outcome.systems:
        found = outcome.overall(system)
        rows.append((outcome.title(system), 100 * found.mean, 100 * found.low, 100 * found.high))
    return rows


def _top_patterns(outcome: Outcome, section: str) -> dict[str, list[tuple[Pattern, str]]]:
    found = {}
    for level, correlated in section_correlations(outcome, section).items():
        top = [one for one in correlated[:TOP_PATTERNS] if one.r > 0]
        found[level] = [
            (
                one.pattern,
                f"r = {one.r:.2f}, p = {one.corrected_p:.2g}" + ("" if one.corrected_p < SIGNIFICANT else " (n.s.)"),
            )
            for one in top
        ]
    return found


def _examples(outcome: Outcome, device: str) -> Iterator[NamedFigure]:
    """Documents of each level that the method is surest of, and right about."""
    corpus, wanted = outcome.corpus, outcome.experiment.analyses.examples
    if not wanted:
        return
    section = corpus.section_names[0]
    rows = corpus.rows_of(section)
    runs = outcome.runs(outcome.method, section)
    probabilities = runs.mean_probabilities()
    featurizer = Featurizer(outcome.experiment.settings_of(section), device=device)
    window = featurizer.settings.subgraphs.window
    for code, level in enumerate(corpus.levels):
        candidates = [i for i in range(len(rows)) if runs.tested[i] and runs.gold[i] == code]
        right = [i for i in candidates if probabilities[i].argmax() == code]
        surest = sorted(right, key=lambda i: (-probabilities[i, code], i))
        for number, i in enumerate(surest[:wanted], start=1):
            (linked,) = featurizer.link([corpus.texts[rows[i]]], reach=window)
            title = f"{corpus.ids[rows[i]]}: {level} (predicted with probability {probabilities[i, code]:.2f})"
            yield NamedFigure(
                f"example-{_file_name(level)}-{number}",
                f"A document of level {level}: boxes are nouns, filled ones make links; orange sentences have none.",
                lambda linked=linked, title=title: draw_example(linked, title),  # type: ignore[misc]
            )


def _file_name(text: str) -> str:
    return "".join(letter if letter.isalnum() else "-" for letter in text.lower()).strip("-")


def _page(outcome: Outcome, tables: list[Table], cost: Table, drawn: list[dict[str, str]]) -> str:
    environment = Environment(
        loader=PackageLoader("cohegraph", "data/experiments"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    experiment = outcome.experiment
    # With a single section these columns are in the table of all measures.
    hidden = ("accuracy", "macro-f1", "qwk") if len(outcome.corpus.section_names) == 1 else ()
    by_name = {table.name: table for table in tables if table.name not in hidden}
    about = dict(outcome.finished.about)
    settings = about.pop("settings")
    base: dict[str, dict[str, Any]] = settings[""]
    return environment.get_template("report.html.jinja").render(
        title=experiment.title or f"{outcome.corpus.name}: {len(outcome.systems)} systems",
        experiment=experiment,
        protocol=_protocol(outcome),
        headline=_headline(outcome),
        sections=[_on_page(by_name, drawn, *section) for section in _SECTIONS],
        examples=[_figure(one) for one in drawn if one["name"].startswith("example-")],
        cost=_table(cost),
        settings={section: json.dumps(values, indent=1, ensure_ascii=False) for section, values in base.items()},
        about=json.dumps(about, indent=1, ensure_ascii=False),
    )


# Heading, tables, and the names that figures begin with.
_SECTIONS: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = (
    ("Results", ("accuracy", "measures", "macro-f1", "qwk", "levels"), ("systems",)),
    ("Which differences are real", ("comparisons", "ablation", "variants", "best-on-test"), ()),
    ("What is predicted", ("level-distribution", "accuracy-by-length"), ("level-distribution", "accuracy-by-length")),
    (
        "Structure and levels",
        ("structure-by-level", "pattern-frequencies", "pattern-correlations"),
        ("structure-by-level", "top-patterns"),
    ),
    ("Sensitivity", ("sensitivity",), ("sensitivity",)),
    ("Corpus and choices", ("statistics", "choices"), ()),
)


def _on_page(
    tables: dict[str, Table],
    drawn: list[dict[str, str]],
    heading: str,
    table_names: tuple[str, ...],
    beginnings: tuple[str, ...],
) -> dict[str, Any]:
    return {
        "heading": heading,
        "figures": [_figure(one) for one in drawn if one["name"].startswith(beginnings) and beginnings],
        "tables": [_table(tables[name]) for name in table_names if name in tables],
    }


def _figure(one: dict[str, str]) -> dict[str, Any]:
    return {
        "name": one["name"],
        "caption": one["caption"],
        "svg": Markup(for_page(_own_names(one["svg"], one["name"]))),
    }


def _own_names(svg: str, name: str) -> str:
    """Names inside a figure get the figure's name: on one page with others they must not be taken for theirs."""
    for mark in ('id="', "url(#", 'href="#'):
        svg = svg.replace(mark, f"{mark}{name}-")
    return svg


def _table(table: Table) -> dict[str, Any]:
    shown = Table(
        table.name, table.title, table.columns, table.rows[:_MOST_ROWS_ON_PAGE], table.notes, table.muted, table.ruled
    )
    left_out = len(table.rows) - len(shown.rows)
    return {
        "title": table.title,
        "html": Markup(shown.html()),
        "notes": table.notes,
        "more": f"{left_out} more rows are in tables/{table.name}.csv." if left_out else "",
        "long": len(shown.rows) > 20,
    }


def _headline(outcome: Outcome) -> list[str]:
    """What came out, in sentences."""
    method = outcome.overall(outcome.method)
    sentences = [
        f"{outcome.title(outcome.method)}: accuracy {100 * method.mean:.1f} % "
        f"(95 % interval {100 * method.low:.1f} to {100 * method.high:.1f})."
    ]
    for other in outcome.systems:
        if other != outcome.method:
            found = outcome.comparison(outcome.method, other)
            sure = "a difference that could be chance" if found.low <= 0 <= found.high else "a real difference"
            sentences.append(
                f"Against {outcome.title(other)}: {100 * found.difference:+.1f} points "
                f"({100 * found.low:+.1f} to {100 * found.high:+.1f}), {sure}."
            )
    return sentences


def _protocol(outcome: Outcome) -> str:
    protocol = outcome.experiment.protocol
    folds = len(outcome.finished.work.folds)
    seeds = len(protocol.seeds)
    split = {
        "folds": "every document is tested in turn",
        "fixed-test": "folds over the training split, the test split fixed",
        "leave-one-group-out": "each group is tested in turn",
    }[protocol.kind]
    refit = " The chosen system is then trained once more on training and dev documents." if protocol.refit else ""
    sections = len(outcome.corpus.section_names)
    return (
        f"{len(outcome.corpus):,} documents in {_counted(sections, 'section')}, {_counted(folds, 'fold')} ({split}), "
        f"{_counted(seeds, 'seed')}. Hyper-parameters and epochs are chosen on dev documents inside each "
        f"fold; test documents are looked at once.{refit}"
    )


def _counted(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"
