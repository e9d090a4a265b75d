"""A table once, in every form that people paste it in: Markdown, CSV, LaTeX and HTML."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from pathlib import Path

from cohegraph.files import write_atomically

_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "–": "--", "±": r"$\pm$", "δ": r"$\delta$", "ρ": r"$\rho$",
    "≥": r"$\geq$", "≤": r"$\leq$", "<": r"$<$", ">": r"$>$", "→": r"$\rightarrow$",
}  # fmt: skip
_NONE = "–"
# A longer table does not fit on one page of paper.
_ROWS_OF_A_PAGE = 40
# A wider table gets smaller letters on a screen.
_COLUMNS_OF_A_PAGE = 8


@dataclass(frozen=True)
class Number:
    """A figure with, where there is one, its std or its interval beside it; shown with so many decimals.

    A ``signed`` one is a difference: it has a plus where it is above 0. With ``significant``, decimals are significant
    digits, as for p values.
    """

    value: float
    std: float | None = None
    decimals: int = 2
    best: bool = False
    signed: bool = False
    interval: tuple[float, float] | None = None
    significant: bool = False

    def __str__(self) -> str:
        if math.isnan(self.value):
            return _NONE
        if self.significant:
            return f"{self.value:.{self.decimals}g}"
        return shown(self.value, self.decimals, signed=self.signed)

    @property
    def spread(self) -> str:
        """The std or the interval as shown, or nothing."""
        if math.isnan(self.value):
            return ""
        if self.interval is not None:
            return str(Interval(*self.interval, self.decimals))
        return "" if self.std is None else shown(self.std, self.decimals)


def shown(value: float, decimals: int, *, signed: bool = False) -> str:
    """A number as people read it: never a minus before nothing, and a plus only before something."""
    text = f"{value:.{decimals}f}"
    if float(text) == 0:
        return text.removeprefix("-")
    return f"+{text}" if signed and value > 0 else text


@dataclass(frozen=True)
class Interval:
    """An interval that has a column of its own."""

    low: float
    high: float
    decimals: int = 1
    signed: bool = False

    def __str__(self) -> str:
        return " to ".join(shown(end, self.decimals, signed=self.signed) for end in (self.low, self.high))


Cell = Number | Interval | str


@dataclass(frozen=True)
class Table:
    """Rows of cells under a header. ``muted`` rows are figures from elsewhere; a rule goes above ``ruled`` rows."""

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()
    muted: frozenset[int] = field(default_factory=frozenset)
    ruled: frozenset[int] = field(default_factory=frozenset)

    def column(self, name: str) -> list[Cell]:
        """The cells under a name in the header."""
        place = self.columns.index(name)
        return [row[place] for row in self.rows]

    def markdown(self) -> str:
        """A table of GitHub's Markdown, with title and notes."""
        lines = [f"**{self.title}**", "", _md_row(self.columns), "|" + "|".join(self._md_rules()) + "|"]
        for number, row in enumerate(self.rows):
            cells = [_md(cell) for cell in row]
            lines.append(_md_row([f"*{cell}*" if number in self.muted and cell else cell for cell in cells]))
        return "\n".join([*lines, *("\n" + note for note in self.notes), ""])

    def csv(self) -> str:
        """Bare figures; a column with std or intervals has a second one for them."""
        spread = [self._spread(i) for i in self._numbers()]
        header: list[str] = []
        for i, name in enumerate(self.columns):
            header += [name, f"{name} {spread[i]}"] if spread[i] else [name]
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(header)
        for row in self.rows:
            cells: list[str] = []
            for i, cell in enumerate(row):
                if isinstance(cell, Number):
                    cells.append("" if math.isnan(cell.value) else str(cell))
                    cells += [cell.spread] if spread[i] else []
                else:
                    cells += [str(cell), ""] if spread[i] else [str(cell)]
            writer.writerow(cells)
        return out.getvalue()

    def latex(self) -> str:
        """A table with booktabs, the std small and low as in the paper."""
        alignment = "".join("l" if self._is_text(i) else "r" for i in self._numbers())
        head = [r"\toprule", " & ".join(map(_tex, self.columns)) + r" \\", r"\midrule"]
        caption = rf"\caption{{{_tex(' '.join([self.title.rstrip('.') + '.', *self.notes]))}}}"
        label = rf"\label{{tab:{self.name}}}"
        if len(self.rows) > _ROWS_OF_A_PAGE:
            begin = [
                "% needs the package longtable",
                rf"\begin{{longtable}}{{{alignment}}}",
                caption + label + r" \\",
                *head,
                r"\endfirsthead",
                *head,
                r"\endhead",
                r"\bottomrule",
                r"\endfoot",
            ]
            end = [r"\end{longtable}"]
        else:
            begin = [r"\begin{table}[t]", r"\centering", rf"\begin{{tabular}}{{{alignment}}}", *head]
            end = [r"\bottomrule", r"\end{tabular}", caption, label, r"\end{table}"]
        return "\n".join([*begin, *self._latex_rows(), *end, ""])

    def _latex_rows(self) -> list[str]:
        lines = []
        for number, row in enumerate(self.rows):
            if number in self.ruled and number:
                lines.append(r"\midrule")
            cells = [_tex_cell(cell) for cell in row]
            lines.append(" & ".join(rf"\textit{{{c}}}" if number in self.muted and c else c for c in cells) + r" \\")
        return lines

    def html(self) -> str:
        """A table element."""
        head = "".join(f"<th{_side(self._is_text(i))}>{escape(name)}</th>" for i, name in enumerate(self.columns))
        body = []
        for number, row in enumerate(self.rows):
            kinds = [kind for kind, rows in (("muted", self.muted), ("ruled", self.ruled)) if number in rows]
            cells = "".join(f"<td{_side(self._is_text(i))}>{_html(cell)}</td>" for i, cell in enumerate(row))
            body.append(f'<tr class="{" ".join(kinds)}">{cells}</tr>' if kinds else f"<tr>{cells}</tr>")
        wide = ' class="wide"' if len(self.columns) > _COLUMNS_OF_A_PAGE else ""
        return f"<table{wide}><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>"

    def texts(self) -> list[list[str]]:
        """Every cell as it is read, the std behind its figure."""
        return [[_text(cell) for cell in row] for row in self.rows]

    def _numbers(self) -> range:
        return range(len(self.columns))

    def _is_text(self, column: int) -> bool:
        return not any(isinstance(row[column], Number) for row in self.rows)

    def _spread(self, column: int) -> str:
        """What stands beside the figures of a column: nothing, their std or their interval."""
        cells = [row[column] for row in self.rows]
        if any(isinstance(cell, Number) and cell.interval is not None for cell in cells):
            return "95 % interval"
        return "std" if any(isinstance(cell, Number) and cell.std is not None for cell in cells) else ""

    def _md_rules(self) -> list[str]:
        return ["---" if self._is_text(i) else "---:" for i in self._numbers()]


