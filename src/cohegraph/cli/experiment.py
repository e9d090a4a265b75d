"""``cohegraph experiment``: systems compared on a corpus, from folds to a report."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from cohegraph.cli import options
from cohegraph.cli.output import console, interruptible, new_table, plain, say, show
from cohegraph.corpora.tables import is_table
from cohegraph.errors import CohegraphError
from cohegraph.experiments.ready import ready_experiments
from cohegraph.presets import STACKS

if TYPE_CHECKING:
    from cohegraph.experiments.plan import Experiment


def experiment(
    plan: Annotated[str, Argument(help="An experiment file (TOML), the name of a ready one, or a graded table.")],
    out: Annotated[Path | None, Option(help="The folder of results; by default experiments/NAME.")] = None,
    corpus: Annotated[Path | None, Option(help="Where the corpus is, if not where the plan says.")] = None,
    stack: Annotated[str | None, Option(help=f"Pretrained parts: {', '.join(STACKS)}.")] = None,
    sections: Annotated[str | None, Option(help="Only these sections (domains, prompts), separated by commas.")] = None,
    partial: Annotated[bool, Option("--partial", help="Use an incomplete corpus as it is.")] = False,
    systems: Annotated[str | None, Option(help="Only these systems, separated by commas.")] = None,
    folds: Annotated[int | None, Option(min=2, help="Folds of a section.")] = None,
    seeds: Annotated[int | None, Option(min=1, max=1000, help="How many seeds each fold is trained with.")] = None,
    label_column: Annotated[str | None, Option(help="The column with the level, for a table.")] = None,
    text_column: Annotated[str | None, Option(help="The column with the text, for a table.")] = None,
    section_column: Annotated[str | None, Option(help="A column of parts that are tested by themselves.")] = None,
    group_column: options.GroupColumn = None,
    skip_unlabelled: options.SkipUnlabelled = False,
    skip_empty: options.SkipEmpty = False,
    levels: Annotated[str | None, Option(help="The levels of a table from lowest to highest.")] = None,
    changes: Annotated[list[str] | None, Option("--set", help="Change a setting: subgraphs.k=5; repeatable.")] = None,
    best_on_test: Annotated[
        bool, Option("--best-on-test", help="Also show the best test accuracy: not a result.")
    ] = False,
    cores: Annotated[int | None, Option(min=1, max=1024, help="Folds that run side by side.")] = None,
    device: options.Device = "auto",
) -> None:
    """Compare systems on a corpus under the same protocol.

    Features are computed once. Every finished fold is written at once: a run that was stopped resumes when
    the same command is run again. Tables (Markdown, CSV, LaTeX), figures (SVG, PNG) and a report are in the folder.
    """
    wanted = {
        "stack": stack,
        "corpus.path": None if corpus is None else str(corpus),
        "corpus.sections": options.listed(sections),
        "corpus.options.partial": partial or None,
        "only_systems": options.listed(systems),
        "protocol.folds": folds,
        "protocol.seeds": None if seeds is None else list(range(seeds)),
        "protocol.best_on_test": best_on_test or None,
    }
    columns = {
        "text_column": text_column,
        "label_column": label_column,
        "section_column": section_column,
        "group_column": group_column,
        "levels": options.listed(levels),
        "skip_unlabelled": skip_unlabelled or None,
        "skip_empty": skip_empty or None,
    }
    found = _plan(plan, _given(wanted), _given(columns), options.parsed(changes))

    from cohegraph.experiments.outcome import Outcome
    from cohegraph.experiments.report import write_report
    from cohegraph.experiments.result_tables import UNORDERED, all_measures
    from cohegraph.experiments.runner import run_experiment

    folder = out or Path("experiments") / found.name
    options.set_threads(cores)
    with interruptible(lambda: f"what is finished is in {folder}; run the same command again to resume"):
        finished = run_experiment(found, folder, cores=cores, device=device, show_progress=True)
    if not finished.work.corpus.ordered:
        how = "--levels" if is_table(Path(plan)) else "levels among the options of the corpus"
        say(f"The order of these levels is not known: name them from lowest to highest with {how}.")
    say("Writing tables, figures and the report.")
    outcome = Outcome(finished)
    page = write_report(outcome, folder, device=device)
    measures = all_measures(outcome)
    table = new_table(measures.columns[0], right=measures.columns[1:], title=measures.title)
    for row in measures.texts():
        table.add_row(*plain(*row))
    console().print(table)
    # What is not known of the levels was said above.
    console().print(*plain(*(note for note in measures.notes if note != UNORDERED)), style="dim")
    show(f"The report is {os.path.relpath(page)}; tables and figures are beside it.")


def _plan(plan: str, changes: dict[str, Any], columns: dict[str, Any], settings: dict[str, Any]) -> Experiment:
    ready = ready_experiments()
    file, of_table = ready.get(plan, Path(plan)), is_table(Path(plan))
    if columns and not of_table:
        raise CohegraphError("Columns and levels are options for tables, not for experiment files.", code="not-a-table")
    if not file.exists() and (of_table or file.suffix.lower() == ".toml"):
        raise CohegraphError(f"There is no file {plan}: name an experiment file or a table.", code="missing-file")
    if not file.exists():
        choice = f"name an experiment file or one of {', '.join(ready)}"
        raise CohegraphError(f"There is no experiment '{plan}': {choice}.", code="no-experiment")
    # Only now: importing torch takes seconds.
    from cohegraph.experiments.plan import make_experiment, read_experiment

    if not of_table:
        return read_experiment(file, changes, settings)
    changes |= {f"corpus.options.{name}": value for name, value in columns.items()}
    changes["protocol.grouped"] = "group_column" in columns
    return make_experiment({"name": file.stem, "corpus": {"kind": "table", "path": plan}}, changes, settings)


def _given(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}
