"""``cohegraph assess``: the level of documents."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from cohegraph.cli import BAD_INPUT, options
from cohegraph.cli.output import (
    add_assessment,
    assessment_table,
    complain,
    console,
    counted,
    interruptible,
    print_json,
    say,
    show,
)
from cohegraph.corpora.columns import Columns, Entry
from cohegraph.corpora.stream import Documents
from cohegraph.errors import CohegraphError
from cohegraph.models import folder_of, load
from cohegraph.progress import track
from cohegraph.settings import Settings

if TYPE_CHECKING:
    from cohegraph.scale.scoring import Scored, StoredDocuments

    AnyDocuments = Documents | StoredDocuments

# Rows of one table of results.
_ROWS = 1_000
_PROBLEMS_NAMED = 20


def assess(
    files: Annotated[
        list[str] | None,
        Argument(
            help="Text files, tables (CSV, TSV, JSONL, Parquet), folders of either, a folder of 'cohegraph featurize', "
            "or - for standard input."
        ),
    ] = None,
    model: options.ModelName = None,
    as_json: Annotated[bool, Option("--json", help="Print one JSON object per line, one for each document.")] = False,
    out: Annotated[Path | None, Option(help="Append results to this JSON Lines file; skip documents it has.")] = None,
    retry_errors: Annotated[bool, Option("--retry-errors", help="Retry documents with errors in --out.")] = False,
    text_column: options.TextColumn = "text",
    id_column: Annotated[str | None, Option(help="The column with the documents' ids.")] = None,
    workers: Annotated[int, Option(min=1, max=1024, help="Processes; several pay off for hundreds of documents.")] = 1,
    parser: options.ParserPlace = None,
    vectors: options.VectorsPlace = None,
    encoder: options.EncoderPlace = None,
    reader: options.ReaderPlace = None,
    heads: options.HeadsPlace = None,
    device: options.Device = "auto",
    threads: options.Threads = None,
) -> None:
    """Measure how coherent documents are.

    Every text file is one document, and so is every row of a table; there may be any number of them. Documents
    that cannot be read are reported at the end, with exit code 2; the others are still assessed.
    """
    if retry_errors and out is None:
        raise CohegraphError("--retry-errors needs --out, the file with the errors.", code="no-out")
    if as_json and out is not None:
        raise CohegraphError("Results go to --out or, with --json, to standard output: choose one.", code="two-outputs")
    from cohegraph.model.persistence import read_about
    from cohegraph.scale.scoring import score

    folder = folder_of(model)
    description, sha256 = read_about(folder)
    about = {"model": str(description.get("name")), "model_sha256": sha256}
    documents = _documents(files or [options.standard_input("assess")], text_column, id_column, workers)
    if not isinstance(documents, Documents):
        _check_settings(description, documents.store.settings)
    say(*documents.remarks)
    problems = _Problems()

    @cache
    def loaded() -> Any:
        options.set_threads(threads)
        return load(folder, parser=parser, vectors=vectors, encoder=encoder, reader=reader, heads=heads, device=device)

    def scored(entries: Iterable[Entry], done: int = 0, shown: bool = True) -> Iterator[list[Scored]]:
        if isinstance(documents, Documents):
            found = score(entries, loaded, workers=workers)
        else:
            found = documents.score(entries, loaded)
        for some in track(found, "assessing", len(documents), done=done, size=len, show=shown and len(documents) > 1):
            problems.note(*(one.entry.problem for one in some if one.entry.problem))
            yield some

    if out is not None:
        _to_file(out, documents, about, scored, problems, retry_errors)
    elif as_json:
        _as_json(documents, loaded, scored)
    else:
        _as_tables(documents, loaded, scored)
    sys.stdout.flush()
    problems.tell()


class _Problems:
    """What could not be assessed."""

    def __init__(self) -> None:
        self._first: list[str] = []
        self._number = 0

    def note(self, *problems: str) -> None:
        self._number += len(problems)
        self._first += problems[: _PROBLEMS_NAMED - len(self._first)]

    def tell(self) -> None:
        """Report it, and exit with the code for it, if there is anything."""
        for problem in self._first:
            complain(problem)
        if self._number > len(self._first):
            complain(f"{counted(self._number - len(self._first), 'more document')} could not be assessed.")
        if self._number:
            raise typer.Exit(BAD_INPUT)


Scores = Callable[..., Iterator[list[Any]]]


def _check_settings(model: dict[str, Any], made_with: Settings) -> None:
    """Raise where the features of a store were made with other settings than the model's, before it is loaded."""
    from cohegraph.model.checks import check_same_settings
    from cohegraph.model.formats import settings_of

    try:
        wanted = Settings.from_dict(settings_of(model))
    except (CohegraphError, KeyError, TypeError, ValueError, AttributeError):
        return  # the model is damaged, which is reported when it is loaded
    check_same_settings(wanted.of_features(places=False), made_with.of_features(places=False))


