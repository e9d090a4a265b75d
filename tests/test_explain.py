"""Explanations: exact shares, sentences and their links, what changes would do, and how all that is shown."""

from __future__ import annotations

import json
import re
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from material import made_features, refused, refused_without_torch
from strategies import noun_tables

from cohegraph import CoherenceModel, Settings
from cohegraph.explain import render
from cohegraph.explain.arcs import draw_arcs
from cohegraph.explain.changed_texts import moved, without
from cohegraph.explain.compare import compare
from cohegraph.explain.explain import MOST_PLACES, explain, look_at, parsed
from cohegraph.explain.render import fragment, report
from cohegraph.graph.links.noun_links import NounTable, similarities
from cohegraph.text.document import Document, Sentence

CATS = (
    "The cat sat on the mat. A storm broke over the harbour. The cat slept on the mat. The mat was old and warm. "
    "Later the cat left the mat."
)


@pytest.mark.parametrize(
    "changes",
    [{}, {"corpus_graph.too_short": "pattern"}, {"corpus_graph.pmi": False, "nodes.surface": 1.0}],
)
def test_shares_sum_to_the_logits_of_200_documents(changes):
    settings = Settings().replaced({"training.epochs": 12, "training.hidden": 16, **changes})
    training, new = made_features(60, 1), made_features(200, 2)
    model = CoherenceModel(settings=settings).fit(training, ["low", "medium", "high"] * 20)
    fitted = model.fitted_
    # The columns of the network are in alphabetical order of the labels, shares in that of the levels.
    logits = fitted.network.outputs(fitted._weights(new.counts), fitted.inputs(new))
    logits = logits[:, np.argsort(fitted.columns)]
    for row in range(len(new)):
        found = fitted.shares(new[row : row + 1])
        assert len(found.patterns) == len(found.of_patterns) == len(found.weights)
        assert np.abs(found.of_patterns.sum(axis=0) + found.of_text - logits[row]).max() <= 1e-6
        # The same sum, share by share, in twice the precision.
        again = found.of_patterns.astype(np.float64).sum(axis=0) + found.of_text
        assert np.abs(again - logits[row]).max() <= 1e-6 * max(1, np.abs(logits[row]).max())


def test_a_share_is_what_the_closed_form_says():
    """One pattern, worked by hand from Algorithm 3."""
    from cohegraph.systems.gcn.network import TrainedGCN

    w0, w1 = np.array([[1.0, -1.0]]), np.array([[2.0, 0.0], [0.0, 3.0]])
    gcn = TrainedGCN(w0, w1, pattern_sums=np.array([[0.5, 2.0]]), pattern_degrees=np.array([3.0]))
    of_patterns, of_text = gcn.shares_of_one(np.array([0]), np.array([1.0]), np.array([4.0]))
    # z = (4, -4), d = 2: the text's own state is ReLU(z) / d² = (1, 0); the pattern's is ReLU((0.5, 2) + z / √2),
    # and its share of it 1 / ((3 + 1) √2).
    assert of_text == pytest.approx([2.0, 0.0])
    state = np.maximum([0.5 + 4 / 2**0.5, 2 - 4 / 2**0.5], 0) / (4 * 2**0.5)
    assert of_patterns[0] == pytest.approx([2 * state[0], 3 * state[1]])


def _document(text: str) -> Document:
    spans = [match.span() for match in re.finditer(r"[^.\s][^.]*\.", text)]
    return Document(text, tuple(Sentence(text[start:end], start, end, 1, ()) for start, end in spans))


def test_a_sentence_is_taken_out_with_one_gap():
    document = _document("One. Two.\n\nThree. Four.")
    assert without(document, 0) == "Two.\n\nThree. Four."
    assert without(document, 1) == "One.\n\nThree. Four."
    assert without(document, 2) == "One. Two.\n\nFour."
    assert without(document, 3) == "One. Two.\n\nThree."
    assert without(_document("One."), 0) == ""


