"""What an experiment keeps, and what it does again."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

import numpy as np
import pytest
from material import refused
from scipy import sparse

from cohegraph.corpora.corpus import Corpus
from cohegraph.experiments.folds import make_folds, read_folds, write_folds
from cohegraph.experiments.measures import Estimate, average
from cohegraph.experiments.plan import make_experiment
from cohegraph.experiments.results_folder import read_lines
from cohegraph.experiments.runner import Work, _check_systems
from cohegraph.experiments.units import Result
from cohegraph.features import TALLIES, Features
from cohegraph.graph.catalogue import catalogue

LEVELS = ("low", "high")


def corpus(documents=24, **changes) -> Corpus:
    columns = {
        "ids": tuple(f"id {row}" for row in range(documents)),
        "texts": tuple(f"text {row}" for row in range(documents)),
        "labels": tuple(LEVELS[row % 2] for row in range(documents)),
        "sections": ("A",) * (documents // 2) + ("B",) * (documents // 2),
    }
    return Corpus(name="made up", levels=LEVELS, **(columns | changes))


def work(one=None, folds=None, **plan) -> Work:
    one = one or corpus()
    values = {"name": "x", "corpus": {"kind": "table"}, "systems": [{"name": "surface"}], "protocol": {"folds": 2}}
    experiment = make_experiment(values | plan)
    features = {}
    for variant in ("", *(variant.name for variant in experiment.variants)):
        for section in one.section_names:
            size = len(one.rows_of(section))
            settings = experiment.settings_of(section, variant)
            counts = sparse.csr_array((size, len(catalogue(settings.subgraphs.k))), dtype=np.int64)
            tallies = np.ones((size, len(TALLIES)), dtype=np.int64)
            features[variant, section] = Features(counts, np.zeros((size, 2), np.float32), tallies, {}, settings)
    return Work(experiment, one, tuple(folds or make_folds(one, experiment.protocol)), features)


def digests(*arguments, **changes) -> list[str]:
    return [unit.digest for unit in work(*arguments, **changes).units()]


def test_a_result_belongs_to_its_documents_folds_and_features():
    base = digests()
    assert digests() == base
    assert not set(digests(corpus(texts=tuple(f"other {row}" for row in range(24))))) & set(base)
    folds = make_folds(corpus(), work().experiment.protocol)
    turned = [replace(fold, training=fold.dev, dev=fold.training) for fold in folds]
    assert not set(digests(None, turned)) & set(base)
    variants = [
        digests(variants=[{"name": "v", "settings": settings, "systems": ["surface"]}])
        for settings in ({"subgraphs.k": 3}, {"subgraphs.k": 5}, {"links.delta": 0.3})
    ]
    assert all(found[: len(base)] == base for found in variants)
    assert len({tuple(found[len(base) :]) for found in variants}) == 3


def test_what_is_set_on_purpose_is_not_searched():
    def searched(**plan):
        return [dict(unit.search) for unit in work(**plan).units()]

    dnn = {"systems": [{"name": "dnn"}]}
    assert "training.weight_decay" in searched(**dnn)[0]
    assert "training.weight_decay" not in searched(**dnn, settings={"training.weight_decay": 5.0})[0]
    fixed = {"systems": [{"name": "dnn", "settings": {"training.weight_decay": 5.0}}]}
    assert "training.weight_decay" not in searched(**fixed)[0]
    points = searched(**dnn, sensitivity={"training.weight_decay": [0.0, 5.0]}, analyses={"compare": ["dnn", "dnn"]})
    assert "training.weight_decay" in points[0]
    assert "training.weight_decay" not in points[-1]


def test_values_of_a_search_are_checked_together():
    def checked(search):
        plan = make_experiment(
            {"name": "x", "corpus": {"kind": "table"}, "systems": [{"name": "moon-2019", "search": search}]}
        )
        _check_systems(plan, corpus())

    checked({"hidden": [30, 60], "heads": [3, 6]})
    for search, code in (
        ({"hidden": [64, 8], "heads": [8, 16]}, "bad-hyper-parameter"),
        ({"hidden": []}, "no-values"),
        ({"batch": [2**63]}, "bad-hyper-parameter"),
    ):
        with refused(code):
            checked(search)


def test_a_system_chooses_by_its_own_figure():
    plan = {"systems": [{"name": "dnn", "settings": {"training.choose_by": "loss"}}, {"name": "gcn"}]}
    assert [unit.choose_by for unit in work(**plan).units()][:2] == ["loss", "accuracy"]


def result(unit, **changes) -> Result:
    probabilities = [[0.5, 0.5]] * len(unit.fold.test)
    return replace(Result(*unit.name, {}, 0.5, 0.7, 3, probabilities), **changes)


def test_a_whole_result_answers_its_unit():
    unit, other = list(work().units())[:2]
    assert result(unit).answers(unit, 2)
    assert not result(unit).answers(other, 2)
    assert not result(unit).answers(unit, 3)
    for probabilities in ([], [[0.5, 0.5]], [["a", "b"]] * 6, [[-5, 6]] * 6, [[float("nan")] * 2] * 6, [[1], [0, 1]]):
        assert not result(unit, probabilities=probabilities).answers(unit, 2)
    assert not result(unit, chosen=None).answers(unit, 2)
    assert not result(unit, dev_accuracy="high").answers(unit, 2)


def test_damaged_lines_are_left_out(tmp_path):
    unit = next(iter(work().units()))
    good = json.dumps(asdict(result(unit)))
    broken = ["{", "[]", "3", '{"variant": []}', "[" * 10_000, good.replace('"fold": "A/0/0"', '"fold": []'), good[:-9]]
    file = tmp_path / "results.jsonl"
    file.write_text("\n".join([*broken[:3], good, *broken[3:]]))
    assert list(read_lines(file, Result)) == [unit.name]


def test_names_with_line_separators_are_found_again(tmp_path):
    odd = "a\u2028b\u0085c"
    one = corpus(sections=(odd,) * 24, ids=tuple(f"{odd}{row}\ud800" for row in range(24)))
    made = make_folds(one, work().experiment.protocol)
    write_folds(made, one, tmp_path / "folds.jsonl")
    assert [fold.name for fold in read_folds(tmp_path / "folds.jsonl", one)] == [fold.name for fold in made]


def fold_file(tmp_path, change) -> tuple:
    one = corpus()
    file = tmp_path / "folds.jsonl"
    write_folds(make_folds(one, work().experiment.protocol), one, file)
    lines = [json.loads(line) for line in file.read_text().split("\n") if line]
    file.write_text("\n".join(json.dumps(line) for line in change(lines)))
    return file, one


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda lines: [], "missing-section"),
        (lambda lines: [*lines, lines[0]], "same-fold"),
        (lambda lines: [{**lines[0], "test": lines[2]["test"]}, *lines[1:]], "other-section"),
        (lambda lines: [{**lines[0], "test": []}, *lines[1:]], "empty-part"),
        (lambda lines: [{**lines[0], "dev": lines[0]["test"]}, *lines[1:]], "same-document"),
        (lambda lines: [{**lines[0], "section": "C"}, *lines[1:]], "unknown-section"),
        (lambda lines: [[1], 2], "not-folds"),
    ],
)
def test_folds_from_a_file_are_checked(tmp_path, change, code):
    file, one = fold_file(tmp_path, change)
    with refused(code):
        read_folds(file, one)


def test_a_missing_file_of_folds(tmp_path):
    with refused("cannot-read"):
        read_folds(tmp_path / "nowhere.jsonl", corpus())


@pytest.mark.parametrize("share", [0.1, 0.3, 0.4, 0.6, 0.9])
def test_the_share_of_dev_documents_is_as_asked(share):
    one = corpus(400, sections=("A",) * 400)
    for fold in make_folds(
        one, make_experiment({"name": "x", "corpus": {"kind": "table"}, "protocol": {"dev": share}}).protocol
    ):
        assert len(fold.dev) / (len(fold.dev) + len(fold.training)) == pytest.approx(share, abs=0.01)
        assert np.bincount(one.codes[fold.dev]).min() / len(fold.dev) == pytest.approx(0.5, abs=0.03)


def test_a_section_with_one_level_is_refused():
    one = corpus(labels=("low",) * 12 + LEVELS * 6)
    with refused("one-level") as caught:
        work(one)
    assert "'A'" in str(caught.value)


def test_too_few_groups_are_refused():
    one = corpus(groups=("x", "y") * 12)
    with refused("few-groups"):
        work(one, protocol={"folds": 2, "grouped": True})


def test_the_mean_over_sections_leaves_out_what_a_section_does_not_have():
    nan = float("nan")
    known = Estimate(0.5, 0.1, 0.4, 0.6, np.array([0.4, 0.6]))
    unknown = Estimate(nan, nan, nan, nan, np.array([nan, nan]))
    assert average([known, unknown]).mean == 0.5
    assert np.isnan(average([unknown, unknown]).mean)
