"""A reader's part in features: stages, stores, workers and linkers. The reader is a Llama of random weights."""

from __future__ import annotations

import shutil
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
import torch
from material import refused
from tiny_llama import write_llama

from cohegraph import CoherenceModel
from cohegraph.corpora.columns import Entry
from cohegraph.corpora.starter import starter_corpus
from cohegraph.errors import MissingPartError
from cohegraph.features import Featurizer
from cohegraph.features.cache import FeatureCache
from cohegraph.features.document_features import DocumentReading
from cohegraph.features.store import FeatureStore
from cohegraph.scale.engine import LocalEngine
from cohegraph.scale.featurizing import LocalSource, featurize
from cohegraph.settings import Settings
from cohegraph.text.reader import FIGURES
from cohegraph.text.readers import DEFAULT_READER

TEXTS = [
    "The dog saw a cat. The cat ran to the house. A storm came over the hills. The dog slept.",
    "Rain fell on the town. The river rose. People left the town by boat.",
    "One sentence stands alone.",
]


def same(one, other):
    for part in fields(DocumentReading):
        np.testing.assert_array_equal(getattr(one, part.name), getattr(other, part.name))


@pytest.fixture
def settings(reading_settings):
    return reading_settings


def test_readings_are_features(settings):
    found = Featurizer(settings).featurize(TEXTS)
    assert {"reader", "heads"} <= set(found.parts)
    for reading, sentences in zip(found.readings, (4, 3, 1), strict=True):
        assert reading.tokens.shape == reading.belonging.shape == (sentences,)
        assert reading.losses.shape == (sentences, len(FIGURES))
        assert reading.boundaries.shape == (sentences - 1,)
        assert reading.states.shape == (2, 32)
        assert reading.alone.shape == (0,)
        assert (reading.losses > 0).all()
        assert ((reading.belonging > 0) & (reading.belonging < 1)).all()
    alone = Featurizer(settings.replaced({"reader.alone": True})).featurize(TEXTS[:2]).readings
    # The first sentence is read by itself in any case.
    for reading in alone:
        assert reading.alone[0] == pytest.approx(reading.losses[0, 0], rel=1e-4)
        assert abs(reading.alone[1:] - reading.losses[1:, 0]).max() > 1e-3
    with refused("missing-material"):
        _ = Featurizer(settings.replaced({"reader.source": None})).featurize(TEXTS).readings


def test_readings_are_cached(settings, tmp_path, monkeypatch):
    featurizer, cache = Featurizer(settings), FeatureCache(tmp_path)
    computed = featurizer.featurize(TEXTS).readings
    for one, other in zip(cache.features(TEXTS, featurizer).readings, computed, strict=True):
        same(one, other)
    again = Featurizer(settings)
    monkeypatch.setattr(Featurizer, "readings", None)
    for one, other in zip(cache.features(TEXTS, again).readings, computed, strict=True):
        same(one, other)


def test_readings_are_stored_and_computed_by_workers(settings, tmp_path):
    featurizer = Featurizer(settings)
    computed = featurizer.featurize(TEXTS).readings
    for workers in (1, 2):
        entries = [Entry("", text=text, label="low") for text in TEXTS]
        source = LocalSource(entries, len(entries), LocalEngine(featurizer, workers))
        folder = tmp_path / str(workers)
        featurize(source, featurizer, folder, shard=2)
        corpus = FeatureStore(folder).corpus()
        for one, other in zip(corpus.features.readings, computed, strict=True):
            same(one, other)
    one, two = (sorted(file.name for file in (tmp_path / name).glob("*.arrow")) for name in "12")
    assert one == two


def test_readings_do_not_depend_on_order_batch_and_threads(settings):
    expected = Featurizer(settings).featurize(TEXTS).readings
    threads = torch.get_num_threads()
    try:
        for number in (1, 2):
            torch.set_num_threads(number)
            turned = Featurizer(settings).featurize(TEXTS[::-1]).readings[::-1]
            single = [Featurizer(settings).featurize([text]).readings[0] for text in TEXTS]
            for one, other, third in zip(expected, turned, single, strict=True):
                same(one, other)
                same(one, third)
    finally:
        torch.set_num_threads(threads)


def test_the_heads_link_sentences(settings):
    featurizer = Featurizer(settings.replaced({"links.linkers": "reading", "links.thresholds": {"reading": 0.0}}))
    (document,) = featurizer.parser.parse(TEXTS[:1])
    related = featurizer.read(document).judgement.related
    links = featurizer.link_document(document).links
    assert len(links) == 6
    np.testing.assert_array_equal(links.strength, related[links.source, links.target])
    (linker,) = featurizer.linkers
    np.testing.assert_array_equal(linker.related(document, range(4), 3)[:3], related[:3, 3])
    np.testing.assert_array_equal(linker.related(document, range(4), 0)[1:], related[0, 1:])