def test_a_sentence_is_moved():
    document = _document("One. Two.\n\nThree. Four.")
    assert moved(document, 3, 0) == "Four. One. Two.\n\nThree."
    assert moved(document, 0, 3) == "Two.\n\nThree. Four. One."
    assert moved(document, 0, 1) == "Two. One.\n\nThree. Four."
    assert moved(document, 2, 1) == "One. Three. Two.\n\nFour."


@given(st.integers(2, 9), st.data())
def test_changed_texts_keep_all_other_sentences_in_order(count, data):
    names = [f"S{number}." for number in range(count)]
    gaps = data.draw(st.lists(st.sampled_from([" ", "\n\n", "  "]), min_size=count - 1, max_size=count - 1))
    document = _document("".join(part for pair in zip(names, [*gaps, ""], strict=True) for part in pair))
    sentence = data.draw(st.integers(0, count - 1))
    place = data.draw(st.integers(0, count - 1))
    rest = [name for number, name in enumerate(names) if number != sentence]
    assert without(document, sentence).split() == rest
    assert moved(document, sentence, place).split() == [*rest[:place], names[sentence], *rest[place:]]


@given(noun_tables())
def test_similarities_are_the_best_cosines(nouns: NounTable):
    for sentence in range(nouns.size):
        found = similarities(nouns, sentence)
        for other in range(nouns.size):
            pairs = [
                1.0 if nouns.word[i] == nouns.word[j] else nouns.vectors[nouns.word[i]] @ nouns.vectors[nouns.word[j]]
                for i in np.flatnonzero(nouns.sentence == sentence)
                for j in np.flatnonzero(nouns.sentence == other)
            ]
            best = 0.0 if other == sentence else max([0.0, *pairs])
            assert found[other] == pytest.approx(best, abs=1e-5)


def test_sentences_links_and_what_hangs_loose(shipped):
    found = shipped.explain(CATS, what_if=0)
    assert [one.text for one in found.sentences] == [one.strip() + "." for one in CATS.split(".")[:-1]]
    assert all(found.text[one.start : one.end] == one.text for one in found.sentences)
    assert [one.loose for one in found.sentences] == [False, True, False, False, False]
    assert {(link.source, link.target) for link in found.links} == {
        (1, 3), (1, 4), (1, 5), (3, 4), (3, 5), (4, 5)
    }  # fmt: skip
    first = found.links[0]
    assert (first.kind, first.source_words, first.target_words, first.strength) == ("nouns", "cat", "cat", 1.0)
    assert [one.links for one in found.sentences] == [3, 0, 3, 3, 3]
    assert found.loosest[0] == 2
    assert found.sentences[1].connection == min(one.connection for one in found.sentences)
    assert all(one.what_if is None for one in found.sentences)


def test_the_verdict_is_that_of_assess(shipped):
    (assessed,) = shipped.assess([CATS])
    found = shipped.explain(CATS, what_if=0)
    assert found.verdict.level == assessed.level
    assert list(found.verdict.probabilities.values()) == list(assessed.probabilities.values())
    low, medium, high = assessed.probabilities.values()
    assert found.verdict.score == pytest.approx(50 * medium + 100 * high)
    assert found.notices == list(assessed.notices)
    assert found.counts == assessed.counts
    logits = np.array(list(found.shares.logits.values())) / shipped.calibration_.temperature
    assert np.exp(logits) / np.exp(logits).sum() == pytest.approx([low, medium, high], abs=1e-6)


def test_shares_of_an_explanation_sum_to_its_logits(shipped, starter):
    for one in starter[::9]:
        shares = shipped.explain(one.text, what_if=0).shares
        for level, logit in shares.logits.items():
            assert shares.text[level] + sum(share.logits[level] for share in shares.patterns) == pytest.approx(
                logit, abs=1e-5
            )


