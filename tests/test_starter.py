"""The corpus and the model inside the package."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter, defaultdict

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from cohegraph.corpora.corpus import LEVELS
from cohegraph.corpora.starter import hold_out_topics, starter_corpus
from cohegraph.models.starter import NOTE, STARTER


def by_topic(starter):
    topics = defaultdict(dict)
    for one in starter:
        topics[one.group][one.label] = one.text
    return topics


def words(text):
    return re.findall(r"[\w'-]+", text.lower())


def sentences(text):
    return re.findall(r"[^.?!]+[.?!]", text)


def test_thirty_topics_in_three_versions(starter):
    assert len(starter) == 90
    assert len({one.text for one in starter}) == 90
    assert all(set(versions) == set(LEVELS) for versions in by_topic(starter).values())
    assert Counter(one.label for one in starter) == dict.fromkeys(LEVELS, 30)


def test_the_versions_of_a_topic_are_equal_in_length_and_close_in_vocabulary(starter):
    for versions in by_topic(starter).values():
        counts = {len(sentences(text)) for text in versions.values()}
        assert len(counts) == 1
        assert 8 <= counts.pop() <= 14
        lengths = [len(words(text)) for text in versions.values()]
        assert max(lengths) <= 1.05 * min(lengths)
        for level, text in versions.items():
            others = {word for other, rest in versions.items() if other != level for word in words(rest)}
            assert sum(word in others for word in words(text)) > 0.6 * len(words(text))


def test_length_does_not_give_the_level_away(starter):
    figures = []
    for one in starter:
        lengths = [len(words(sentence)) for sentence in sentences(one.text)]
        letters = [len(word) for word in words(one.text)]
        figures.append([sum(lengths), len(lengths), np.mean(lengths), np.std(lengths), np.mean(letters)])
    model = make_pipeline(StandardScaler(), LogisticRegression())
    labels, groups = [one.label for one in starter], [one.group for one in starter]
    accuracy = cross_val_score(model, figures, labels, groups=groups, cv=GroupKFold(10)).mean()
    assert accuracy < 0.45


def test_the_parser_finds_the_sentences_that_are_there(starter, starter_features):
    found = starter_features.tally("sentences")
    written = np.array([len(sentences(one.text)) for one in starter])
    assert (found == written).mean() > 0.95


def test_links_grow_with_the_level(starter, starter_features):
    links = starter_features.tally("links")
    low, medium, high = (links[[one.label == level for one in starter]].mean() for level in LEVELS)
    assert low < 0.6 * medium < 0.6 * 0.6 * high


def test_the_shipped_model_fits_its_corpus_and_is_small(starter, shipped, starter_features):
    assert sum(file.stat().st_size for file in STARTER.folder.iterdir()) < 1_000_000
    assert shipped.score(starter_features, [one.label for one in starter]) > 0.95
    assert shipped.name_ == STARTER.name
    assert shipped.note_ == NOTE
    assert " ".join(NOTE.split()) in " ".join((STARTER.folder / "README.md").read_text("utf-8").split())


def test_topics_are_held_out_whole():
    training, held_out = hold_out_topics(starter_corpus())
    assert (len(training), len(held_out)) == (72, 18)
    assert not set(training.groups) & set(held_out.groups)


def test_an_unknown_ready_made_model_is_refused():
    command = [sys.executable, "-m", "cohegraph.models", "zzz"]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    assert answer.returncode == 2
    assert STARTER.name in answer.stderr
    assert len(answer.stderr.splitlines()) == 1
