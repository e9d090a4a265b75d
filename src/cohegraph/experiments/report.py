"""Everything that people look at: tables as files, figures as files, and one page that shows all of it.

The page is a single HTML file without anything from outside: figures are inside as SVG in the page's own ink, so that
it reads in light and dark.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from cohegraph.experiments.analyses import analysis_tables
from cohegraph.experiments.cells import folds_in_words, interval_of
from cohegraph.experiments.cost_tables import timed_tables
from cohegraph.experiments.figures import DrawnFigure, NamedFigure, figures, unique_file_names, write_figures
from cohegraph.experiments.outcome import Outcome
from cohegraph.experiments.result_tables import UNORDERED, result_tables
from cohegraph.experiments.summary import METHOD_PAIRS, SUMMARY, Summary
from cohegraph.experiments.table import Table, shown, write_tables
from cohegraph.features import Featurizer
from cohegraph.files import write_atomically
from cohegraph.plots.example import draw_example
from cohegraph.plots.ink import without_control
from cohegraph.plots.style import for_page

PAGE = "report.html"
_MOST_ROWS_ON_PAGE = 60
_TAG = re.compile("<[^<>]+>")


def write_report(outcome: Outcome, folder: Path, *, device: str = "auto") -> Path:
    """Write the summary, tables, figures and the page into the folder of an experiment; the page's path is given back.

    Tables and figures are those of the summary, so that they can be made again from its file alone.
    """
    summary = summarize(outcome)
    summary.write(folder / SUMMARY)
    write_tables(summary.tables.values(), folder)
    drawn = write_figures([*figures(summary), *_examples(outcome, device)], folder)
    page = folder / PAGE
    write_atomically(page, without_control(_page(outcome, summary, drawn)))
    return page


def summarize(outcome: Outcome) -> Summary:
    """All tables of an experiment, and what shaped it."""
    tables = (*result_tables(outcome), *analysis_tables(outcome), *timed_tables(outcome))
    return Summary(
        outcome.finished.about,
        outcome.title(outcome.method),
        outcome.title(outcome.baseline),
        {table.name: table for table in tables},
    )


def _examples(outcome: Outcome, device: str) -> Iterator[NamedFigure]:
    """Documents of each level that the method is surest of, and right about."""
    corpus = outcome.corpus
    chosen = _surest(outcome)
    if not any(chosen.values()):
        return
    featurizer = Featurizer(outcome.experiment.settings_of(corpus.section_names[0]), device=device)
    file_names = unique_file_names(corpus.levels)
    for level, documents in chosen.items():
        for number, (row, probability) in enumerate(documents, start=1):
            (linked,) = featurizer.link([corpus.texts[row]])
            title = f"{corpus.ids[row]}: {level} (predicted with probability {probability:.2f})"
            yield NamedFigure(
                f"example-{file_names[level]}-{number}",
                f"A document of level {level}, as written: boxes are nouns, filled ones make links; orange sentences "
                "have none.",
                lambda linked=linked, title=title: draw_example(linked, title),  # type: ignore[misc]
            )


def _surest(outcome: Outcome) -> dict[str, list[tuple[int, float]]]:
    """For each level the documents of the first section to show, with the probability of the level."""
    corpus, wanted = outcome.corpus, outcome.experiment.analyses.examples
    if not wanted:
        return {}
    rows = corpus.rows_of(corpus.section_names[0])
    runs = outcome.runs(outcome.method, corpus.section_names[0])
    probabilities = runs.mean_probabilities()
    found = {}
    for code, level in enumerate(corpus.levels):
        right = [
            i for i in range(len(rows)) if runs.tested[i] and runs.gold[i] == code and probabilities[i].argmax() == code
        ]
        surest = sorted(right, key=lambda i: (-probabilities[i, code], i))[:wanted]
        found[level] = [(int(rows[i]), float(probabilities[i, code])) for i in surest]
    return found


def _page(outcome: Outcome, summary: Summary, drawn: list[DrawnFigure]) -> str:
    environment = Environment(
        loader=PackageLoader("cohegraph", "data/experiments"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    experiment = outcome.experiment
    # With a single section these columns are in the table of all measures; the paper's own figures are not.
    single = len(outcome.corpus.section_names) == 1
    tables = summary.tables
    hidden = [name for name in ("accuracy", "macro-f1", "qwk") if name in tables and not tables[name].muted]
    by_name = {name: table for name, table in tables.items() if not (single and name in hidden)}
    by_name[METHOD_PAIRS] = summary.method_pairs()
    about = dict(outcome.finished.about)
    settings = about.pop("settings")
    base: dict[str, dict[str, Any]] = settings[""]
    return environment.get_template("report.html.jinja").render(
        title=experiment.title or f"{outcome.corpus.name}: {len(outcome.systems)} systems",
        experiment=experiment,
        scope=_scope(outcome),
        protocol=_protocol(outcome),
        headline=_headline(outcome),
        sections=[_on_page(by_name, drawn, *section) for section in _SECTIONS],
        examples=[_figure(one) for one in drawn if one.name.startswith("example-")],
        missing_examples=_missing_examples(outcome),
        settings={section: json.dumps(values, indent=1, ensure_ascii=False) for section, values in base.items()},
        about=json.dumps(about, indent=1, ensure_ascii=False),
    )


# Heading, tables, and the names that figures begin with.
_SECTIONS: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = (
    ("Results", ("overview", "accuracy", "measures", "macro-f1", "qwk", "levels"), ("systems",)),
    ("Differences between systems", (METHOD_PAIRS, "comparisons", "ablation", "variants", "best-on-test"), ()),
    ("What is predicted", ("level-distribution", "accuracy-by-length"), ("level-distribution", "accuracy-by-length")),
    (
        "Structure and levels",
        ("structure-by-level", "structure-quartiles", "pattern-frequencies", "pattern-correlations"),
        ("structure-by-level", "top-patterns"),
    ),
    ("Sensitivity", ("sensitivity",), ("sensitivity",)),
    ("Corpus, choices and costs", ("statistics", "choices", "costs"), ()),
)


def _on_page(
    tables: dict[str, Table],
    drawn: list[DrawnFigure],
    heading: str,
    table_names: tuple[str, ...],
    beginnings: tuple[str, ...],
) -> dict[str, Any]:
    return {
        "heading": heading,
        "figures": [_figure(one) for one in drawn if one.name.startswith(beginnings) and beginnings],
        "tables": [_table(tables[name]) for name in table_names if name in tables],
    }


def _figure(one: DrawnFigure) -> dict[str, Any]:
    return {"name": one.name, "caption": one.caption, "svg": Markup(for_page(_own_names(one.svg, one.name)))}


def _own_names(svg: str, name: str) -> str:
    """Names inside a figure get the figure's name: on one page with others they must not be taken for theirs."""

    def own(tag: re.Match[str]) -> str:
        text = tag[0]
        for mark in (' id="', "url(#", 'href="#'):
            text = text.replace(mark, f"{mark}{name}-")
        return text

    return _TAG.sub(own, svg)