def test_changes_are_really_rescored(shipped):
    found = shipped.explain(CATS, what_if=[2, 5])
    tried = [one.number for one in found.sentences if one.what_if is not None]
    assert tried == [2, 5]
    document = parsed(shipped, CATS)
    (removed,) = shipped.assess([without(document, 1)])
    assert found.sentences[1].what_if.removed.probabilities == {
        str(level): value for level, value in removed.probabilities.items()
    }
    scores = {}
    for place in (0, 2, 3, 4):
        (verdict,) = shipped.assess([moved(document, 1, place)])
        scores[place] = 50 * verdict.probabilities["medium"] + 100 * verdict.probabilities["high"]
    best = found.sentences[1].what_if.moved
    assert best.places == 4
    assert best.verdict.score == pytest.approx(max(scores.values()))
    assert best.to - 1 == max(scores, key=scores.get)


def test_how_many_sentences_are_tried(shipped):
    found = shipped.explain(CATS, what_if=1)
    assert [one.number for one in found.sentences if one.what_if is not None] == found.loosest[:1]
    with refused("no-such-sentence"):
        shipped.explain(CATS, what_if=[9])


def test_of_many_places_those_with_most_connection_are_tried(shipped):
    rows = ["Rain fell all day long.", *("It was so." for _ in range(30)), "The rain ended.", "Snow came."]
    text = " ".join(rows)
    seen = look_at(shipped, parsed(shipped, text))
    changes = seen.changes(0)
    assert len(changes) == MOST_PLACES + 1
    assert {30, 31, 32} <= {change.place for change in changes}


@pytest.mark.parametrize("text", ["", "   ", "One.", "😀", "\ud800", "Run! Go! Now!", "x" * 3000])
def test_odd_texts_are_explained(shipped, text):
    found = shipped.explain(text)
    assert json.loads(json.dumps(found.to_dict()))["levels"] == ["low", "medium", "high"]
    ElementTree.fromstring(draw_arcs(found))
    assert report(found).count('class="explanation"') == 1
    if len(found.sentences) < 2:
        assert all(one.what_if is None or one.what_if.removed is None for one in found.sentences)


def test_a_very_long_text_is_explained(shipped):
    text = "The dog saw a tree near the river. " * 1500
    found = shipped.explain(text, what_if=0)
    assert len(found.sentences) == 1500
    ElementTree.fromstring(draw_arcs(found))


def test_any_system_is_explained(starter_features, starter, shipped):
    texts = [one.text for one in starter]
    model = CoherenceModel("surface", shipped.settings_, levels=["low", "medium", "high"])
    model.fit(starter_features, [one.label for one in starter])
    found = model.explain(texts[0], what_if=1)
    assert found.shares is None
    assert found.neighbours is None
    assert found.verdict.score is not None
    assert 'class="shares"' in fragment(shipped.explain(texts[0], what_if=0))
    assert 'class="shares"' not in fragment(found)


def test_levels_without_an_order_have_no_score(starter_features, starter, shipped):
    names = {"low": "red", "medium": "green", "high": "blue"}
    model = CoherenceModel(settings=shipped.settings_).fit(starter_features, [names[one.label] for one in starter])
    found = model.explain(CATS, what_if=1)
    assert found.verdict.score is None
    assert found.sentences[1].what_if.moved is not None
    assert model.assess([CATS])[0].to_dict()["score"] is None
    assert 'role="meter"' in report(shipped.explain(CATS, what_if=0))
    assert 'role="meter"' not in report(found)


def test_training_documents_that_connect_alike(shipped, starter, tmp_path):
    text = next(one for one in starter if one.label == "low").text
    nearest = shipped.explain(text, what_if=0).neighbours
    assert nearest[0].similarity == pytest.approx(1.0)
    assert [one.similarity for one in nearest] == sorted((one.similarity for one in nearest), reverse=True)
    assert all(one.text is None for one in nearest)
    assert not shipped.explain("One sentence alone.", what_if=0).neighbours


