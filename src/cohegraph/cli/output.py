"""How results and complaints look in a terminal."""

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from cohegraph.assessment import Assessment
from cohegraph.cli import INTERRUPTED

# A pipe or a file has no width: wide enough for every column.
_WIDTH_OF_NO_TERMINAL = 140

_errors = Console(stderr=True, soft_wrap=True)


def console() -> Console:
    """Where results are printed."""
    found = Console()
    return found if found.is_terminal else Console(width=_WIDTH_OF_NO_TERMINAL)


def show(*lines: str, style: str = "") -> None:
    """Lines on standard output."""
    for line in lines:
        console().print(*plain(line), style=style)


def complain(sentence: str) -> None:
    """One sentence on standard error."""
    _errors.print(*plain(f"cohegraph: {sentence}"), style="red")


def say(*sentences: str) -> None:
    """Sentences on standard error that are no complaints."""
    for sentence in sentences:
        _errors.print(*plain(sentence))


@contextmanager
def interruptible(state: Callable[[], str]) -> Iterator[None]:
    """When what is done in here is interrupted, say what has been done so far, and exit."""
    try:
        yield
    except KeyboardInterrupt:
        complain(f"Interrupted: {state()}.")
        raise typer.Exit(INTERRUPTED) from None


def plain(*cells: Any) -> list[Text]:
    """Cells whose square brackets are not markup and whose control characters do nothing."""
    return [Text("".join(c if c.isprintable() else "\ufffd" for c in str(cell))) for cell in cells]


def counted(number: int, thing: str) -> str:
    """A number of things."""
    return f"{number} {thing}{'' if number == 1 else 's'}"


def print_json(value: Any) -> None:
    """One JSON value on a line of standard output, in letters that its encoding has."""
    print(json.dumps(value, ensure_ascii=(sys.stdout.encoding or "").lower().replace("-", "") != "utf8"))


def new_table(*left: Any, right: Iterable[Any] = (), title: str | None = None) -> Table:
    """A table without lines: columns aligned to the left, then columns of numbers."""
    table = Table(box=None, header_style="bold", pad_edge=False, title=title, title_justify="left")
    for name in plain(*left):
        table.add_column(name, overflow="fold")
    for name in plain(*right):
        table.add_column(name, overflow="fold", justify="right")
    return table


def assessment_table(levels: Iterable[Any], *, with_gold: bool = False) -> Table:
    """A table with a column for each level that has a probability, to be filled with `add_assessment`."""
    left = ("document", "made as", "level") if with_gold else ("document", "level")
    return new_table(*left, right=("score", *levels, "sentences", "links"))


def add_assessment(table: Table, name: str, result: Assessment, *, gold: str | None = None) -> None:
    """One document's row."""
    shown = [name] if gold is None else [name, gold]
    probabilities = [f"{probability:.2f}" for probability in result.probabilities.values()]
    score = "" if result.score is None else f"{result.score:.0f}"
    row = plain(*shown, result.level, score, *probabilities, result.counts["sentences"], result.counts["links"])
    if gold is not None and gold != result.level:
        row[2].stylize("red")
    table.add_row(*row)