@pytest.mark.parametrize("name", ["context", "context-exact"])
def test_a_sentence_depends_on_what_makes_it_easier_to_foresee(settings, name):
    featurizer = Featurizer(settings.replaced({"links.linkers": name, "links.thresholds": {name: 0.0}}))
    (document,) = featurizer.parser.parse(TEXTS[:1])
    (linker,) = featurizer.linkers
    if name == "context":
        gains = featurizer.read(document).judgement.gains
    else:
        gains, alone = np.zeros((4, 4)), featurizer.reader.alone(document)
        for source in range(4):
            for target in range(source + 1, 4):
                gains[source, target] = alone[target] - featurizer.reader.after(document, source, [target])[0]
    assert {1, -1} <= set(np.sign(gains[np.triu_indices(4, 1)]))
    found = linker.strengths(document, range(4), range(4))
    np.testing.assert_allclose(found, 1 - np.exp(-np.maximum(gains + gains.T, 0)), atol=1e-5)
    links = featurizer.link_document(document).links
    assert len(links) == (gains > 0).sum()
    np.testing.assert_allclose(links.strength, found[links.source, links.target], atol=1e-6)
    # What a sentence is related to may come before it.
    np.testing.assert_allclose(linker.related(document, range(4), 3), found[3], atol=1e-5)


def test_heads_without_gains_do_not_link_by_context(settings):
    without = str(Path(settings.reader.heads).with_name("without-gains"))
    changes = {"reader.heads": without, "links.linkers": "context"}
    with refused("no-gains"):
        Featurizer(settings.replaced(changes)).featurize(TEXTS)
    assert Featurizer(settings.replaced(changes | {"links.linkers": "context-exact"})).featurize(TEXTS).readings


def test_a_model_with_links_of_a_reader(settings, tmp_path):
    changes = {"links.linkers": "nouns,reading", "links.combine": "side-by-side", "training.epochs": 2}
    model = CoherenceModel(settings=settings.replaced(changes))
    model.fit(TEXTS[:2] * 3, ["high", "low"] * 3)
    (before,) = model.assess(TEXTS[:1])
    model.save(tmp_path / "model")
    loaded = CoherenceModel.load(tmp_path / "model")
    (after,) = loaded.assess(TEXTS[:1])
    assert before.probabilities == after.probabilities
    assert loaded.explain(TEXTS[0]).links


def test_parts_that_do_not_fit(settings, tmp_path):
    with refused("no-reader"):
        Featurizer(settings.replaced({"reader.source": None, "links.linkers": "reading"})).featurize(TEXTS)
    with refused("no-heads"):
        Featurizer(settings.replaced({"reader.heads": str(tmp_path)})).featurize(TEXTS)
    other = write_llama(tmp_path / "llama", initializer_range=0.1)
    with refused("other-heads"):
        Featurizer(settings.replaced({"reader.source": str(other)})).featurize(TEXTS)


def test_a_reader_without_heads_links(settings, tmp_path):
    other = str(write_llama(tmp_path / "llama", initializer_range=0.1))
    changes = {"reader.source": other, "reader.heads": None, "links.linkers": "context-exact"}
    changes["links.thresholds"] = {"context-exact": 0}
    found = Featurizer(settings.replaced(changes)).featurize(TEXTS)
    assert found.tally("links").any()
    assert "heads" not in found.parts
    with refused("no-heads"):
        Featurizer(settings.replaced(changes | {"links.linkers": "reading", "links.thresholds": {}})).featurize(TEXTS)


def test_the_packaged_reader_and_heads_know_originals():
    """Connected texts of the starter corpus against the same sentences from the last to the first."""
    try:
        featurizer = Featurizer(Settings().replaced({"reader.source": DEFAULT_READER}))
        featurizer.load()
    except MissingPartError as error:
        pytest.skip(str(error))
    texts = [one.text for one in starter_corpus() if one.label == "high"][:8]
    turned = [
        " ".join(sentence.text for sentence in document.sentences[::-1]) for document in featurizer.parser.parse(texts)
    ]
    originals, others = (featurizer.featurize(some).readings for some in (texts, turned))
    assert sum(one.score[0] > other.score[0] for one, other in zip(originals, others, strict=True)) >= 7
    joined = [f"{texts[0]} {texts[3]}"]
    (reading,) = featurizer.featurize(joined).readings
    first = len(next(iter(featurizer.parser.parse(texts[:1]))).sentences)
    assert reading.boundaries.argmin() == first - 1


def test_only_pairs_within_reach_are_read(settings, monkeypatch):
    changes = {"links.linkers": "context-exact", "links.thresholds": {"context-exact": 0.0}}
    featurizer = Featurizer(settings.replaced(changes))
    (document,) = featurizer.parser.parse(["The dog ran. " * 12])
    (linker,), reader, asked = featurizer.linkers, featurizer.reader, []
    read = type(reader).after

    def after(self, document, source, targets):
        asked.extend((source, target) for target in targets)
        return read(self, document, source, targets)

    monkeypatch.setattr(type(reader), "after", after)
    links = linker.link(document, range(12), reach=4)
    assert (links.target - links.source < 4).all()
    # What is read at once is fixed: no digit depends on what else is asked.
    assert max(target - source for source, target in asked) <= 7
    assert len(asked) < 12 * 7


def test_a_model_finds_heads_that_were_moved(settings, tmp_path):
    moved = tmp_path / "moved"
    model = CoherenceModel(
        "reading", settings.replaced({"reader.heads": str(shutil.copytree(settings.reader.heads, moved))})
    )
    model.fit(TEXTS[:2] * 3, ["high", "low"] * 3)
    model.save(tmp_path / "model")
    (before,) = model.assess(TEXTS[:1])
    shutil.move(moved, tmp_path / "elsewhere")
    loaded = CoherenceModel.load(tmp_path / "model", heads=str(tmp_path / "elsewhere"))
    assert loaded.assess(TEXTS[:1])[0].probabilities == before.probabilities