def _table(table: Table) -> dict[str, Any]:
    kept = Table(
        table.name, table.title, table.columns, table.rows[:_MOST_ROWS_ON_PAGE], table.notes, table.muted, table.ruled
    )
    left_out = len(table.rows) - len(kept.rows)
    return {
        "title": table.title,
        "html": Markup(kept.html()),
        "notes": table.notes,
        "more": f"{left_out} more rows are in tables/{table.name}.csv." if left_out else "",
        "long": len(kept.rows) > 20 or table.name == "comparisons",
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
            zero = "includes" if found.low <= 0 <= found.high else "excludes"
            sentences.append(
                f"Against {outcome.title(other)}: {shown(100 * found.difference, 1, signed=True)} points "
                f"({interval_of(found)}); the interval {zero} 0."
            )
    return sentences


def _scope(outcome: Outcome) -> list[str]:
    """What a reader must know before any figure: which part of a corpus this is, and what is not known of it."""
    corpus, plan = outcome.corpus, outcome.experiment.corpus
    found = []
    if plan.sections is not None:
        found.append(f"Only a part of {corpus.name}: {', '.join(corpus.section_names)}.")
    if plan.partial:
        found.append(
            f"An incomplete {corpus.name} was allowed (partial = true): these may not be figures of the whole."
        )
    if not corpus.ordered:
        found.append(UNORDERED)
    return found


def _missing_examples(outcome: Outcome) -> list[str]:
    """Why there are fewer examples than asked for."""
    wanted, corpus = outcome.experiment.analyses.examples, outcome.corpus
    where = "" if len(corpus.section_names) == 1 else f" of {corpus.section_names[0]}, whose documents these are,"
    return [
        f"Of level {level} there {'is' if len(found) == 1 else 'are'} {len(found) or 'none'}: "
        f"{outcome.title(outcome.method)} is right about no {'other ' if found else ''}tested document{where} of this "
        "level."
        for level, found in _surest(outcome).items()
        if len(found) < wanted
    ]


def _protocol(outcome: Outcome) -> str:
    protocol = outcome.experiment.protocol
    seeds = len(protocol.seeds)
    split = {
        "folds": "every document is tested in turn",
        "fixed-test": "folds over the training split, the test split fixed",
        "leave-one-group-out": "each group is tested in turn",
    }[protocol.kind]
    refit = " The chosen system is then trained once more on training and dev documents." if protocol.refit else ""
    sections = len(outcome.corpus.section_names)
    return (
        f"{len(outcome.corpus):,} documents in {_counted(sections, 'section')}, {folds_in_words(outcome)} ({split}), "
        f"{_counted(seeds, 'seed')}. Hyper-parameters and epochs are chosen on dev documents inside each "
        f"fold; test documents are looked at once.{refit}"
    )


def _counted(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"
