"""Every system keeps the same promises."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
from material import hinting_grid, hinting_reading, hinting_sequence, refused
from scipy import sparse

from cohegraph.errors import CohegraphError
from cohegraph.features import TALLIES, Features
from cohegraph.graph.catalogue import catalogue
from cohegraph.learning.objectives import Levels, OrdinalLevels, Ranking, Rating, Targets, ordered_pairs
from cohegraph.settings import CorpusGraphSettings, Settings
from cohegraph.systems.mesgar_strube_2016 import pattern_shares
from cohegraph.systems.neural import SequenceModel
from cohegraph.systems.registry import SYSTEMS, system_named
from cohegraph.systems.regression import Regression
from cohegraph.systems.system import Graded, Lesson, System

SETTINGS = Settings().replaced(
    {"training.epochs": 60, "training.hidden": 12, "training.learning_rate": 0.1, "training.choose_by": "loss"}
)
LEVELS = 3
CONNECTED = [number for number, pattern in enumerate(catalogue(4).patterns) if pattern.connected]
NOT_RANDOM = [name for name, system in SYSTEMS.items() if name in ("majority", "sgc") or issubclass(system, Regression)]


def graded(documents=60, seed=0, levels=LEVELS) -> Graded:
    """Vectors, tokens and grids that hint at the level, counts of patterns, plausible tallies."""
    generator = np.random.default_rng(seed)
    classes = generator.integers(0, levels, documents)
    vectors = generator.normal(size=(documents, 10)).astype(np.float32)
    vectors[:, :LEVELS] += 3 * np.eye(LEVELS)[classes]
    counts = generator.poisson(0.4, (documents, len(catalogue(4))))
    counts[:, CONNECTED[0]] += 3 * (classes == 1)
    counts[:, CONNECTED[1]] += 3 * (classes == 2)
    counts[0] = 0
    tallies = generator.integers(1, 40, (documents, len(TALLIES)))
    tallies[:, TALLIES.index("words")] += 100 * classes
    material = {
        "states": tuple(hinting_sequence(generator, code) for code in classes),
        "words": tuple(hinting_sequence(generator, code) for code in classes),
        "grid": tuple(hinting_grid(generator, code) for code in classes),
        "reading": tuple(hinting_reading(generator, code) for code in classes),
    }
    features = Features(sparse.csr_array(counts), vectors, tallies, {}, SETTINGS, material)
    return Graded(features, Targets(classes.astype(np.int64)))


TRAINING, DEV, TEST = graded(seed=1), graded(30, 2), graded(40, 3)


def small(name) -> System:
    """A system with small networks."""
    system = system_named(name).of(SETTINGS)
    if isinstance(system, SequenceModel):
        return system.changed({"hidden": 16, "learning_rate": 0.01, "patience": 20})
    return system


@cache
def fitted(name, seed=0, on_epoch=None):
    return small(name).fit(Lesson(TRAINING, Levels(LEVELS), DEV, seed, on_epoch))


def test_systems_are_registered_under_their_names():
    assert [system.name for system in SYSTEMS.values()] == list(SYSTEMS)


@pytest.mark.parametrize("name", SYSTEMS)
def test_probabilities(name):
    found = fitted(name).predict(TEST.features)
    assert found.shape == (40, LEVELS)
    assert np.allclose(found.sum(axis=1), 1)
    assert found.min() >= 0


@pytest.mark.parametrize("name", [name for name in SYSTEMS if name != "majority"])
def test_they_learn(name):
    found = fitted(name).predict(TEST.features)
    assert (found.argmax(axis=1) == TEST.targets.values).mean() > 0.6


@pytest.mark.parametrize("name", SYSTEMS)
def test_the_same_seed_gives_the_same_digits(name):
    again = small(name).fit(Lesson(TRAINING, Levels(LEVELS), DEV))
    first, second, other = (one.predict(TEST.features) for one in (fitted(name), again, fitted(name, 6)))
    assert np.array_equal(first, second)
    assert np.array_equal(first, other) == (name in NOT_RANDOM)


def test_the_method_without_edges_is_the_baseline():
    baseline, bare = fitted("dnn"), fitted("gcn-no-edges")
    assert baseline.parameters == bare.parameters == fitted("gcn").parameters
    assert np.allclose(baseline.predict(TEST.features), bare.predict(TEST.features), atol=1e-6)
    assert baseline.chosen == bare.chosen


def test_edges_make_a_difference():
    found = [fitted(name).predict(TEST.features) for name in ("gcn", "gcn-no-pmi", "gcn-no-edges")]
    assert not np.allclose(found[0], found[1], atol=1e-4)
    assert not np.allclose(found[1], found[2], atol=1e-4)


def test_parameters():
    dimensions, hidden = 10, 12
    assert fitted("dnn").parameters == hidden * (dimensions + LEVELS)
    assert fitted("subgraph-features").parameters == hidden * (dimensions + 31 + LEVELS)
    assert fitted("surface").parameters == 3 * 7
    assert fitted("majority").parameters == 0


def test_pattern_shares():
    shares = pattern_shares(sparse.csr_array(np.array([[1, 3], [0, 0]])))
    assert np.allclose(shares, [[0.25, 0.75], [0, 0]])


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_level_that_training_lacks_gets_no_document(name):
    training, dev = graded(levels=2), graded(20, 4, levels=2)
    found = small(name).fit(Lesson(training, Levels(LEVELS), dev)).predict(TEST.features)
    assert found.shape == (40, LEVELS)
    assert not (found.argmax(axis=1) == 2).any()


@pytest.mark.parametrize("name", SYSTEMS)
def test_of_a_level_that_only_dev_has_nothing_is_learnt(name):
    found = small(name).fit(Lesson(graded(levels=2), Levels(LEVELS), DEV)).predict(TEST.features)
    assert not found[:, 2].any()


def test_without_edges_and_a_level_the_method_is_still_the_baseline():
    training = graded(levels=2)
    first, second = (small(name).fit(Lesson(training, Levels(LEVELS), DEV)) for name in ("dnn", "gcn-no-edges"))
    assert np.allclose(first.predict(TEST.features), second.predict(TEST.features), atol=1e-6)


@pytest.mark.parametrize("name", SYSTEMS)
def test_alone_in_company_and_restored_they_give_the_same_digits(name):
    system = fitted(name)
    together = system.predict(TEST.features)
    alone = np.concatenate([system.predict(TEST.features[[row]]) for row in range(3)])
    assert np.array_equal(together[:3], alone)
    restored = small(name).restored(system.arrays(), Levels(LEVELS))
    assert np.array_equal(together, restored.predict(TEST.features))
    assert restored.parameters == system.parameters


@pytest.mark.parametrize("name", SYSTEMS)
def test_arrays_of_another_system_are_refused(name):
    arrays = dict(fitted(name).arrays())
    first = next(iter(arrays))
    for broken in ({**arrays, first: arrays[first][..., None]}, {k: v for k, v in arrays.items() if k != first}, {}):
        with pytest.raises((KeyError, ValueError, RuntimeError)):
            small(name).restored(broken, Levels(LEVELS))


@pytest.mark.parametrize("name", SYSTEMS)
def test_no_documents(name):
    assert fitted(name).predict(TEST.features[:0]).shape == (0, LEVELS)


@pytest.mark.parametrize("name", ["gcn", "dnn", "subgraph-features"])
def test_every_epoch_can_be_watched(name):
    seen = []
    system = fitted(name, on_epoch=lambda number, probabilities: seen.append((number, probabilities(TEST.features))))
    assert [number for number, _ in seen] == list(range(1, 61))
    chosen = system.chosen["training.epochs"]
    assert np.allclose(seen[chosen - 1][1], system.predict(TEST.features))


def test_hyper_parameters_can_be_changed():
    system = system_named("gcn").of(SETTINGS).changed({"training.weight_decay": 0.5, "corpus_graph.pmi": False})
    assert system.training.weight_decay == 0.5
    assert not system.corpus_graph.pmi
    assert system_named("encoder").of(SETTINGS).changed({"strength": 3}).strength == 3
    for name, change, code in (
        ("gcn", {"training.weight_decay": -1}, "bad-hyper-parameter"),
        ("gcn", {"training.speed": 1}, "no-hyper-parameter"),
        ("majority", {"strength": 1}, "no-hyper-parameter"),
    ):
        with pytest.raises(CohegraphError) as caught:
            system_named(name).of(SETTINGS).changed(change)
        assert caught.value.code == code
    with pytest.raises(CohegraphError) as caught:
        system_named("gnc")
    assert caught.value.code == "no-system"


# Other objectives: those who share their code are tried on one of them

OTHERS = ("surface", "dnn", "sgc", "gcn", "li-jurafsky-2017", "moon-2019")


def rated(part: Graded, groups: int | None = None) -> Graded:
    """The same documents with ratings, the higher the level the higher, and in groups if asked for."""
    values = part.targets.values / (LEVELS - 1)
    return Graded(part.features, Targets(values, None if groups is None else np.arange(len(values)) % groups))


@pytest.mark.parametrize("name", OTHERS)
def test_ordered_levels_are_learnt(name):
    found = small(name).fit(Lesson(TRAINING, OrdinalLevels(LEVELS), DEV)).predict(TEST.features)
    np.testing.assert_allclose(found.sum(axis=1), 1)
    assert (found.argmax(axis=1) == TEST.targets.values).mean() > 0.55


@pytest.mark.parametrize("name", OTHERS)
def test_an_ordered_level_that_training_lacks_gets_no_document(name):
    found = small(name).fit(Lesson(graded(levels=2), OrdinalLevels(LEVELS), DEV)).predict(TEST.features)
    np.testing.assert_allclose(found.sum(axis=1), 1)
    assert not (found.argmax(axis=1) == 2).any()


@pytest.mark.parametrize("objective", [Rating(), Ranking()], ids=["rating", "ranking"])
@pytest.mark.parametrize("name", OTHERS)
def test_ratings_and_ranks_are_learnt(name, objective):
    system = small(name)
    groups = 4 if objective.kind == "ranking" else None
    fitted = system.fit(Lesson(rated(TRAINING, groups), objective, rated(DEV, groups)))
    found = fitted.predict(TEST.features)
    assert found.shape == (len(TEST), 1)
    assert ordered_pairs(found[:, 0], rated(TEST).targets) > 0.7
    if objective.kind == "rating":
        assert 0 <= found.min() <= found.max() <= 1
    assert np.array_equal(system.restored(fitted.arrays(), objective).predict(TEST.features), found)


def test_without_looking_the_best_rating_is_the_mean():
    fitted = small("majority").fit(Lesson(rated(TRAINING), Rating()))
    assert np.allclose(fitted.predict(TEST.features), rated(TRAINING).targets.values.mean())


@pytest.mark.parametrize("name", ["majority", *OTHERS])
def test_what_has_no_pairs_cannot_be_ranked(name):
    size = len(TRAINING)
    for values, groups in ((np.ones(size), np.arange(size) // 10), (np.linspace(0, 1, size), np.arange(size))):
        with refused("nothing-to-rank"):
            small(name).fit(Lesson(Graded(TRAINING.features, Targets(values, groups)), Ranking()))


@pytest.mark.parametrize("name", ["dnn", "gcn", "li-jurafsky-2017"])
def test_dev_documents_without_pairs_choose_no_epoch(name):
    system = small(name)
    lonely = Graded(DEV.features, Targets(np.linspace(0, 1, len(DEV)), np.arange(len(DEV))))
    fitted = system.fit(Lesson(rated(TRAINING, 4), Ranking(), lonely))
    assert fitted.chosen.items() <= system.hyper_parameters.items()


def test_a_batch_may_be_smaller_than_a_pair():
    system = small("lai-tetreault-2018").changed({"batch": 1, "epochs": 1})
    first, second = (system.fit(Lesson(rated(part, 4), Ranking())) for part in (TRAINING, TRAINING[::-1]))
    assert not np.array_equal(first.predict(TEST.features), second.predict(TEST.features))


def test_a_new_system_needs_no_more_than_fit_and_restored():
    @dataclass(frozen=True)
    class New(System):
        corpus_graph: CorpusGraphSettings
        power: float = 2.0

        def fit(self, lesson): ...

        def restored(self, arrays, objective): ...

    changed = SETTINGS.replaced({"corpus_graph.pmi": False})
    assert New.of(changed) == New(changed.corpus_graph)
    assert New.of(changed).needs == New.of(changed).reads == frozenset()
    assert New.of(changed).fewest_sentences(changed) == 1
