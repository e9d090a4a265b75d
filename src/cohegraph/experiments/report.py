"""Everything that people look at: tables as files, figures as files, and one page that shows all of it.

The page is a single HTML file that loads nothing: figures are inside it as SVG in its own ink, for light and dark.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup

from cohegraph.experiments.analyses import analysis_tables
from cohegraph.experiments.cells import folds_in_words, interval_of
from cohegraph.experiments.figures import NamedFigure, figures, unique_file_names, write_figures
from cohegraph.experiments.outcome import Outcome
from cohegraph.experiments.result_tables import UNORDERED, result_tables, timed_tables
from cohegraph.experiments.summary import METHOD_PAIRS, SUMMARY, Summary
from cohegraph.experiments.table import Table, shown, write_tables
from cohegraph.explain.render import environment
from cohegraph.features import Featurizer
from cohegraph.files import write_atomically
from cohegraph.plots.example import draw_example
from cohegraph.plots.ink import without_control
from cohegraph.plots.style import for_page

PAGE = "report.html"
_MOST_ROWS_ON_PAGE = 60
# For each level, documents to show by their number in the corpus, with the probability of the level.
_Examples = dict[str, list[tuple[int, float]]]
_TAG = re.compile("<[^<>]+>")
_NAME = re.compile(r' id="|url\(#|href="#')


def write_report(outcome: Outcome, folder: Path, *, device: str = "auto") -> Path:
    """Write the summary, tables, figures and the page into the folder of an experiment, and return the page's path.

    Tables and figures are those of the summary, so that they can be made again from its file alone.
    """
    summary = summarize(outcome)
    summary.write(folder / SUMMARY)
    write_tables(summary.tables.values(), folder)
    surest = _surest(outcome)
    drawn = write_figures([*figures(summary), *_examples(outcome, surest, device)], folder)
    page = folder / PAGE
    write_atomically(page, without_control(_page(outcome, summary, surest, drawn)))
    return page


def summarize(outcome: Outcome) -> Summary:
    """All tables of an experiment, and what shaped it."""
    tables = (*result_tables(outcome), *analysis_tables(outcome), *timed_tables(outcome))
    method, baseline = outcome.title(outcome.method), outcome.title(outcome.baseline)
    return Summary(outcome.finished.about, method, baseline, {table.name: table for table in tables})


def _surest(outcome: Outcome) -> _Examples:
    """The documents of the first section that the method is surest of, and right about."""
    corpus, wanted = outcome.corpus, outcome.experiment.analyses.examples
    if not wanted:
        return {}
    rows = corpus.rows_of(corpus.section_names[0])
    runs = outcome.runs(outcome.method, corpus.section_names[0])
    probabilities = runs.mean_probabilities()
    found = {}
    for code, level in enumerate(corpus.levels):
        right = np.flatnonzero(runs.tested & (runs.gold == code) & (probabilities.argmax(axis=1) == code))
        surest = sorted(right.tolist(), key=lambda i: (-probabilities[i, code], i))[:wanted]
        found[level] = [(int(rows[i]), float(probabilities[i, code])) for i in surest]
    return found


def _examples(outcome: Outcome, chosen: _Examples, device: str) -> Iterator[NamedFigure]:
    """A figure of each chosen document."""
    if not any(chosen.values()):
        return
    corpus = outcome.corpus
    settings = outcome.experiment.settings_of(corpus.section_names[0])
    featurizer = Featurizer(settings, device=device)
    # Words that no link uses are boxed only where links are made from nouns.
    boxes = "boxes are nouns, filled ones make links" if "nouns" in settings.links.linkers else "boxed words make links"
    file_names = unique_file_names(corpus.levels)
    for level, documents in chosen.items():
        for number, (row, probability) in enumerate(documents, start=1):
            (linked,) = featurizer.link([corpus.texts[row]])
            title = f"{corpus.ids[row]}: {level} (predicted with probability {probability:.2f})"
            yield NamedFigure(
                f"example-{file_names[level]}-{number}",
                f"A document of level {level}, as written: {boxes}; orange sentences have none.",
                lambda linked=linked, title=title: draw_example(linked, title),  # type: ignore[misc]
            )


def _page(outcome: Outcome, summary: Summary, surest: _Examples, drawn: list[tuple[NamedFigure, str]]) -> str:
    # With a single section these columns are in the table of all measures; the paper's own figures are not.
    single = len(outcome.corpus.section_names) == 1
    tables = {
        name: _table(table)
        for name, table in (summary.tables | {METHOD_PAIRS: summary.method_pairs()}).items()
        if table.muted or not (single and name in ("accuracy", "macro-f1", "qwk"))
    }
    figures = {one.name: _figure(one, svg) for one, svg in drawn}
    about = dict(outcome.finished.about)
    base: dict[str, dict[str, Any]] = about.pop("settings")[""]
    return (
        environment("experiments")
        .get_template("report.html.jinja")
        .render(
            title=outcome.experiment.title or f"{outcome.corpus.name}: {len(outcome.systems)} systems",
            scope=_scope(outcome),
            protocol=_protocol(outcome),
            headline=_headline(outcome),
            sections=[
                {
                    "heading": heading,
                    "figures": [one for name, one in figures.items() if beginnings and name.startswith(beginnings)],
                    "tables": [tables[name] for name in names if name in tables],
                }
                for heading, names, beginnings in _SECTIONS
            ],
            examples=[one for name, one in figures.items() if name.startswith("example-")],
            missing_examples=_missing_examples(outcome, surest),
            settings={section: json.dumps(values, indent=1, ensure_ascii=False) for section, values in base.items()},
            about=json.dumps(about, indent=1, ensure_ascii=False),
        )
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


def _figure(one: NamedFigure, svg: str) -> dict[str, Any]:
    """A figure for the page: names inside it begin with its own, so that they differ from those of other figures."""

    def own(tag: re.Match[str]) -> str:
        return _NAME.sub(rf"\g<0>{one.name}-", tag[0])

    return {"name": one.name, "caption": one.caption, "svg": Markup(for_page(_TAG.sub(own, svg)))}


def _table(table: Table) -> dict[str, Any]:
    kept = replace(table, rows=table.rows[:_MOST_ROWS_ON_PAGE])
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


def _missing_examples(outcome: Outcome, surest: _Examples) -> list[str]:
    """Why there are fewer examples than asked for."""
    wanted, corpus = outcome.experiment.analyses.examples, outcome.corpus
    where = "" if len(corpus.section_names) == 1 else f" of {corpus.section_names[0]}, whose documents these are,"
    return [
        f"Of level {level} there {'is' if len(found) == 1 else 'are'} {len(found) or 'none'}: "
        f"{outcome.title(outcome.method)} is right about no {'other ' if found else ''}tested document{where} of this "
        "level."
        for level, found in surest.items()
        if len(found) < wanted
    ]


def _protocol(outcome: Outcome) -> str:
    protocol = outcome.experiment.protocol
    split = {
        "folds": "every document is tested in turn",
        "fixed-test": "folds over the training split, the test split fixed",
        "leave-one-group-out": "each group is tested in turn",
    }[protocol.kind]
    refit = " The chosen system is then trained once more on training and dev documents." if protocol.refit else ""
    sections, seeds = len(outcome.corpus.section_names), len(protocol.seeds)
    return (
        f"{len(outcome.corpus):,} documents in {sections} section{'' if sections == 1 else 's'}, "
        f"{folds_in_words(outcome)} ({split}), {seeds} seed{'' if seeds == 1 else 's'}. Hyper-parameters and epochs "
        f"are chosen on dev documents inside each fold; test documents are looked at once.{refit}"
    )
