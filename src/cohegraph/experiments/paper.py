"""The figures of the paper's own tables (Liu, Fu and Strube, 2023), to stand beside ours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class PaperRow:
    """A row of a table of the paper; ``system`` names the one here that it belongs to, where there is one."""

    title: str
    system: str
    means: tuple[float, ...]
    stds: tuple[float, ...] = ()
    average: float | None = None


_GCDC = ("Yahoo", "Clinton", "Enron", "Yelp")
_TOEFL = tuple(f"P{number}" for number in range(1, 9))
SECTIONS: Mapping[str, tuple[str, ...]] = {"GCDC": _GCDC, "TOEFL11": _TOEFL}

# By corpus and measure.
TABLES: Mapping[tuple[str, str], tuple[PaperRow, ...]] = {
    ("GCDC", "accuracy"): (
        PaperRow("Li & Jurafsky (2017)", "li-jurafsky-2017", (53.50, 61.00, 54.40, 49.10), (), 54.50),
        PaperRow("Lai & Tetreault (2018)", "lai-tetreault-2018", (54.90, 60.20, 53.20, 54.40), (), 55.70),
        PaperRow("Mesgar & Strube (2018)", "mesgar-strube-2018", (47.30, 57.70, 50.60, 54.60), (), 52.55),
        PaperRow(
            "Mesgar & Strube (2016)",
            "subgraph-features",
            (61.30, 64.60, 55.74, 56.70),
            (0.84, 0.89, 0.90, 0.78),
            59.59,
        ),
        PaperRow("Moon et al. (2019)", "moon-2019", (56.80, 60.65, 54.10, 55.85), (0.95, 0.76, 0.89, 0.85), 56.85),
        PaperRow(
            "Jeon & Strube (2020), centering",
            "jeon-strube-2020-centering",
            (56.75, 62.15, 54.60, 56.45),
            (0.83, 0.88, 0.97, 0.97),
            57.49,
        ),
        PaperRow(
            "Jeon & Strube (2020), incremental",
            "jeon-strube-2020-incremental",
            (57.30, 61.70, 54.50, 56.90),
            (),
            57.60,
        ),
        PaperRow("XLNet+DNN", "dnn", (60.70, 64.00, 55.15, 56.45), (1.03, 1.36, 1.14, 0.94), 59.10),
        PaperRow("Liu et al. (2023)", "gcn", (63.65, 66.20, 57.00, 58.05), (0.74, 0.81, 0.81, 1.21), 61.23),
    ),
    ("GCDC", "macro-F1"): (
        PaperRow("XLNet+DNN", "dnn", (47.32, 46.16, 42.86, 39.32), (1.56, 1.77, 1.85, 1.73), 43.91),
        PaperRow("Liu et al. (2023)", "gcn", (51.92, 48.49, 45.67, 44.18), (1.06, 1.61, 1.57, 1.10), 47.66),
    ),
    ("TOEFL11", "accuracy"): (
        PaperRow(
            "Dong et al. (2017)", "dong-2017", (69.30, 66.47, 65.84, 66.38, 68.89, 64.20, 67.11, 65.73), (), 66.74
        ),
        PaperRow(
            "Mesgar & Strube (2016)",
            "subgraph-features",
            (75.31, 74.90, 73.42, 74.35, 76.10, 75.42, 72.48, 72.31),
            (0.77, 0.94, 0.81, 1.18, 0.74, 0.68, 0.83, 0.65),
            74.29,
        ),
        PaperRow(
            "Moon et al. (2019)",
            "moon-2019",
            (73.84, 72.54, 72.32, 73.26, 75.34, 74.72, 71.97, 72.14),
            (0.81, 0.87, 1.27, 0.67, 0.72, 0.78, 0.71, 0.93),
            73.27,
        ),
        PaperRow(
            "Jeon & Strube (2020), centering",
            "jeon-strube-2020-centering",
            (75.10, 73.35, 74.75, 74.18, 76.38, 74.30, 73.61, 73.44),
            (0.74, 0.92, 0.61, 1.07, 0.91, 1.13, 0.72, 1.15),
            74.39,
        ),
        PaperRow(
            "Jeon & Strube (2020), incremental",
            "jeon-strube-2020-incremental",
            (75.60, 73.40, 75.00, 73.50, 76.80, 75.20, 73.50, 72.80),
            (),
            74.48,
        ),
        PaperRow(
            "XLNet+DNN",
            "dnn",
            (74.70, 74.46, 73.07, 74.09, 75.45, 75.21, 71.17, 71.95),
            (0.88, 0.97, 0.92, 1.04, 0.83, 0.94, 0.76, 0.81),
            73.84,
        ),
        PaperRow(
            "Liu et al. (2023)",
            "gcn",
            (75.97, 76.25, 74.14, 75.81, 77.01, 77.08, 73.55, 72.91),
            (1.14, 1.07, 1.18, 0.71, 0.94, 1.14, 0.80, 0.66),
            75.34,
        ),
    ),
}

# Accuracy without edges between patterns, and without any, by corpus and section.
ABLATION: Mapping[tuple[str, str], Mapping[str, float]] = {
    ("GCDC", "Clinton"): {"gcn": 66.20, "gcn-no-pmi": 66.00, "gcn-no-edges": 64.00},
    ("TOEFL11", "P1"): {"gcn": 75.97, "gcn-no-pmi": 75.42, "gcn-no-edges": 74.70},
}

# Accuracy by level on TOEFL's first prompt.
LEVELS_OF_P1: Mapping[str, tuple[float, float, float]] = {"dnn": (35.29, 83.71, 76.47), "gcn": (50.00, 82.02, 84.87)}


def rows_of(corpus: str, measure: str, section_names: tuple[str, ...]) -> list[tuple[PaperRow, dict[str, int]]]:
    """The paper's rows for a corpus, with the place of each of the sections in them."""
    known = SECTIONS.get(corpus, ())
    places = {name: known.index(name) for name in section_names if name in known}
    return [(row, places) for row in TABLES.get((corpus, measure), ())] if places else []
