"""The file that holds the tables of an experiment."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from material import refused

from cohegraph.experiments.summary import Summary, read_summary
from cohegraph.experiments.table import Interval, Number, Table
from cohegraph.graph.catalogue import catalogue, pattern_named

FIGURES = st.floats(allow_nan=False, allow_infinity=False)
CELLS = st.one_of(
    st.text(),
    st.builds(
        Number,
        st.one_of(FIGURES, st.integers(0, 10**6)),
        std=st.none() | FIGURES,
        decimals=st.integers(0, 4),
        best=st.booleans(),
        signed=st.booleans(),
        interval=st.none() | st.tuples(FIGURES, FIGURES),
        significant=st.booleans(),
    ),
    st.builds(Interval, FIGURES, FIGURES, decimals=st.integers(0, 4), signed=st.booleans()),
)
TABLES = st.builds(
    lambda rows, notes, muted: Table("t", "T", ("a", "b"), tuple(rows), tuple(notes), frozenset(muted), frozenset({0})),
    st.lists(st.tuples(CELLS, CELLS)),
    st.lists(st.text(), max_size=2),
    st.sets(st.integers(0, 5)),
)
ABOUT = {"corpus": {"name": "C", "levels": ["low", "high"]}, "settings": {"": {}}, "empty": [], "nothing": None}


def summary(*tables: Table) -> Summary:
    return Summary(ABOUT, "M", "B", {table.name: table for table in tables})


@given(TABLES)
def test_what_is_written_is_read(tmp_path_factory, table):
    file = tmp_path_factory.mktemp("summary") / "s.json"
    summary(table).write(file)
    assert read_summary(file) == summary(table)


def test_not_a_number_is_valid_json_and_comes_back(tmp_path):
    summary(Table("t", "T", ("a", "b"), ((Number(math.nan, std=math.nan), Interval(math.nan, 1.0)),))).write(
        tmp_path / "s"
    )
    json.loads((tmp_path / "s").read_text(), parse_constant=pytest.fail)
    ((number, interval),) = read_summary(tmp_path / "s").tables["t"].rows
    assert math.isnan(number.value)
    assert math.isnan(number.std)
    assert math.isnan(interval.low)
    assert interval.high == 1


def test_a_row_is_a_line(tmp_path):
    rows = tuple((f"row {n}", Number(n, 0.5)) for n in range(9))
    summary(Table("t", "T", ("a", "b"), rows)).write(tmp_path / "s")
    lines = (tmp_path / "s").read_text().splitlines()
    assert [json.loads(line.rstrip(","))[0] for line in lines if line.startswith('["row')] == [row[0] for row in rows]


def test_the_pairs_of_the_method_are_among_all_pairs():
    pairs = Table("comparisons", "All", ("system", "against"), (("M", "B"), ("M", "A"), ("B", "A")), ("Note.",))
    found = summary(pairs).method_pairs()
    assert found.rows == pairs.rows[:2]
    assert (found.columns, found.notes) == (pairs.columns, pairs.notes)


def test_a_table_is_added_or_replaced():
    first, second = (Table("t", title, ("a",), ()) for title in ("One", "Two"))
    assert summary().with_table(first) == summary(first)
    assert summary(first).with_table(second) == summary(second)


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"format": 1, "tables": [{"name": "t"}]}', "\xff"])
def test_other_files_are_refused(tmp_path, content):
    file = tmp_path / "s.json"
    file.write_text(content, "latin-1")
    with refused("damaged-file"):
        read_summary(file)


def test_a_summary_of_another_version_is_refused(tmp_path):
    (tmp_path / "s.json").write_text('{"format": 2}')
    with refused("other-version"):
        read_summary(tmp_path / "s.json")
    with refused("cannot-read"):
        read_summary(tmp_path / "nowhere.json")


def test_rows_fit_their_header(tmp_path):
    summary(Table("t", "T", ("a", "b"), (("x", "y"),))).write(tmp_path / "s")
    (tmp_path / "s").write_text((tmp_path / "s").read_text().replace('["x", "y"]', '["x"]'))
    with refused("damaged-file"):
        read_summary(tmp_path / "s")


@pytest.mark.parametrize("kind", ["isomorphic", "ordered"])
@pytest.mark.parametrize("k", [3, 4])
def test_patterns_are_found_by_name(k, kind):
    assert [pattern_named(pattern.name) for pattern in catalogue(k, kind).patterns] == list(catalogue(k, kind).patterns)


@pytest.mark.parametrize("name", ["", "o", "4:", "7:-", "4:12.12", "x4:12"])
def test_other_names_are_no_patterns(name):
    with refused("no-pattern"):
        pattern_named(name)
