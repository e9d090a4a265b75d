"""The linear model on what a reader finds."""

from __future__ import annotations

import numpy as np
import pytest
from material import refused
from scipy import sparse

from cohegraph import CoherenceModel
from cohegraph.features import SURFACE_FIGURES, TALLIES, Features
from cohegraph.features.document_features import DocumentReading
from cohegraph.graph.catalogue import catalogue
from cohegraph.systems.reading import FIGURES_OF_READING, ReadingRegression, figures_of_reading
from cohegraph.text.reader import FIGURES

SETTINGS = {"reader.source": "smollm2-135m"}


def reading(losses, tokens, boundaries, belonging, score=0.5):
    return DocumentReading(
        np.array(tokens),
        np.array(losses, dtype=np.float32),
        np.array(boundaries, dtype=np.float32),
        np.array(belonging, dtype=np.float32),
        np.array([score], dtype=np.float32),
        np.arange(6, dtype=np.float16).reshape(2, 3),
        np.zeros(0, dtype=np.float32),
    )


def features(readings):
    number = len(readings)
    tallies = np.ones((number, len(TALLIES)), dtype=np.int64)
    vectors = np.zeros((number, 2), dtype=np.float32)
    counts = sparse.csr_array((number, len(catalogue(4))), dtype=np.int64)
    return Features(counts, vectors, tallies, material={"reading": tuple(readings)})


def test_figures_by_hand():
    """Two sentences of one and three tokens; the loss is 2 and 4, and 1 and 1 were expected."""
    losses = np.ones((2, len(FIGURES)))
    losses[:, FIGURES.index("loss")] = 2, 4
    figures = figures_of_reading(reading(losses, [1, 3], [0.5], [0.5, 0.9]))
    found = dict(zip(FIGURES_OF_READING, figures, strict=True))
    assert found["loss of a token"] == (2 + 3 * 4) / 4
    assert found["expected_loss of a token"] == 1
    assert [found[f"{part} loss"] for part in ("mean", "least", "most", "deviation")] == [3, 2, 4, 1]
    assert [found[f"{part} surprise"] for part in ("mean", "least", "most")] == [2, 1, 3]
    assert [found[f"{part} boundary"] for part in ("mean", "least", "most", "deviation")] == [0, 0, 0, 0]
    assert found["least belonging"] == 0
    assert found["most belonging"] == pytest.approx(np.log(9), rel=1e-6)
    assert found["score of the heads"] == 0.5
    assert found["tokens in a sentence (relative deviation)"] == 0.5


def test_what_a_document_lacks_is_not_a_number():
    blank = figures_of_reading(DocumentReading.blank(6))
    assert np.isnan(blank).all()
    one = figures_of_reading(reading(np.ones((1, len(FIGURES))), [2], [], [0.5]))
    missing = {name for name, value in zip(FIGURES_OF_READING, one, strict=True) if np.isnan(value)}
    assert missing == {f"{part} boundary" for part in ("mean", "least", "most", "deviation")}


def test_a_sentence_without_tokens_changes_no_loss():
    losses = np.full((3, len(FIGURES)), 2.0)
    losses[1] = 0
    with_empty = figures_of_reading(reading(losses, [4, 0, 4], [0.5, 0.5], [0.5, 0.5, 0.5]))
    assert dict(zip(FIGURES_OF_READING, with_empty, strict=True))["least loss"] == 2


def test_sure_probabilities_stay_finite():
    found = figures_of_reading(reading(np.ones((2, len(FIGURES))), [1, 1], [0.0], [1.0, 0.0]))
    assert np.isfinite(found).all()


def test_states_count_less_and_can_be_left_out():
    one = features([reading(np.ones((2, len(FIGURES))), [1, 1], [0.5], [0.5, 0.5])])
    figures = len(FIGURES_OF_READING) + len(SURFACE_FIGURES)
    inputs = ReadingRegression().inputs(one)
    assert inputs.shape == (1, figures + 6)
    assert ReadingRegression(states=0.1).importance(figures + 6).tolist() == [1.0] * figures + [0.1] * 6
    assert ReadingRegression(states=0.0).inputs(one).shape == (1, figures)


def ranked(number=40):
    """Documents whose losses fall as their rating rises, in groups of ten."""
    generator = np.random.default_rng(0)
    ratings = generator.random(number)
    readings = [
        reading(5 - 3 * rating + generator.normal(size=(4, len(FIGURES))) / 5, [3] * 4, [0.5] * 3, [0.5] * 4)
        for rating in ratings
    ]
    return features(readings), ratings, np.arange(number) // 10


def test_an_outlier_is_not_worse_than_the_farthest():
    found, ratings, groups = ranked()
    model = CoherenceModel("reading", SETTINGS | {"objective.kind": "ranking"}).fit(found, ratings, groups=groups)
    assert model.score(found, ratings, groups=groups) > 0.9
    far, farther = (reading(np.full((4, len(FIGURES)), loss), [3] * 4, [0.5] * 3, [0.5] * 4) for loss in (1e3, 1e6))
    scores = model.predictions(features([far, farther, *found.readings]))[:, 0]
    assert scores[0] == scores[1] < scores[2:].min()


def test_without_a_reader_it_says_so_before_any_work():
    with refused("no-reader"):
        CoherenceModel("reading").fit(["A text.", "Another text."], ["low", "high"])
