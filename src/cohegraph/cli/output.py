"""How results and complaints look in a terminal."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from cohegraph.assessment import Assessment

if TYPE_CHECKING:
    from cohegraph.experiments.table import Table as Results

# A pipe or a file has no width: wide enough for every column.
_WIDTH_OF_NO_TERMINAL = 140

_errors = Console(stderr=True, soft_wrap=True)


def console() -> Console:
    """Where results are printed."""
    found = Console()
    return found if found.is_terminal else Console(width=_WIDTH_OF_NO_TERMINAL)


def complain(sentence: str) -> None:
    """One sentence on standard error."""
    _errors.print(*plain(f"cohegraph: {sentence}"), style="red")


def say(sentence: str) -> None:
    """One sentence on standard error that is no complaint."""
    _errors.print(*plain(sentence))


def plain(*cells: Any) -> list[Text]:
    """Cells whose square brackets are not markup and whose control characters do nothing."""
    return [Text("".join(c if c.isprintable() else "\ufffd" for c in str(cell))) for cell in cells]


def counted(number: int, thing: str) -> str:
    """A number of things."""
    return f"{number} {thing}{'' if number == 1 else 's'}"


def print_json(value: Any) -> None:
    """One JSON value on a line of standard output, in letters that its encoding has."""
    print(json.dumps(value, ensure_ascii=(sys.stdout.encoding or "").lower().replace("-", "") != "utf8"))


def results_table(results: Results) -> Table:
    """A table of an experiment, in a terminal."""
    table = Table(box=None, header_style="bold", pad_edge=False, title=results.title, title_justify="left")
    for number, name in enumerate(results.columns):
        table.add_column(*plain(name), justify="left" if number == 0 else "right", overflow="fold")
    for row in results.texts():
        table.add_row(*plain(*row))
    return table


def assessment_table(levels: Iterable[Any], *, with_gold: bool = False) -> Table:
    """A table with a column for each level that has a probability, to be filled with `add_assessment`."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("document", overflow="fold")
    if with_gold:
        table.add_column("made as")
    table.add_column("level")
    table.add_column("score", justify="right")
    for level in levels:
        table.add_column(*plain(level), justify="right")
    table.add_column("sentences", justify="right")
    table.add_column("links", justify="right")
    return table


def add_assessment(table: Table, name: str, result: Assessment, *, gold: str | None = None) -> None:
    """One document's row."""
    shown = [name] if gold is None else [name, gold]
    probabilities = [f"{probability:.2f}" for probability in result.probabilities.values()]
    score = "" if result.score is None else f"{result.score:.0f}"
    row = plain(*shown, result.level, score, *probabilities, result.counts["sentences"], result.counts["links"])
    if gold is not None and gold != result.level:
        row[2].stylize("red")
    table.add_row(*row)
