"""What is learnt: losses worked by hand, equalities between routes, and the scale of ranks."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from material import refused
from scipy.special import expit, softmax
from sklearn.linear_model import LogisticRegression

from cohegraph.learning.calibration import Calibration
from cohegraph.learning.objectives import Levels, OrdinalLevels, Ranking, Rating, Targets, ordered_pairs, spread
from cohegraph.model.rank_scale import RankScale
from cohegraph.systems.regression import _by_gradients

OBJECTIVES = [Levels(3), OrdinalLevels(3), Rating(), Ranking()]


def targets(objective, generator, documents=12):
    if objective.outputs > 1:
        return Targets(generator.integers(0, objective.outputs, documents))
    return Targets(generator.random(documents), np.arange(documents) // 4)


def loss_of(objective, outputs, wanted, **options):
    return objective.loss(wanted, torch.float64, **options)(torch.tensor(outputs, dtype=torch.float64)).item()


def test_the_cost_of_ordered_levels_by_hand():
    """One document of the middle level of three: is it at most the first? No. At most the second? Yes."""
    probabilities = np.array([0.2, 0.5, 0.3])
    expected = -(np.log(1 - 0.2) + np.log(0.2 + 0.5)) / 2
    assert loss_of(OrdinalLevels(3), np.log(probabilities)[None], Targets(np.array([1]))) == pytest.approx(expected)


def test_a_far_miss_costs_more_than_a_near_one_where_levels_are_ordered():
    sure_of_first, sure_of_second = [[5.0, 0.0, 0.0]], [[0.0, 5.0, 0.0]]
    third = Targets(np.array([2]))
    assert loss_of(OrdinalLevels(3), sure_of_first, third) > loss_of(OrdinalLevels(3), sure_of_second, third) + 1
    assert loss_of(Levels(3), sure_of_first, third) == pytest.approx(loss_of(Levels(3), sure_of_second, third))


def test_two_ordered_levels_are_two_levels():
    generator = np.random.default_rng(0)
    outputs, wanted = generator.normal(size=(9, 2)), Targets(generator.integers(0, 2, 9))
    assert loss_of(OrdinalLevels(2), outputs, wanted) == pytest.approx(loss_of(Levels(2), outputs, wanted))


def test_the_cost_of_a_rating_by_hand():
    rating, predicted = 0.7, expit(0.4)
    expected = -(rating * np.log(predicted) + (1 - rating) * np.log(1 - predicted))
    assert loss_of(Rating(), [[0.4]], Targets(np.array([rating]))) == pytest.approx(expected)


def test_the_cost_of_a_ranking_by_hand():
    """Two groups; in the first, two pairs differ; in the second, none does; across groups nothing is compared."""
    wanted = Targets(np.array([0.1, 0.9, 0.9, 0.5, 0.5]), np.array([0, 0, 0, 1, 1]))
    outputs = [[0.0], [1.0], [-1.0], [7.0], [-7.0]]
    expected = (np.log1p(np.exp(-1.0)) + np.log1p(np.exp(1.0))) / 2
    assert loss_of(Ranking(), outputs, wanted) == pytest.approx(expected)
    assert ordered_pairs(np.array([0.0, 1.0, -1.0, 7.0, -7.0]), wanted) == 0.5
    with refused("nothing-to-rank"):
        Ranking().loss(wanted[3:], torch.float64)
    assert not Ranking().can_learn(wanted[3:])


@pytest.mark.parametrize("objective", OBJECTIVES[:3], ids=lambda one: one.kind)
@pytest.mark.parametrize("class_weights", ["none", "balanced"])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_parts_of_a_loss_add_up(objective, class_weights, weighted):
    generator = np.random.default_rng(1)
    wanted = targets(objective, generator)
    if weighted:
        wanted = Targets(wanted.values, wanted.groups, generator.random(12) + 0.1)
    outputs = torch.from_numpy(generator.normal(size=(12, objective.outputs)))
    loss = objective.loss(wanted, torch.float64, class_weights)
    parts = sum(loss(outputs[rows], rows) for rows in (slice(0, 5), slice(5, 7), slice(7, 12)))
    assert parts.item() == pytest.approx(loss(outputs).item())


@pytest.mark.parametrize("objective", OBJECTIVES, ids=lambda one: one.kind)
def test_gradients_are_those_of_differences(objective):
    generator = np.random.default_rng(2)
    wanted = targets(objective, generator, documents=8)
    outputs = torch.tensor(generator.normal(size=(8, objective.outputs)), requires_grad=True)
    assert torch.autograd.gradcheck(objective.loss(wanted, torch.float64), (outputs,))


@pytest.mark.parametrize("objective", OBJECTIVES, ids=lambda one: one.kind)
@pytest.mark.parametrize("class_weights", ["none", "balanced"])
def test_a_document_of_weight_2_counts_as_two(objective, class_weights):
    generator = np.random.default_rng(4)
    wanted, outputs = targets(objective, generator), generator.normal(size=(12, objective.outputs))
    times = generator.integers(1, 4, 12)
    rows = np.repeat(np.arange(12), times)
    weighted = Targets(wanted.values, wanted.groups, times.astype(float))
    options = {"class_weights": class_weights}
    repeated = loss_of(objective, outputs[rows], wanted[rows], **options)
    assert loss_of(objective, outputs, weighted, **options) == pytest.approx(repeated)
    assert loss_of(objective, outputs, wanted, **options) != pytest.approx(repeated)
    same = Targets(wanted.values, wanted.groups, np.full(12, 0.3))
    assert loss_of(objective, outputs, same, **options) == pytest.approx(loss_of(objective, outputs, wanted, **options))


def test_weights_follow_their_documents():
    some = Targets(np.array([0, 1]), None, np.array([2.0, 3.0]))
    assert some[1:].weights.tolist() == [3]
    assert (some + Targets(np.array([1]))).weights.tolist() == [2, 3, 1]
    assert (Targets(np.array([1])) + Targets(np.array([0]))).weights is None


@given(seed=st.integers(0, 1000), shift=st.floats(-5, 5))
def test_only_differences_count_in_a_ranking(seed, shift):
    generator = np.random.default_rng(seed)
    wanted, outputs = targets(Ranking(), generator), generator.normal(size=(12, 1))
    assert loss_of(Ranking(), outputs + shift, wanted) == pytest.approx(loss_of(Ranking(), outputs, wanted))


def test_levels_that_training_lacks_are_narrowed_away():
    objective, training = Levels(4), Targets(np.array([3, 1, 3]))
    seen = objective.seen(training)
    assert seen.tolist() == [0, 1, 0, 1]
    columns = np.flatnonzero(seen)
    assert objective.narrowed(columns) == Levels(2)
    assert objective.narrow_targets(training, columns).values.tolist() == [1, 0, 1]
    assert objective.narrow_targets(training, columns[::-1]).values.tolist() == [0, 1, 0]
    assert objective.learnable(Targets(np.array([0, 1, 2, 3])), seen).tolist() == [False, True, False, True]
    assert spread(np.array([[0.4, 0.6]]), columns, 4).tolist() == [[0, 0.4, 0, 0.6]]


def test_gradients_find_the_regression_of_scikit_learn():
    """On levels, where both can be asked."""
    generator = np.random.default_rng(0)
    inputs, classes = generator.normal(size=(80, 4)), generator.integers(0, 3, 80)
    inputs[:, 0] += classes
    coefficients, intercepts = _by_gradients(inputs, Targets(classes), Levels(3), strength=0.5)
    theirs = LogisticRegression(C=0.5, tol=1e-10, max_iter=5000).fit(inputs, classes)
    ours = softmax(inputs @ coefficients + intercepts, axis=1)
    np.testing.assert_allclose(ours, theirs.predict_proba(inputs), atol=1e-5)


@settings(max_examples=50)
@given(st.lists(st.floats(-100, 100), min_size=1, max_size=300))
def test_a_rank_scale_rises_from_0_to_1(scores):
    scale = RankScale.of(np.array(scores))
    grid = np.linspace(-110, 110, 60)
    found = scale(grid)
    assert (np.diff(found) >= 0).all()
    assert found[0] == 0
    assert found[-1] == 1


def test_a_rank_scale_gives_the_share_that_is_ranked_lower():
    scores = np.random.default_rng(0).normal(size=1000)
    scale = RankScale.of(scores)
    new = np.array([-1.0, 0.0, 0.7])
    np.testing.assert_allclose(scale(new), [(scores < one).mean() for one in new], atol=0.01)
    assert RankScale.of(np.zeros(50))(np.zeros(1))[0] == 0.5


def test_probabilities_of_levels_around_a_rating():
    assert Calibration().of_levels(0.5, (1 / 3, 2 / 3)) == []
    found = Calibration(documents=100, spread=0.1).of_levels(0.5, (1 / 3, 2 / 3))
    assert found[1] == max(found)
    assert found[0] == pytest.approx(found[2])
    assert sum(found) == pytest.approx(1)
    generator = np.random.default_rng(0)
    ratings = generator.random(5000)
    fitted = Calibration.of_ratings(ratings + 0.2 * generator.normal(size=5000), ratings)
    assert fitted.spread == pytest.approx(0.2, abs=0.01)
