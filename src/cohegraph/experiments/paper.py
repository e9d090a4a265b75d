"""The figures of the paper's own tables (Liu, Fu and Strube, 2023), to stand next to ours."""

import json
from dataclasses import dataclass
from importlib.resources import files

_FIGURES = json.loads(files("cohegraph").joinpath("data", "experiments", "paper.json").read_text("utf-8"))


@dataclass(frozen=True)
class PaperRow:
    """A row of a table of the paper; ``system`` names the one here that it belongs to, where there is one."""

    title: str
    system: str
    means: tuple[float, ...]
    stds: tuple[float, ...] = ()
    average: float | None = None


SECTIONS: dict[str, tuple[str, ...]] = {corpus: tuple(names) for corpus, names in _FIGURES["sections"].items()}
# By corpus and measure.
TABLES = {
    (table["corpus"], table["measure"]): tuple(
        PaperRow(title, system, tuple(means), tuple(stds), average)
        for title, system, means, stds, average in table["rows"]
    )
    for table in _FIGURES["tables"]
}
# Accuracy without edges between patterns, and without any, by corpus and section.
ABLATION: dict[tuple[str, str], dict[str, float]] = {
    (corpus, section): figures for corpus, section, figures in _FIGURES["ablation"]
}


def rows_of(corpus: str, measure: str, section_names: tuple[str, ...]) -> list[tuple[PaperRow, dict[str, int]]]:
    """The paper's rows for a corpus, with the place of each of the sections in them."""
    known = SECTIONS.get(corpus, ())
    places = {name: known.index(name) for name in section_names if name in known}
    return [(row, places) for row in TABLES.get((corpus, measure), ())] if places else []
