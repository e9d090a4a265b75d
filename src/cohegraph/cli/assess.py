"""``cohegraph assess``: the level of documents."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from cohegraph.cli import BAD_INPUT
from cohegraph.cli.options import (
    Device,
    EncoderPlace,
    ModelFolder,
    ParserPlace,
    TextColumn,
    Threads,
    VectorsPlace,
    set_threads,
)
from cohegraph.cli.output import add_assessment, assessment_table, complain, console, plain, print_json
from cohegraph.corpora.starter import MODEL as STARTER_MODEL
from cohegraph.corpora.tables import decoded, is_table, read_plain_text, read_texts
from cohegraph.errors import CohegraphError

_STANDARD_INPUT = "-"


@dataclass(frozen=True)
class _Entry:
    """A document to assess, or why it cannot be."""

    name: str
    text: str = ""
    problem: str = ""


def assess(
    files: Annotated[
        list[str] | None,
        typer.Argument(
            help="Text files, folders of .txt files, tables (CSV, TSV, JSONL, Parquet), or - for standard input."
        ),
    ] = None,
    model: ModelFolder = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a document, one a line.")] = False,
    text_column: TextColumn = "text",
    parser: ParserPlace = None,
    vectors: VectorsPlace = None,
    encoder: EncoderPlace = None,
    device: Device = "auto",
    threads: Threads = None,
) -> None:
    """Tell how coherent documents are.

    Every text file is one document, and so is every row of a table. What cannot be read is reported at the end, with
    exit code 2, and does not keep the others from being assessed.
    """
    entries = [_checked(entry) for entry in _entries(files or _default_input(), text_column)]
    readable = [entry for entry in entries if not entry.problem]
    if not readable:
        _give_up(entries, as_json)
    from cohegraph.systems.system_model import load_model

    set_threads(threads)
    loaded = load_model(model or STARTER_MODEL, parser=parser, vectors=vectors, encoder=encoder, device=device)
    results = loaded.assess([entry.text for entry in readable], show_progress=len(readable) > 1)
    if as_json:
        waiting = iter(results)
        for entry in entries:
            about: dict[str, Any] = {"error": entry.problem} if entry.problem else next(waiting).to_dict()
            print_json({"document": entry.name, "model": loaded.name_, **about})
    else:
        _print_table(loaded, readable, results)
    sys.stdout.flush()
    if len(readable) < len(entries):
        _give_up(entries)


def _give_up(entries: list[_Entry], as_json: bool = False) -> NoReturn:
    """Say what could not be assessed, and end."""
    problems = [entry for entry in entries if entry.problem]
    for entry in problems:
        if as_json:
            print_json({"document": entry.name, "error": entry.problem})
        complain(entry.problem)
    raise typer.Exit(BAD_INPUT)


def _print_table(model: Any, entries: list[_Entry], results: list[Any]) -> None:
    out = console()
    table = assessment_table(model.levels_)
    remarks = []
    for entry, result in zip(entries, results, strict=True):
        add_assessment(table, entry.name, result)
        remarks += [f"{entry.name}: {notice}" for notice in result.notices]
    out.print(table)
    for remark in remarks:
        out.print(*plain(remark), style="yellow")
    note = f" {model.note_}" if model.note_ else ""
    out.print(*plain(f"Model: {model.name_}.{note}"), style="dim")


def _default_input() -> list[str]:
    if sys.stdin.isatty():
        raise CohegraphError("Name a file to assess, or - to type or pipe a text: cohegraph assess FILE.txt")
    return [_STANDARD_INPUT]


def _entries(names: list[str], text_column: str) -> Iterator[_Entry]:
    for name in names:
        try:
            yield from _entries_of(name, text_column)
        except CohegraphError as error:
            yield _Entry(_printable(name), problem=_printable(str(error)))


def _entries_of(name: str, text_column: str) -> Iterator[_Entry]:
    if name == _STANDARD_INPUT:
        yield _Entry("standard input", decoded(sys.stdin.buffer.read(), "Standard input"))
        return
    file, shown = Path(name), _printable(name)
    if _is_folder(file):
        inside = sorted(file.rglob("*.txt"))
        if not inside:
            raise CohegraphError(f"The folder {file} has no .txt file.")
        yield from _entries([str(path) for path in inside], text_column)
    elif is_table(file):
        yield from (_Entry(f"{shown}:{row}", text or "") for row, text in enumerate(read_texts(file, text_column), 1))
    else:
        yield _Entry(shown, read_plain_text(file))


def _is_folder(file: Path) -> bool:
    try:
        return file.is_dir()
    except OSError:  # a name too long to be one, which reading it will say
        return False


def _printable(name: str) -> str:
    """A name whose bytes are not text can be printed all the same."""
    return name.encode("utf-8", "replace").decode("utf-8")


def _checked(entry: _Entry) -> _Entry:
    if entry.problem or entry.text.strip():
        return entry
    return _Entry(entry.name, problem=f"{entry.name} has no text to assess.")
