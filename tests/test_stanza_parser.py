"""The parser on small Stanza models, as its real ones cannot be had without a network."""

from __future__ import annotations

import random
import shutil
import socket

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from material import refused
from tiny_stanza import build_tiny_stanza

from cohegraph.errors import MissingPartError
from cohegraph.text.document import Document
from cohegraph.text.stanza_parser import StanzaParser

stanza = pytest.importorskip("stanza", reason="Stanza is not installed: pip install 'cohegraph[stanza]'")

EASY = "The dog sees the cat. The cat likes Anna."
# What moves offsets in bytes, in UTF-16 or after normalising, and what Stanza takes for white space.
PIECES = ("😀", "𝒜", "e\u0301", "\r\n", "\n\n", "\t", "\x92", "\u200b", "\u2028", "  ", " ", "’", ".", "<UNK>", "x")
WORDS = ("The dog ", "sees the cat.", " Anna’s cats ", "Tom's", "Peter", "\nLondon is a city!")


@pytest.fixture(scope="session")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stanza")
    build_tiny_stanza(folder)
    return folder


@pytest.fixture(scope="module")
def parser(models):
    return StanzaParser(str(models))


def parse(parser, text):
    (document,) = parser.parse([text])
    return document


def nouns(document):
    return [(noun.text, noun.lemma, noun.tag) for sentence in document.sentences for noun in sentence.nouns]


def assert_in_place(document):
    end = 0
    for sentence in document.sentences:
        assert end <= sentence.start < sentence.end
        assert document.text[sentence.start : sentence.end] == sentence.text == sentence.text.strip()
        for noun in sentence.nouns:
            assert sentence.start <= noun.start < noun.end <= sentence.end
            assert document.text[noun.start : noun.end] == noun.text == noun.text.strip()
        end = sentence.end


def test_sentences_of_an_easy_text(parser):
    document = parse(parser, EASY)
    assert document.text == EASY
    assert [(sentence.text, sentence.words) for sentence in document.sentences] == [
        ("The dog sees the cat.", 5),
        ("The cat likes Anna.", 4),
    ]


def test_nouns_of_an_easy_text(parser):
    assert nouns(parse(parser, EASY)) == [
        ("dog", "dog", "NOUN"),
        ("cat", "cat", "NOUN"),
        ("cat", "cat", "NOUN"),
        ("Anna", "Anna", "PROPN"),
    ]


def test_lemma_of_a_plural(parser):
    assert nouns(parse(parser, "The children like dogs.")) == [("children", "child", "NOUN"), ("dogs", "dog", "NOUN")]


@pytest.mark.parametrize(
    "before", ["😀 ", "𝒜𝒜 ", "Cafe\u0301 e\u0301. ", "The bird sleeps.\r\n\r\n", "\r\n\t \r\n", "\x92"]
)
def test_offsets_count_characters(parser, before):
    document = parse(parser, before + EASY)
    assert_in_place(document)
    assert document.sentences[-1].text == "The cat likes Anna."
    assert [noun.text for noun in document.sentences[-1].nouns] == ["cat", "Anna"]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(PIECES + WORDS), max_size=12).map("".join))
def test_all_that_is_found_stands_where_it_is_said_to(parser, text):
    assert_in_place(parse(parser, text))


@pytest.mark.parametrize(
    "text",
    ["Anna's dog sleeps.", "Anna’s dog sleeps."],
    ids=["word spelled as in the token", "word spelled otherwise than in the token"],
)
def test_a_noun_in_a_contraction_stands_for_itself(parser, text):
    document = parse(parser, f"😀 {text}")
    assert_in_place(document)
    assert nouns(document) == [("Anna", "Anna", "PROPN"), ("dog", "dog", "NOUN")]


def test_a_very_long_token_keeps_its_own_spelling(parser):
    long = "dog" * 400
    document = parse(parser, f"The {long} sees the {long}.")
    assert_in_place(document)
    assert "<UNK>" not in str(nouns(document))


