"""Discourse connectives: which there are, what they mean, and whether they look back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cohegraph.text.connectives import _ENTRIES, SENSES, connectives_of
from cohegraph.text.document import Sentence

ENTRIES = [entry for entries in _ENTRIES.values() for entry in entries]


def found(text, start=0):
    return connectives_of(Sentence(text, start, start + len(text), len(text.split()), ()))


def looking_back(text):
    return [(one.text, one.sense) for one in found(text) if one.looks_back]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("However, it rained.", ("However", "contrast")),
        ("This, however, is new.", ("however", "contrast")),
        ("But it rained.", ("But", "contrast")),
        ("“But it rained,” she said.", ("But", "contrast")),
        ("On the other hand, trains are fast.", ("On the other hand", "contrast")),
        ("We saw, though, that it worked.", ("though", "contrast")),
        ("It did not help, though.", ("though", "contrast")),
        ("It is therefore late.", ("therefore", "cause")),
        ("As a result, they left.", ("As a result", "cause")),
        ("So we left.", ("So", "cause")),
        ("For he knew the town.", ("For", "cause")),
        ("Then the train came.", ("Then", "time")),
        ("He then went home.", ("then", "time")),
        ("After that, nobody came.", ("After that", "time")),
        ("After that he slept.", ("After that", "time")),
        ("Since then it has rained.", ("Since then", "time")),
        ("Meanwhile the others ate.", ("Meanwhile", "time")),
        ("It also has a garden.", ("also", "addition")),
        ("Moreover, it is cheap.", ("Moreover", "addition")),
        ("First, mix the flour.", ("First", "addition")),
        ("Otherwise it would fail.", ("Otherwise", "condition")),
        ("Dogs, for example, bark.", ("for example", "example")),
        ("In other words, it failed.", ("In other words", "restatement")),
        ("IN FACT, IT FAILED.", ("IN FACT", "restatement")),
        ("And yet it moves.", ("And yet", "contrast")),
    ],
)
def test_connectives_that_look_back(text, expected):
    assert looking_back(text) == [expected]


def test_both_words_count_after_and_or_but():
    assert looking_back("And therefore we left.") == [("And", "addition"), ("therefore", "cause")]


@pytest.mark.parametrize(
    "text",
    [
        "Because it rained, we left.",
        "We left because it rained.",
        "Although it rained, we stayed.",
        "We stayed, while the others left.",
        "If it rains, we stay.",
        "It rained; however, we stayed.",
        "It rained, and therefore we left.",
        "It rained before we left.",
        "The bus is late, that is, not here yet.",
    ],
)
def test_connectives_within_a_sentence_do_not_look_back(text):
    assert [one.looks_back for one in found(text)] == [False]


@pytest.mark.parametrize(
    "text",
    [
        "So much was lost.",
        "By now he had nothing but time.",
        "The First Lady spoke.",
        "First time visitors pay less.",
        "It stood there since 1990.",
        "Since 1990 it has stood there.",
        "After the war, he left.",
        "Before the war he was a baker.",
        "However hard he tried, he failed.",
        "In addition to bread, they sold cakes.",
        "As a result of the strike, trains were late.",
        "Instead of bread they sold cakes.",
        "Still waters run deep.",
        "Yet another train was late.",
        "Besides the king, nobody spoke.",
        "She looked as if she knew.",
        "And so on.",
        "Now he is old.",
        "Next week we meet.",
        "A thus far unknown painter.",
        "The others were butter and handcuffs.",
        "",
        "…",
    ],
)
def test_words_that_are_no_connectives(text):
    assert not looking_back(text)


def test_the_longest_phrase_counts():
    assert [one.text for one in found("As a result of this, they left.")] == ["As a result of this"]
    assert [one.text for one in found("They left because of the rain.")] == ["because of"]
    assert [one.text for one in found("Even though it rained, they left.")] == ["Even though"]


@pytest.mark.parametrize(
    ("text", "opposite"),
    [
        ("However, it rained.", "Therefore"),
        ("It was, however, late.", "therefore"),
        ("HOWEVER, it rained.", "THEREFORE"),
        ("We left because it rained.", "although"),
        ("It rained before we left.", "after"),
        ("If it rains, we stay.", "Unless"),
        ("Then the train came.", "Before that"),
        ("He then went home.", "previously"),
        ("For example, dogs bark.", ""),
    ],
)
def test_the_opposite_fits_the_place(text, opposite):
    assert [one.opposite for one in found(text)] == [opposite]


def test_places_are_those_in_the_document():
    (one,) = found("This, however, is new.", start=100)
    assert (one.start, one.end) == (106, 113)


def test_the_list():
    assert len({entry.name for entry in ENTRIES}) >= 120
    assert {entry.sense for entry in ENTRIES} == set(SENSES)
    assert all(entry.name == entry.name.lower() for entry in ENTRIES)
    # The opposite of a phrase is another phrase, and has another sense unless it turns the order of events around.
    senses = {entry.name: {other.sense for other in ENTRIES if other.name == entry.name} for entry in ENTRIES}
    for entry in ENTRIES:
        assert entry.opposite != entry.name
        turned_around = ("time", "condition", "addition")
        assert entry.sense in turned_around or entry.sense not in senses.get(entry.opposite, set()), entry


PIECES = st.sampled_from([entry.name for entry in ENTRIES] + ["It", "rained", ",", ";", ".", "“", "and", "1990", "’"])


@given(st.lists(PIECES, max_size=12), st.integers(0, 5), st.booleans())
def test_what_is_found_stands_in_the_text(pieces, start, capitals):
    text = " ".join(pieces)
    text = text.upper() if capitals else text
    whole = "x" * start + text
    last = start
    for one in found(text, start):
        assert whole[one.start : one.end] == one.text
        assert one.start >= last
        assert one.sense in SENSES
        assert one.opposite[:1].isupper() == (one.text[:1].isupper() and one.opposite != "")
        last = one.end


@given(st.text(max_size=60))
def test_any_text_can_be_read(text):
    assert all(one.text for one in found(text))


@pytest.mark.parametrize(
    "text",
    ["Orders were given that he should go.", "She was provided that book.", "They sold goods as though they were new."],
)
def test_words_that_only_look_like_connectives(text):
    assert not connectives_of(Sentence(text, 0, len(text), 0, ()))