def _documents(files: list[str], text_column: str, id_column: str | None, workers: int) -> AnyDocuments:
    folders = [name for name in files if os.path.isdir(name)]  # noqa: PTH112 (a name too long for a file is no error)
    stores = []
    if folders:
        from cohegraph.features.store import is_store

        stores = [name for name in folders if is_store(Path(name))]
    if not stores:
        return Documents(files, Columns(text_column, id=id_column), spare_others=True)
    for wrong, remedy in (
        (len(files) > 1, "assess it by itself"),
        ((text_column, id_column) != ("text", None), "name columns when they are made, with 'cohegraph featurize'"),
        (workers > 1, "they are assessed by one process, so leave out --workers"),
    ):
        if wrong:
            raise CohegraphError(f"{stores[0]} holds features: {remedy}.", code="options-of-texts")
    from cohegraph.scale.scoring import StoredDocuments

    return StoredDocuments(Path(stores[0]))


def _as_json(documents: AnyDocuments, loaded: Callable[[], Any], scored: Scores) -> None:
    # On a terminal the results themselves show how far it is.
    for some in scored(documents, shown=not sys.stdout.isatty()):
        for one in some:
            if one.result is None:
                print_json({**one.entry.names, "error": one.entry.problem})
            else:
                print_json({**one.entry.names, "model": loaded().name_, **one.result.to_dict()})
        sys.stdout.flush()


def _as_tables(documents: AnyDocuments, loaded: Callable[[], Any], scored: Scores) -> None:
    """One table, or several one below the other where there are very many documents."""
    from cohegraph.scale.engine import batches

    model = None
    # A bar and tables would write over each other.
    found = scored(documents, shown=len(documents) <= _ROWS or not sys.stdout.isatty())
    for rows in batches((one for some in found for one in some if one.result is not None), _ROWS):
        model = loaded()
        table = assessment_table(model.levels_with_probabilities)
        for one in rows:
            add_assessment(table, one.entry.id or one.entry.name, one.result)
        console().print(table)
        for one in rows:
            show(*(f"{one.entry.id or one.entry.name}: {notice}" for notice in one.result.notices), style="yellow")
    if model is not None:
        show(f"Model: {model.name_}.{f' {model.note_}' if model.note_ else ''}", style="dim")


def _to_file(
    out: Path, documents: AnyDocuments, about: dict[str, str], scored: Scores, problems: _Problems, retry_errors: bool
) -> None:
    from cohegraph.scale.results_file import results_file

    if documents.are_read_from(out):
        raise CohegraphError(
            f"{out} is one of the files to assess: name another one for the results.", code="out-is-input"
        )
    resume = f"run the same command again to resume; finished results are in {out}"
    with interruptible(lambda: resume), results_file(out, about) as file:
        missing = file.missing(documents, problems.note, retry_errors=retry_errors)
        first = list(islice(missing, 1))
        if file.documents:
            say(f"{out} has the results of {counted(file.documents, 'document')} already.")
        for some in scored(chain(first, missing), file.skipped):
            file.append(some)
    show(f"The results of {counted(len(documents), 'document')} are in {out}.")
