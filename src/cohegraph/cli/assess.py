"""``cohegraph assess``: the level of documents."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cohegraph.cli import BAD_INPUT, INTERRUPTED
from cohegraph.cli.options import (
    Device,
    EncoderPlace,
    ModelName,
    ParserPlace,
    TextColumn,
    Threads,
    VectorsPlace,
    set_threads,
)
from cohegraph.cli.output import add_assessment, assessment_table, complain, console, counted, plain, print_json, say
from cohegraph.corpora.columns import Columns, Entry
from cohegraph.corpora.stream import STANDARD_INPUT, Documents
from cohegraph.errors import CohegraphError
from cohegraph.models import folder_of, load
from cohegraph.progress import track

if TYPE_CHECKING:
    from cohegraph.scale.results_file import ResultsFile
    from cohegraph.scale.scoring import Scored
    from cohegraph.scale.stored_documents import StoredDocuments

    AnyDocuments = Documents | StoredDocuments

# Rows of one table of results.
_ROWS = 1_000
_PROBLEMS_NAMED = 20


def assess(
    files: Annotated[
        list[str] | None,
        typer.Argument(
            help="Text files, tables (CSV, TSV, JSONL, Parquet), folders of either, a folder of 'cohegraph featurize', "
            "or - for standard input."
        ),
    ] = None,
    model: ModelName = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a document, one a line.")] = False,
    out: Annotated[
        Path | None,
        typer.Option(help="A file for the results, one JSON object a line; a run that was stopped goes on from it."),
    ] = None,
    text_column: TextColumn = "text",
    id_column: Annotated[
        str | None, typer.Option(help="The column with the documents' ids, to be named in the results.")
    ] = None,
    workers: Annotated[
        int, typer.Option(min=1, max=1024, help="Processes that read the documents; worth it for hundreds of them.")
    ] = 1,
    parser: ParserPlace = None,
    vectors: VectorsPlace = None,
    encoder: EncoderPlace = None,
    device: Device = "auto",
    threads: Threads = None,
) -> None:
    """Tell how coherent documents are.

    Every text file is one document, and so is every row of a table; there may be any number of them. What cannot be
    read is reported at the end, with exit code 2, and does not keep the others from being assessed.
    """
    documents = _documents(files or _default_input(), text_column, id_column, workers)
    for remark in documents.remarks:
        say(remark)
    folder = folder_of(model)
    problems = _Problems()

    @cache
    def loaded() -> Any:
        set_threads(threads)
        return load(folder, parser=parser, vectors=vectors, encoder=encoder, device=device)

    def scored(entries: Iterable[Entry], done: int = 0, shown: bool = True) -> Iterator[list[Scored]]:
        found = _scores(documents, entries, loaded, workers)
        for some in track(found, "assessing", len(documents), done=done, size=len, show=shown and len(documents) > 1):
            for one in some:
                problems.note(one.entry)
            yield some

    try:
        if out is not None:
            _to_file(out, documents, folder, loaded, scored, problems)
        elif as_json:
            _as_json(documents, loaded, scored)
        else:
            _as_tables(documents, loaded, scored)
    except KeyboardInterrupt:
        if out is None:
            raise
        complain(f"Interrupted: what is done is kept in {out}; the same command goes on with the rest.")
        raise typer.Exit(INTERRUPTED) from None
    sys.stdout.flush()
    problems.tell()


class _Problems:
    """What could not be assessed."""

    def __init__(self) -> None:
        self._first: list[str] = []
        self._number = 0

    def note(self, entry: Entry) -> None:
        if entry.problem:
            self._number += 1
            self._first += [entry.problem] if self._number <= _PROBLEMS_NAMED else []

    def tell(self) -> None:
        """Say it, and end with the exit code for it, if there is anything."""
        for problem in self._first:
            complain(problem)
        if self._number > len(self._first):
            complain(f"{counted(self._number - len(self._first), 'more document')} could not be assessed.")
        if self._number:
            raise typer.Exit(BAD_INPUT)


def _scores(
    documents: AnyDocuments, entries: Iterable[Entry], loaded: Callable[[], Any], workers: int
) -> Iterator[list[Scored]]:
    from cohegraph.scale.scoring import score

    if isinstance(documents, Documents):
        return score(entries, loaded, workers=workers)
    return documents.score(entries, loaded())


Scores = Callable[..., Iterator[list[Any]]]


def _documents(files: list[str], text_column: str, id_column: str | None, workers: int) -> AnyDocuments:
    from cohegraph.features.store import is_store
    from cohegraph.scale.stored_documents import StoredDocuments

    stores = [name for name in files if name != STANDARD_INPUT and is_store(Path(name))]
    if not stores:
        return Documents(files, Columns(text_column, id=id_column), spare_others=True)
    if len(files) > 1:
        raise CohegraphError(f"{stores[0]} holds features: assess it by itself.")
    if (text_column, id_column) != ("text", None):
        raise CohegraphError(
            f"{stores[0]} holds features: name columns when they are made, with 'cohegraph featurize'."
        )
    if workers > 1:
        raise CohegraphError(f"{stores[0]} holds features, which one process assesses: leave out --workers.")
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

    screen, model = console(), None
    # A bar and tables would write over each other.
    found = scored(documents, shown=len(documents) <= _ROWS or not sys.stdout.isatty())
    for rows in batches((one for some in found for one in some if one.result is not None), _ROWS):
        model = loaded()
        table = assessment_table(model.levels_with_probabilities)
        for one in rows:
            add_assessment(table, one.entry.id or one.entry.name, one.result)
        screen.print(table)
        for one in rows:
            for notice in one.result.notices:
                screen.print(*plain(f"{one.entry.id or one.entry.name}: {notice}"), style="yellow")
    if model is not None:
        screen.print(*plain(f"Model: {model.name_}.{f' {model.note_}' if model.note_ else ''}"), style="dim")


def _to_file(
    out: Path, documents: AnyDocuments, folder: Path, loaded: Callable[[], Any], scored: Scores, problems: _Problems
) -> None:
    from cohegraph.model.persistence import ABOUT
    from cohegraph.scale.results_file import results_file
    from cohegraph.text.packaged import sha256_of

    if documents.are_read_from(out):
        raise CohegraphError(f"{out} is one of the files to assess: name another one for the results.")
    loaded()
    sha256 = sha256_of(folder / ABOUT)  # which holds that of the weights
    about = {"model": loaded().name_, "model_sha256": sha256}
    with results_file(out, about) as file:
        remaining = file.skip_done(documents, problems.note)
        done = file.found - len(file.mended)
        if done:
            say(f"{done} of {counted(len(documents), 'document')} done already, in {out}.")
        for some in scored(remaining, file.found):
            file.write(some)
        if file.mended:
            say(f"{counted(len(file.mended), 'document')} of those in {out} can be assessed now, or are new.")
        if file.is_out_of_order:
            beside = out.with_name(f"{out.name}.mended")
            with results_file(beside, about) as mended:
                for some in scored(_not_in(mended, documents, file.mended), len(documents) - len(file.mended)):
                    mended.write(some)
                file.put_in_order(mended)
            beside.unlink(missing_ok=True)
    console().print(*plain(f"The results of {counted(len(documents), 'document')} are in {out}."))


def _not_in(mended: ResultsFile, documents: AnyDocuments, numbers: set[int]) -> Iterator[Entry]:
    """Those of these documents whose results are not there yet: an earlier run may have been stopped at them."""

    def chosen() -> Iterator[Entry]:
        return (entry for number, entry in enumerate(documents) if number in numbers)

    with suppress(CohegraphError):
        waiting = mended.skip_done(chosen(), lambda _: None)
        if not mended.is_out_of_order:
            return waiting
    mended.clear()  # results of others, that were mended at another time
    return chosen()


def _default_input() -> list[str]:
    if sys.stdin.isatty():
        raise CohegraphError("Name a file to assess, or - to type or pipe a text: cohegraph assess FILE.txt")
    return [STANDARD_INPUT]
