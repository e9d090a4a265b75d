"""One value for every choice, and the named ones."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cohegraph.errors import CohegraphError
from cohegraph.presets import PRESETS, STACKS, preset
from cohegraph.settings import Settings, parse_change


@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_survives_json(name, stack):
    settings = preset(name, stack)
    assert Settings.from_dict(json.loads(json.dumps(settings.to_dict()))) == settings


def test_the_papers_settings():
    clinton, yahoo, toefl = (preset(f"paper-{name}", "paper") for name in ("gcdc-clinton", "gcdc-yahoo", "toefl"))
    assert (clinton.subgraphs.k, clinton.subgraphs.window, clinton.links.delta) == (4, 8, 0.65)
    assert (clinton.training.hidden, clinton.training.learning_rate, clinton.training.epochs) == (240, 0.01, 160)
    assert (yahoo.training.hidden, yahoo.training.learning_rate) == (360, 0.008)
    assert (toefl.subgraphs.k, toefl.training.hidden, toefl.training.learning_rate) == (5, 240, 0.05)
    assert (toefl.training.epochs, toefl.encoder.max_tokens, clinton.encoder.max_tokens) == (400, 1024, 512)
    assert clinton.subgraphs.patterns == "isomorphic"
    assert clinton.corpus_graph.pmi
    assert (clinton.parser.kind, clinton.encoder.source) == ("stanza", "xlnet-base-cased")


def test_the_released_codes_settings():
    paper, released = preset("paper-gcdc-yelp", "paper"), preset("released-gcdc-yelp", "paper")
    changed = {name for name, value in released.flat().items() if paper.flat()[name] != value}
    assert changed == {
        "links.inclusive", "links.spelling", "links.noun_form", "links.min_words", "subgraphs.patterns",
        "subgraphs.window", "corpus_graph.pmi", "corpus_graph.unseen", "corpus_graph.too_short", "training.init",
        "training.hidden",
    }  # fmt: skip
    seventh = preset("released-toefl-prompt7").training
    assert (seventh.epochs, seventh.learning_rate, seventh.input_dropout, seventh.clip) == (600, 0.03, 0.5, 2.0)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"subgraphs.k": 7}, "subgraphs.k is not valid"),
        ({"subgraphs.k": "many"}, "subgraphs.k is not valid"),
        ({"subgraphs.window": 3}, "cannot hold subgraphs of 4"),
        ({"links.delta": 1.5}, "links.delta is not valid"),
        ({"training.seed": 1.5}, "training.seed is not valid"),
        ({"subgraph.k": 5}, "no setting 'subgraph.k'"),
        ({"subgraphs.size": 5}, "no setting 'subgraphs.size'"),
        ({"subgraphs": 5}, "subgraphs is not valid"),
        ({"subgraphs.k.x": 5}, "no setting 'subgraphs.k.x'"),
    ],
)
def test_bad_values_are_named(changes, message):
    with pytest.raises(CohegraphError, match=message):
        Settings().replaced(changes)


def test_unknown_names():
    with pytest.raises(CohegraphError, match="no preset 'best'"):
        preset("best")
    with pytest.raises(CohegraphError, match="no stack 'large'"):
        preset("default", "large")


def test_changes_are_read_from_text():
    assert parse_change("subgraphs.k=5") == ("subgraphs.k", 5)
    assert parse_change("vectors.source=my file.txt") == ("vectors.source", "my file.txt")
    assert parse_change("training.clip=null") == ("training.clip", None)
    with pytest.raises(CohegraphError, match="NAME=VALUE"):
        parse_change("subgraphs.k")


def test_the_documentation_names_every_setting_and_preset():
    page = (Path(__file__).parents[1] / "docs" / "settings.md").read_text("utf-8")
    for name, value in preset().flat().items():
        assert (
            f"| `{name}` | `{'null' if value is None else str(value).lower() if value in (True, False) else value}` |"
            in page
        )
    for name in PRESETS:
        assert f"| `{name}` |" in page
