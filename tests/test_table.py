"""A table in four forms."""

from __future__ import annotations

import csv
import io

import numpy as np
import pytest
from scipy import sparse

from cohegraph.experiments import paper
from cohegraph.experiments.analyses import correlations, holm
from cohegraph.experiments.table import Number, Table, with_best
from cohegraph.features import TALLIES, Features
from cohegraph.graph.catalogue import catalogue
from cohegraph.settings import Settings

TABLE = Table(
    "demo",
    "Accuracy & more in %",
    ("system", "P_1", "note"),
    (
        ("A|B <x>", Number(61.234, 0.5, best=True), "50 %"),
        ("paper: theirs", Number(float("nan")), "–"),
    ),
    ("Mean (std).",),
    muted=frozenset({1}),
    ruled=frozenset({1}),
)


def test_markdown():
    assert TABLE.markdown().splitlines()[2:6] == [
        "| system | P_1 | note |",
        "|---|---:|---|",
        "| A\\|B <x> | **61.23** (0.50) | 50 % |",
        "| *paper: theirs* | *–* | *–* |",
    ]


def test_csv_has_bare_figures():
    rows = list(csv.reader(io.StringIO(TABLE.csv())))
    assert rows == [
        ["system", "P_1", "P_1 std", "note"],
        ["A|B <x>", "61.23", "0.50", "50 %"],
        ["paper: theirs", "", "", "–"],
    ]


def test_latex_is_escaped():
    text = TABLE.latex()
    assert r"A|B $<$x$>$ & \textbf{61.23}\textsubscript{0.50} & 50 \% \\" in text
    assert r"system & P\_1 & note \\" in text
    assert r"\midrule" + "\n" + r"\textit{paper: theirs}" in text
    assert r"\caption{Accuracy \& more in \%. Mean (std).}" in text
    assert text.count(r"\begin{") == text.count(r"\end{")


def test_html_is_escaped():
    text = TABLE.html()
    assert "A|B &lt;x&gt;" in text
    assert '<tr class="muted ruled">' in text
    assert "<b>61.23</b> <small>0.50</small>" in text


def test_the_highest_is_the_best():
    assert [one.best for one in with_best([Number(1.0), Number(3.0), Number(float("nan")), Number(3.0)])] == [
        False, True, False, True,
    ]  # fmt: skip


def test_some_are_never_the_best():
    cells = [Number(100.0), Number(3.001), Number(3.004), Number(1.0)]
    assert [one.best for one in with_best(cells, [False, True, True, True])] == [False, True, True, False]
    assert [one.best for one in with_best(cells, [False, True, True, True], lowest=True)] == [False, False, False, True]
    assert not any(one.best for one in with_best(cells, [False] * 4))


def test_signs():
    assert [str(Number(value)) for value in (-0.001, -0.006, 0.006)] == ["0.00", "-0.01", "0.01"]
    assert [str(Number(value, signed=True)) for value in (-0.001, 0.001, 0.006, -1.0)] == [
        "0.00", "0.00", "+0.01", "-1.00",
    ]  # fmt: skip


def test_intervals_stand_beside_figures():
    table = Table("x", "X", ("system", "18 to 133"), (("A", Number(61.11, decimals=1, interval=(54.3, 67.36))),))
    assert "| A | 61.1 (54.3 to 67.4) |" in table.markdown()
    assert table.csv().splitlines() == ["system,18 to 133,18 to 133 95 % interval", "A,61.1,54.3 to 67.4"]


def test_a_table_longer_than_a_page_breaks_across_pages():
    text = Table("x", "X", ("a", "b"), tuple((str(n), Number(n)) for n in range(50))).latex()
    assert r"\begin{longtable}{lr}" in text
    assert r"\begin{table}" not in text
    assert text.count("a & b") == 2
    assert text.index(r"\caption{X.}\label{tab:x} \\") < text.index(r"\endfirsthead") < text.index(r"49 & 49.00 \\")


def test_the_papers_averages_are_the_means_of_its_columns():
    for rows in paper.TABLES.values():
        for row in rows:
            # The paper's 73.84 for XLNet+DNN on TOEFL is 0.08 above the mean of its own columns.
            assert row.average == pytest.approx(np.mean(row.means), abs=0.1)
            assert len(row.stds) in (0, len(row.means))


def test_paper_rows_of_some_sections():
    found = paper.rows_of("GCDC", "accuracy", ("Clinton",))
    row, places = next((row, places) for row, places in found if row.system == "gcn")
    assert row.means[places["Clinton"]] == 66.20
    assert paper.rows_of("HANNA", "accuracy", ("all",)) == []


def test_holm_by_hand():
    # Sorted: .01 (times 4), .02 (times 3), .03 (times 2), .5; each at least the one before.
    assert holm(np.array([0.03, 0.01, 0.5, 0.02])) == pytest.approx([0.06, 0.04, 0.5, 0.06])
    assert holm(np.array([])).size == 0


def test_correlations_by_hand():
    # Pattern 0 fills documents of level 1, pattern 1 the others; a document without subgraphs does not count.
    counts = np.zeros((7, len(catalogue(4))), dtype=int)
    counts[[0, 1, 2], 0] = 4
    counts[[3, 4, 5], 1] = 2
    counts[5, 0] = 2
    classes = np.array([1, 1, 1, 0, 0, 0, 1])
    features = Features(
        sparse.csr_array(counts), np.zeros((7, 2), np.float32), np.zeros((7, len(TALLIES)), int), {}, Settings()
    )
    low, high = correlations(features, classes, 2)
    shares, level = np.array([1, 1, 1, 0, 0, 0.5]), np.array([1, 1, 1, 0, 0, 0])
    r = np.corrcoef(shares, level)[0, 1]
    assert [one.pattern.name for one in high] == [catalogue(4).patterns[0].name, catalogue(4).patterns[1].name]
    assert high[0].r == pytest.approx(r)
    assert low[-1].r == pytest.approx(-r)
    assert high[0].p < high[0].corrected_p <= 4 * high[0].p + 1e-12