def test_lone_surrogates_do_not_move_offsets(parser):
    document = parse(parser, f"\udc00 {EASY}")
    assert document.text == f"\udc00 {EASY}"
    assert [document.text[noun.start : noun.end] for noun in document.sentences[-1].nouns] == ["cat", "Anna"]


@pytest.mark.parametrize("text", ["", " ", "\r\n\t\u2028\u00a0", "\n\n\n"])
def test_nothing_but_white_space_has_no_sentences(parser, text):
    assert parse(parser, text) == Document(text, ())


def test_empty_texts_keep_their_places_in_a_batch(parser):
    texts = ["", EASY, " \r\n", "Tom sees the bird.", ""] * 14
    documents = list(parser.parse(iter(texts)))
    assert [document.text for document in documents] == texts
    assert [len(document.sentences) for document in documents] == [0, 2, 0, 1, 0] * 14


def test_control_characters_alone_do_not_move_the_next_text(parser):
    # Some versions of Stanza take them for white space, unlike Python, and then find no paragraph at all.
    first, second = parser.parse(["\n\x92\n", EASY])
    assert nouns(first) == []
    assert second == parse(parser, EASY)


def test_no_texts_give_no_documents(parser):
    assert list(parser.parse([])) == []


def test_a_text_alone_is_parsed_as_in_company(parser):
    # Long paragraphs with odd ends, where the tokeniser is least sure of itself.
    chance = random.Random(0)
    ends = ["".join(chance.choices(PIECES + WORDS, k=12)) for _ in range(12)]
    texts = [EASY, *(f"{EASY} " * chance.randint(25, 60) + end for end in ends)]
    assert list(parser.parse(texts)) == [parse(parser, text) for text in texts]


def test_dependencies_come_where_they_are_asked_for(models, parser):
    with_dependencies = StanzaParser(str(models), dependencies=True)
    found = [noun.dependency for sentence in parse(with_dependencies, EASY).sentences for noun in sentence.nouns]
    words = [word for sentence in with_dependencies._pipeline(EASY).sentences for word in sentence.words]
    assert found == [word.deprel for word in words if word.upos in ("NOUN", "PROPN")]
    assert all(found)
    assert {noun.dependency for sentence in parse(parser, EASY).sentences for noun in sentence.nouns} == {""}
    assert with_dependencies.identity.endswith("+dependencies")


def test_identity_names_stanza_and_its_version(parser):
    assert parser.identity.startswith("stanza:")
    assert parser.identity.endswith(f"@{stanza.__version__}")


def test_identity_tells_models_apart_but_not_their_place(parser, models, tmp_path):
    copy = shutil.copytree(models, tmp_path / "copy")
    assert StanzaParser(str(copy)).identity == parser.identity
    weights = torch.load(copy / "en/pos/tiny.pt", weights_only=True)
    weights["model"]["upos_clf.bias"] += 1
    torch.save(weights, copy / "en/pos/tiny.pt")
    assert StanzaParser(str(copy)).identity != parser.identity


def assert_missing(folder, code="cannot-load"):
    with refused(code, MissingPartError) as caught:
        StanzaParser(str(folder))
    assert str(folder) in str(caught.value)


def test_a_missing_folder_is_not_looked_for_on_the_net(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(socket, "getaddrinfo", lambda *place, **_: asked.append(place) or [])
    assert_missing(tmp_path / "nowhere", "no-folder")
    assert asked == []


def test_an_empty_folder_holds_no_models(tmp_path):
    assert_missing(tmp_path)


def test_a_folder_with_a_cut_model_is_refused(models, tmp_path):
    copy = shutil.copytree(models, tmp_path / "copy")
    file = copy / "en/pos/tiny.pt"
    file.write_bytes(file.read_bytes()[:1000])
    assert_missing(copy)