def write_tables(tables: Iterable[Table], folder: Path) -> None:
    """Write every table as Markdown, CSV and LaTeX into the subfolder ``tables``."""
    place = folder / "tables"
    place.mkdir(parents=True, exist_ok=True)
    for table in tables:
        for ending, text in (("md", table.markdown()), ("csv", table.csv()), ("tex", table.latex())):
            write_atomically(place / f"{table.name}.{ending}", text)


def with_best(cells: list[Number], allowed: Sequence[bool] | None = None, *, lowest: bool = False) -> list[Number]:
    """The same figures with the highest (or ``lowest``) of those allowed marked, and all that look the same."""
    may = [True] * len(cells) if allowed is None else allowed
    known = [cell for cell, ok in zip(cells, may, strict=True) if ok and not math.isnan(cell.value)]
    if not known:
        return cells
    top = str((min if lowest else max)(known, key=lambda cell: cell.value))
    return [replace(cell, best=ok and str(cell) == top) for cell, ok in zip(cells, may, strict=True)]


def _md_row(cells: tuple[str, ...] | list[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def _md(cell: Cell) -> str:
    if not isinstance(cell, Number) or not cell.best:
        return _text(cell)
    return f"**{cell}** ({cell.spread})" if cell.spread else f"**{cell}**"


def _text(cell: Cell) -> str:
    if not isinstance(cell, Number):
        return str(cell)
    return f"{cell} ({cell.spread})" if cell.spread else str(cell)


def _tex(text: str) -> str:
    return "".join(_LATEX.get(character, character) for character in text)


def _tex_cell(cell: Cell) -> str:
    if not isinstance(cell, Number):
        return _tex(str(cell))
    shown = rf"\textbf{{{_tex(str(cell))}}}" if cell.best else _tex(str(cell))
    return rf"{shown}\textsubscript{{{cell.spread}}}" if cell.spread else shown


def _html(cell: Cell) -> str:
    if not isinstance(cell, Number):
        return escape(str(cell))
    shown = f"<b>{cell}</b>" if cell.best else str(cell)
    return f"{shown} <small>{cell.spread}</small>" if cell.spread else shown


def _side(text: bool) -> str:
    return ' class="text"' if text else ""