def test_a_comparison_by_hand(shipped):
    before = shipped.explain(CATS, what_if=0)
    changed = "The cat sat on the mat. The cat slept on the warm mat. The mat was old and warm. A dog barked. " + (
        "Later the cat left the mat."
    )
    found = compare(before, shipped.explain(changed, what_if=0))
    assert found.kept == [(1, 1), (4, 3), (5, 5)]
    assert found.reworded == [(3, 2)]
    assert (found.added, found.removed) == ([4], [2])
    assert not found.lost_links
    assert {(link.source, link.target) for link in found.new_links} <= {(n, 4) for n in (1, 2, 3)} | {(4, 5)}
    same = compare(before, before)
    assert (same.score_change, same.new_links, same.lost_links, same.added, same.removed) == (0.0, [], [], [], [])


def test_sentences_in_another_order_keep_their_links(shipped):
    text = "The cat sat. The dog saw the cat. The moon rose."
    turned = "The moon rose. The dog saw the cat. The cat sat."
    found = compare(shipped.explain(text, what_if=0), shipped.explain(turned, what_if=0))
    assert found.kept == [(1, 3), (2, 2), (3, 1)]
    assert (found.new_links, found.lost_links, found.reworded) == ([], [], [])


MEAN = '<script>alert("x")</script> sat on the mat & <img src=x onerror=alert(1)>. The mat is "old". A third mat.'


def test_nothing_of_a_text_becomes_markup(shipped):
    found = shipped.explain(MEAN)
    picture = draw_arcs(found)
    ElementTree.fromstring(picture)
    for page in (picture, fragment(found), report(found, MEAN)):
        assert "<script>alert" not in page
        assert "<img" not in page


def test_a_report_needs_nothing_but_itself(shipped):
    page = report(shipped.explain(CATS))
    assert not re.search(r"(?:src|href)=", page)
    assert set(re.findall(r"https?://[^\"' ]+", page)) == {"http://www.w3.org/2000/svg"}
    assert page.count('data-state="loose"') == 1
    assert page.count('data-change="removed"') == 5


def test_the_picture_tells_by_shape_and_width_too(shipped):
    picture = ElementTree.fromstring(draw_arcs(shipped.explain(CATS, what_if=0)))
    space = "{http://www.w3.org/2000/svg}"
    sentences = [group for group in picture.iter(f"{space}g") if "sentence" in group.get("class", "").split()]
    shapes = [next(iter(one.findall(f"{space}path")), None) is not None for one in sentences]
    assert shapes == [False, True, False, False, False]
    assert [one.get("data-sentence") for one in sentences] == ["1", "2", "3", "4", "5"]
    assert all(one.get("aria-label") for one in sentences)
    arcs = {
        (int(arc.get("data-source")), int(arc.get("data-target"))): arc
        for arc in picture.iter(f"{space}path")
        if arc.get("class") == "link"
    }
    heights = {ends: float(re.search(r"A[\d.]+ ([\d.]+)", arc.get("d"))[1]) for ends, arc in arcs.items()}
    assert heights[1, 3] < heights[1, 4] < heights[1, 5]


@pytest.fixture
def versions(tmp_path):
    """A text and an earlier version of it, as files."""
    file, earlier = tmp_path / "cats.txt", tmp_path / "earlier.txt"
    file.write_text(CATS)
    earlier.write_text(CATS.replace("A storm broke over the harbour. ", ""))
    return file, earlier


