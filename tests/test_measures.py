"""Measures against answers worked by hand and against scikit-learn and SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn import metrics

from cohegraph.experiments.measures import (
    Run,
    SectionRuns,
    accuracy,
    adjacent_accuracy,
    average,
    calibration_error,
    draw_documents,
    estimate,
    macro_f1,
    quadratic_kappa,
    rank_correlation,
    recall_of,
)
from cohegraph.experiments.significance import compare, mcnemar

pairs = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=40)


def confusion(gold, predicted):
    return metrics.confusion_matrix(gold, predicted, labels=[0, 1, 2]).astype(float)


@given(pairs)
def test_measures_equal_scikit_learns(found):
    gold, predicted = zip(*found, strict=True)
    matrix = confusion(gold, predicted)
    assert accuracy(matrix) == pytest.approx(metrics.accuracy_score(gold, predicted))
    assert macro_f1(matrix) == pytest.approx(metrics.f1_score(gold, predicted, average="macro"))
    kappa = quadratic_kappa(matrix)
    if len(set(gold) | set(predicted)) > 1:
        assert kappa == pytest.approx(metrics.cohen_kappa_score(gold, predicted, weights="quadratic", labels=[0, 1, 2]))
    else:
        assert kappa == 0


def test_measures_by_hand():
    matrix = np.array([[3.0, 1, 0], [1, 2, 1], [2, 0, 0]])
    assert accuracy(matrix) == pytest.approx(5 / 10)
    assert adjacent_accuracy(matrix) == pytest.approx(8 / 10)
    assert recall_of(1)(matrix) == pytest.approx(2 / 4)
    # Weighted disagreement seen: 1+1+1+2*4 = 11; by chance: rows (4, 4, 2), columns (6, 3, 1), over 10 documents:
    # (4*3 + 4*1*4 + 4*6 + 4*1 + 2*6*4 + 2*3) / 10 = 11.
    assert quadratic_kappa(matrix) == pytest.approx(1 - 11 / 11)


def section(seed=0, documents=30, runs=3, levels=3, scores=True):
    generator = np.random.default_rng(seed)
    gold = generator.integers(0, levels, documents)
    made = []
    for _ in range(runs):
        chosen = np.sort(generator.choice(documents, documents // 2, replace=False))
        probabilities = generator.dirichlet(np.ones(levels), len(chosen)) + 0.8 * np.eye(levels)[gold[chosen]]
        made.append(Run(chosen, probabilities / probabilities.sum(axis=1, keepdims=True)))
    values = gold + generator.normal(size=documents) if scores else None
    return SectionRuns(gold, levels, tuple(made), values)


@pytest.mark.parametrize("measure", [accuracy, macro_f1, quadratic_kappa, adjacent_accuracy])
def test_bootstrap_equals_drawing_documents_one_by_one(measure):
    runs = section()
    weights = draw_documents(len(runs.gold), draws=25)
    found = estimate(runs, measure, weights)
    for draw, times in zip(found.draws, weights, strict=True):
        values = []
        for run in runs.runs:
            rows = np.repeat(np.arange(len(run.documents)), times[run.documents].astype(int))
            values.append(measure(confusion(runs.gold[run.documents][rows], run.predicted[rows])))
        assert draw == pytest.approx(np.mean(values))
    each = [measure(confusion(runs.gold[run.documents], run.predicted)) for run in runs.runs]
    assert found.mean == pytest.approx(np.mean(each))
    assert found.std == pytest.approx(np.std(each, ddof=1))
    assert found.low <= np.median(found.draws) <= found.high


def test_draws_are_the_same_every_time_and_sum_to_the_documents():
    first, second = draw_documents(12, seed=3), draw_documents(12, seed=3)
    assert np.array_equal(first, second)
    assert (first.sum(axis=1) == 12).all()
    assert not np.array_equal(first, draw_documents(12, seed=4))


def test_calibration_error_by_hand():
    # Two documents at confidence .65, one right; one at .95, right: |1.3 - 1| and |.95 - 1| over three documents.
    run = Run(np.array([0, 1, 2]), np.array([[0.65, 0.35], [0.65, 0.35], [0.05, 0.95]]))
    runs = SectionRuns(np.array([0, 1, 1]), 2, (run,))
    assert calibration_error(runs, np.ones((1, 3))).mean == pytest.approx((0.3 + 0.05) / 3)


def test_rank_correlation_equals_scipys():
    runs = section()
    found = rank_correlation(runs, draw_documents(len(runs.gold), draws=40))
    expected = [
        stats.spearmanr(run.probabilities @ np.arange(3), runs.scores[run.documents]).statistic for run in runs.runs
    ]
    assert found.mean == pytest.approx(np.mean(expected))
    constant = Run(np.arange(5), np.tile([0.2, 0.8], (5, 1)))
    same = SectionRuns(np.array([0, 1, 0, 1, 1]), 2, (constant,), np.arange(5.0))
    assert rank_correlation(same, draw_documents(5, draws=20)).mean == 0


def test_average_over_sections_is_the_mean_of_their_means():
    estimates = [estimate(section(seed), accuracy, draw_documents(30, seed)) for seed in (1, 2)]
    found = average(estimates)
    assert found.mean == pytest.approx(np.mean([one.mean for one in estimates]))
    assert found.low < found.mean < found.high
    assert found.high - found.low < max(one.high - one.low for one in estimates)


def test_a_level_without_documents_is_unknown_and_does_not_spoil_others():
    run = Run(np.arange(4), np.eye(3)[[0, 0, 1, 1]])
    runs = SectionRuns(np.array([0, 0, 1, 1]), 3, (run,))
    weights = draw_documents(4)
    assert np.isnan(estimate(runs, recall_of(2), weights).mean)
    assert estimate(runs, accuracy, weights).mean == 1
    assert estimate(runs, macro_f1, weights).mean == 1


def test_mcnemar_by_hand():
    # 1 of 6 differing documents: 2 * (1 + 6) / 2**6.
    assert mcnemar(1, 5) == pytest.approx(14 / 64)
    assert mcnemar(0, 0) == 1
    assert mcnemar(4, 4) == 1


def test_comparison_with_itself_and_with_something_worse():
    runs = section(documents=200, runs=2)
    weights = draw_documents(200)
    own = estimate(runs, accuracy, weights)
    same = compare(own, own, [runs], [runs])
    assert same.difference == 0
    assert same.p_bootstrap == 1
    assert same.p_mcnemar == 1
    worse_runs = SectionRuns(
        runs.gold, 3, tuple(Run(r.documents, np.roll(r.probabilities, 1, axis=1)) for r in runs.runs)
    )
    worse = compare(own, estimate(worse_runs, accuracy, weights), [runs], [worse_runs])
    assert worse.low > 0
    assert worse.p_bootstrap < 0.01
    assert worse.p_mcnemar < 0.01
    assert worse.only_first > worse.only_second
