"""A finished experiment in one file: what shaped it, and its tables, from which all figures are drawn.

It has no text of a document, so that it can be passed on where the corpus cannot.
"""

import json
import math
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Self

from cohegraph.errors import CohegraphError, DamagedFileError
from cohegraph.experiments.table import Cell, Interval, Number, Table
from cohegraph.files import write_atomically

SUMMARY = "summary.json"
METHOD_PAIRS = "method-pairs"
_FORMAT = 1
# The file, its tables, a table, its rows: everything deeper than these is on one line.
_LEVELS_IN_LINES = 4


@dataclass(frozen=True)
class Summary:
    """``about`` is the content of experiment.json; ``method`` and ``baseline`` are the titles of these systems."""

    about: dict[str, Any]
    method: str
    baseline: str
    tables: dict[str, Table]

    def with_table(self, table: Table) -> Self:
        """The same with one table more, or another of its name."""
        return replace(self, tables={**self.tables, table.name: table})

    def method_pairs(self) -> Table:
        """The method against every other system: the part of the comparisons that people look at first."""
        pairs = self.tables["comparisons"]
        return replace(
            pairs,
            name=METHOD_PAIRS,
            title=f"{self.method} against the others on {self.about['corpus']['name']}",
            rows=tuple(row for row in pairs.rows if row[0] == self.method),
        )

    def write(self, file: Path) -> None:
        """Write it as JSON, figures with all their digits, a row of a table per line."""
        content = {
            "format": _FORMAT,
            "method": self.method,
            "baseline": self.baseline,
            "experiment": self.about,
            "tables": [_plain_table(table) for table in self.tables.values()],
        }
        write_atomically(file, _in_lines(content, _LEVELS_IN_LINES) + "\n")


def read_summary(file: Path) -> Summary:
    """What `Summary.write` wrote."""
    try:
        content = json.loads(file.read_text("utf-8"))
        if content["format"] != _FORMAT:
            raise CohegraphError(
                f"{file} was written by another version of cohegraph: run the experiment again.", code="other-version"
            )
        tables = {plain["name"]: _table(plain) for plain in content["tables"]}
        return Summary(content["experiment"], content["method"], content["baseline"], tables)
    except CohegraphError:
        raise
    except OSError as error:
        raise CohegraphError(f"{file} cannot be read: {error.strerror}.", code="cannot-read") from None
    except (ValueError, KeyError, TypeError, RecursionError):
        raise DamagedFileError(f"{file} is not the summary of an experiment, or is damaged.") from None


def _plain_table(table: Table) -> dict[str, Any]:
    """The fields of a table but the marks of rows that it has none of."""
    plain = {field.name: getattr(table, field.name) for field in fields(table)}
    plain["rows"] = [[_plain_cell(cell) for cell in row] for row in table.rows]
    marks = {name: sorted(plain.pop(name)) for name in ("muted", "ruled")}
    return plain | {name: rows for name, rows in marks.items() if rows}


def _table(plain: dict[str, Any]) -> Table:
    rows = tuple(tuple(map(_cell, row)) for row in plain["rows"])
    if any(len(row) != len(plain["columns"]) for row in rows):
        raise ValueError("a row that is too long or too short")
    marks = (frozenset(plain.get(name, ())) for name in ("muted", "ruled"))
    return Table(plain["name"], plain["title"], tuple(plain["columns"]), rows, tuple(plain["notes"]), *marks)


def _plain_cell(cell: Cell) -> Any:
    """A text as it is, a figure as the fields that are not as usual; not a number is null."""
    if isinstance(cell, str):
        return cell
    values = {one.name: getattr(cell, one.name) for one in fields(cell) if getattr(cell, one.name) != one.default}
    unknown = [name for name, value in values.items() if isinstance(value, float) and math.isnan(value)]
    return values | dict.fromkeys(unknown)


def _cell(plain: Any) -> Cell:
    if isinstance(plain, str):
        return plain
    figures: dict[str, Any] = {name: math.nan if value is None else value for name, value in plain.items()}
    if "low" in figures:
        return Interval(**figures)
    if "interval" in figures:
        figures["interval"] = tuple(figures["interval"])
    return Number(**figures)


def _in_lines(value: Any, levels: int) -> str:
    """JSON with the items of the outermost levels on lines of their own."""
    if not levels or not isinstance(value, dict | list | tuple) or not value:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    if isinstance(value, dict):
        items = [f"{json.dumps(name, ensure_ascii=False)}: {_in_lines(one, levels - 1)}" for name, one in value.items()]
        return "{\n" + ",\n".join(items) + "\n}"
    return "[\n" + ",\n".join(_in_lines(one, levels - 1) for one in value) + "\n]"