@pytest.mark.usefixtures("shipped")
def test_the_command(tmp_path, versions, run):
    file, earlier = versions
    page, picture = tmp_path / "page.html", tmp_path / "picture.svg"
    code, out, err = run("explain", file, "--html", page, "--svg", picture, "--what-if", 1)
    assert (code, out) == (0, "")
    of_page, of_picture = err.splitlines()
    assert str(page) in of_page
    assert str(picture) in of_picture
    assert "cats.txt" in page.read_text()
    ElementTree.fromstring(picture.read_text())
    code, out, err = run("explain", file, "--what-if", 1, "--against", earlier)
    assert code == 0, err
    assert "cats.txt" in out
    code, out, err = run("explain", file, "--what-if", 0, "--against", earlier, "--html", page)
    assert page.read_text().count('<article class="explanation"') == 2
    assert page.read_text().count('<section class="comparison"') == 1
    code, out, err = run("explain", file, "--what-if", 0, "--against", earlier, "--json")
    assert json.loads(out)["comparison"]["added"] == [2]
    code, out, _ = run("explain", "--json", "--what-if", 0, stdin=CATS.encode())
    assert code == 0
    found = json.loads(out)
    assert found["document"] == "standard input"
    assert 0 <= found["verdict"]["score"] <= 100


def test_bad_calls_of_the_command(tmp_path, versions, failing, one_sentence):
    file, earlier = versions
    picture = tmp_path / "picture.svg"
    for arguments, code in (
        ([tmp_path / "none.txt"], "missing-file"),
        ([tmp_path], "is-a-folder"),
        ([file, "--model", tmp_path / "none"], "no-model"),
        ([file, "--model", tmp_path], "no-model"),
        ([file, "--html", tmp_path / "no" / "page.html"], "cannot-write"),
        ([file, "--html", tmp_path], "is-a-folder"),
        ([file, "--html", file], "named-twice"),
        ([file, "--html", picture, "--svg", picture], "named-twice"),
        ([file, "--html", earlier, "--against", earlier], "named-twice"),
    ):
        assert failing("explain", *arguments, "--what-if", 0).code == code
    assert failing("explain", stdin=b"  \n").code == "missing-text"
    assert failing("explain", "essays.csv").code == "is-a-table"
    one_sentence("explain", stdin=b"  \n")
    assert {one.name for one in tmp_path.iterdir()} == {"cats.txt", "earlier.txt"}


def test_input_is_checked_before_anything_heavy_is_imported(tmp_path, versions):
    file, _ = versions
    (tmp_path / "empty.txt").write_text(" \n")
    (tmp_path / "image.png").write_bytes(b"\x89PNG\r\n\x1a\n\x00")
    wrong = {
        "missing-file": [tmp_path / "none.txt"],
        "missing-text": [tmp_path / "empty.txt"],
        "binary": [tmp_path / "image.png"],
        "is-a-folder": [file, "--html", tmp_path],
        "no-model": [file, "--model", tmp_path / "none"],
    }
    assert refused_without_torch(["explain", *arguments] for arguments in wrong.values()) == list(wrong)


def test_what_scores_changed_texts_can_be_another(shipped):
    asked = []

    def rescore(texts):
        asked.extend(texts)
        return shipped.assess(texts)

    found = explain(shipped, CATS, what_if=[1], rescore=rescore)
    assert len(asked) == 5
    assert found.sentences[0].what_if.moved.places == 4


def test_only_texts_are_explained(shipped):
    for text in (5, None, b"A dog."):
        with refused("not-a-text"):
            shipped.explain(text)
    for what_if in (["a"], [1.5]):
        with refused("bad-what-if"):
            shipped.explain(CATS, what_if=what_if)


def test_bars_add_up_to_all_that_speaks_for_and_against_a_level(shipped, starter):
    found = shipped.explain(starter[0].text, what_if=0)
    level, shares = str(found.verdict.level), found.shares
    about = render._about(found)
    shown = sum(bar.value for bars in about["sides"].values() for bar in bars)
    assert shown == pytest.approx(shares.logits[level] - np.mean(list(shares.logits.values())), abs=0.02)
    bars = [bar for bars in about["sides"].values() for bar in bars]
    assert len(bars) < len(shares.patterns), "the weaker ones are shown together"
    assert found.note
    assert found.note in report(found)
