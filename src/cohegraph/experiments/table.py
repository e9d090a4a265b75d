"""One table in every form that people paste: Markdown, CSV, LaTeX and HTML."""

import csv
import io
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
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
    muted: frozenset[int] = frozenset()
    ruled: frozenset[int] = frozenset()

    def under(self, *names: str) -> list[tuple[Cell, ...]]:
        """The cells of each row that stand under these names."""
        places = [self.columns.index(name) for name in names]
        return [tuple(row[place] for place in places) for row in self.rows]

    def markdown(self) -> str:
        """A table of GitHub's Markdown, with title and notes."""
        rules = ("---" if text else "---:" for text in self._are_texts())
        rows = (self._in_form(row, str, "**{}**", " ({})", "*{}*") for row in range(len(self.rows)))
        lines = [f"**{self.title}**", "", _md_row(self.columns), f"|{'|'.join(rules)}|", *map(_md_row, rows)]
        return "\n".join([*lines, *("\n" + note for note in self.notes), ""])

    def csv(self) -> str:
        """Bare figures; a column with std or intervals has a second one for them."""
        columns: list[list[str]] = []
        for name, cells in zip(self.columns, self._cells(), strict=True):
            unknown = [isinstance(cell, Number) and math.isnan(cell.value) for cell in cells]
            columns.append([name, *("" if gap else str(cell) for cell, gap in zip(cells, unknown, strict=True))])
            beside = _beside(cells)
            if beside:
                columns.append([f"{name} {beside}", *(one.spread if isinstance(one, Number) else "" for one in cells)])
        out = io.StringIO()
        csv.writer(out, lineterminator="\n").writerows(zip(*columns, strict=True))
        return out.getvalue()

    def latex(self) -> str:
        """A table with booktabs, the std small and low as in the paper."""
        alignment = "".join("l" if text else "r" for text in self._are_texts())
        head = [r"\toprule", " & ".join(map(_tex, self.columns)) + r" \\", r"\midrule"]
        caption = rf"\caption{{{_tex(' '.join([self.title.rstrip('.') + '.', *self.notes]))}}}"
        label = rf"\label{{tab:{self.name}}}"
        if len(self.rows) > _ROWS_OF_A_PAGE:
            begin = ["% needs the package longtable", rf"\begin{{longtable}}{{{alignment}}}", caption + label + r" \\"]
            begin += [*head, r"\endfirsthead", *head, r"\endhead", r"\bottomrule", r"\endfoot"]
            end = [r"\end{longtable}"]
        else:
            begin = [r"\begin{table}[t]", r"\centering", rf"\begin{{tabular}}{{{alignment}}}", *head]
            end = [r"\bottomrule", r"\end{tabular}", caption, label, r"\end{table}"]
        body = []
        for row in range(len(self.rows)):
            cells = self._in_form(row, _tex, r"\textbf{{{}}}", r"\textsubscript{{{}}}", r"\textit{{{}}}")
            body += [r"\midrule"] if row in self.ruled and row else []
            body.append(" & ".join(cells) + r" \\")
        return "\n".join([*begin, *body, *end, ""])

    def html(self) -> str:
        """A table element."""
        sides = [' class="text"' if text else "" for text in self._are_texts()]
        head = "".join(f"<th{side}>{escape(name)}</th>" for side, name in zip(sides, self.columns, strict=True))
        body = []
        for row in range(len(self.rows)):
            kinds = " ".join(kind for kind, rows in (("muted", self.muted), ("ruled", self.ruled)) if row in rows)
            shown = self._in_form(row, escape, "<b>{}</b>", " <small>{}</small>")
            cells = "".join(f"<td{side}>{cell}</td>" for side, cell in zip(sides, shown, strict=True))
            body.append(f'<tr class="{kinds}">{cells}</tr>' if kinds else f"<tr>{cells}</tr>")
        wide = ' class="wide"' if len(self.columns) > _COLUMNS_OF_A_PAGE else ""
        return f"<table{wide}><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>"

    def texts(self) -> list[list[str]]:
        """Every cell as it is read, the std behind its figure."""
        return [self._in_form(row, str, "{}", " ({})") for row in range(len(self.rows))]

    def _in_form(self, row: int, escaped: Callable[[str], str], best: str, spread: str, muted: str = "{}") -> list[str]:
        """The cells of a row: ``best`` is the form of the best figures, ``spread`` that of what stands beside them."""
        cells = []
        for cell in self.rows[row]:
            text = escaped(str(cell))
            if isinstance(cell, Number):
                text = best.format(text) if cell.best else text
                text += spread.format(cell.spread) if cell.spread else ""
            cells.append(muted.format(text) if row in self.muted and text else text)
        return cells

    def _cells(self) -> list[list[Cell]]:
        """The cells of each column."""
        return [[row[column] for row in self.rows] for column in range(len(self.columns))]

    def _are_texts(self) -> list[bool]:
        """Whether each column has no figures."""
        return [not any(isinstance(cell, Number) for cell in cells) for cells in self._cells()]


def _beside(cells: list[Cell]) -> str:
    """What stands beside the figures of a column: nothing, their std or their interval."""
    if any(isinstance(cell, Number) and cell.interval is not None for cell in cells):
        return "95 % interval"
    return "std" if any(isinstance(cell, Number) and cell.std is not None for cell in cells) else ""


def by_columns(name: str, title: str, columns: Iterable[tuple[str, Sequence[Cell]]], *notes: str) -> Table:
    """A table from the names and cells of its columns."""
    names, cells = zip(*columns, strict=True)
    return Table(name, title, names, tuple(zip(*cells, strict=True)), notes)


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


def _md_row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def _tex(text: str) -> str:
    return "".join(_LATEX.get(character, character) for character in text)
