"""Models and stores of the first format still open; ``data/format-1`` holds what the version that wrote them wrote."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from cohegraph import load
from cohegraph.features import TALLIES, Features, Featurizer
from cohegraph.features.store import FeatureStore
from cohegraph.graph.entity_grid import build_entity_grid
from cohegraph.model.formats import FORMAT

FOLDER = Path(__file__).parent / "data" / "format-1"
EXPECTED = json.loads((FOLDER / "expected.json").read_text("utf-8"))
LEVELS = ("low", "medium", "high")
# The tallies that there were, in their order then.
THEN = (
    "sentences dropped_sentences words nouns unknown_nouns links subgraphs characters distinct_words paragraphs tokens "
    "cut_tokens"
).split()


def documents(number=6, seed=1) -> Features:
    """The documents that the models were asked about when they were made."""
    generator = np.random.default_rng(seed)
    codes = np.arange(number) % 3
    vectors = generator.normal(size=(number, 4)).astype(np.float32)
    vectors[:, :3] += 2 * np.eye(3, dtype=np.float32)[codes]
    counts = sparse.csr_array(generator.poisson(1.0, (number, 6)))
    figures = generator.integers(5, 30, (number, len(THEN)))
    tallies = np.ones((number, len(TALLIES)), dtype=np.int64)
    for column, name in enumerate(THEN):
        tallies[:, TALLIES.index(name)] = figures[:, column]
    mentions = [generator.integers((0, 0, 1), (5, 4, 4), (9, 3)) for _ in codes]
    grids = tuple(build_entity_grid(5, [(int(s), str(e), int(r)) for s, e, r in some]) for some in mentions)
    return Features(counts, vectors, tallies, material={"grid": grids})


@pytest.mark.parametrize("name", ["gcn", "entity-grid"])
def test_models_of_the_first_format_give_the_same_digits(name, tmp_path):
    model, new = load(FOLDER / name), documents()
    assert model.system_.name == name
    assert (model.levels_, model.classes_.tolist()) == (list(LEVELS), sorted(LEVELS))

    def figures(one):
        return one.predict_proba(new).tolist(), [found.unlikeness for found in one.assess(new)]

    # The figures were recorded on one processor; another rounds the last digits of a float32 differently.
    probabilities, unlikeness = figures(model)
    np.testing.assert_allclose(probabilities, EXPECTED[name]["probabilities"], rtol=0, atol=1e-6)
    np.testing.assert_allclose(unlikeness, EXPECTED[name]["unlikeness"], rtol=1e-6, atol=0)
    nearest = [model.neighbours_.nearest(new[row].counts, model.levels_, 1)[0].level for row in range(len(new))]
    assert nearest == EXPECTED[name]["neighbour"]
    # Saved again, it has the present format, and gives the same digits on this processor.
    model.save(tmp_path / name)
    assert json.loads((tmp_path / name / "model.json").read_text("utf-8"))["format"] == FORMAT
    assert figures(load(tmp_path / name)) == (probabilities, unlikeness)


def test_a_store_of_the_first_format_opens():
    corpus = FeatureStore(FOLDER / "store").corpus()
    assert len(corpus.features) == len(corpus.labels) == 6
    assert set(corpus.labels) == set(LEVELS)
    assert np.isfinite(corpus.features.array).all()
    assert (corpus.features.tally("sentences") >= 8).all()
    # Whether a text is English was not kept then: it is not known, and no notice says that it is not.
    assert corpus.features.tally("english").tolist() == [-1] * 6


def test_a_store_of_the_first_format_is_brought_up_to_date(run, shipped, starter, tmp_path, monkeypatch):
    """The texts are parsed again, since more is counted now, and nothing is encoded again."""
    store = shutil.copytree(FOLDER / "store", tmp_path / "store")
    code, _, _ = run("assess", store, "--json")
    assert code == 2  # features of patterns of four sentences, which the shipped model does not take
    table = tmp_path / "six.jsonl"
    rows = [{"id": one.id, "text": one.text, "level": one.label, "topic": one.group} for one in list(starter)[:6]]
    table.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    before = FeatureStore(store).corpus()
    monkeypatch.setattr(Featurizer, "encode", lambda *_: pytest.fail("it was encoded again"))
    columns = ["--label-column", "level", "--group-column", "topic", "--id-column", "id"]
    code, _, err = run("featurize", table, "--out", store, "--shard", 3, "--workers", 1, *columns)
    assert code == 0, err
    after = FeatureStore(store).corpus()
    assert after.features.tally("english").tolist() == [1] * 6
    assert np.array_equal(after.features.array, before.features.array)
    assert np.array_equal(after.features.counts.toarray(), before.features.counts.toarray())
    assert (after.ids, after.labels, after.keys) == (before.ids, before.labels, before.keys)
