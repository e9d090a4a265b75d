"""One value for every choice, and the named ones."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import pytest
from material import refused

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
    ("name", "value", "code"),
    [
        ("subgraphs.k", 7, "bad-setting"),
        ("subgraphs.k", "many", "bad-setting"),
        ("subgraphs", {"k": 4, "window": 3}, "bad-setting"),
        ("links.delta", 1.5, "bad-setting"),
        ("links.linkers", ["nouns", "nouns"], "bad-setting"),
        ("training.seed", 1.5, "bad-setting"),
        ("objective.range", [1, 0], "bad-setting"),
        ("objective.range", [0, math.inf], "bad-setting"),
        ("objective.range", [math.nan, 1], "bad-setting"),
        ("objective.range", [False, 5], "bad-setting"),
        ("objective.range", [-1.7e308, 1.7e308], "bad-setting"),
        ("links.thresholds", {"nouns": 0.5}, "bad-setting"),
        ("links.thresholds", {"verbs": 0.5}, "bad-setting"),
        ("objective.thresholds", [0.6, 0.3], "bad-setting"),
        ("subgraph.k", 5, "no-setting"),
        ("subgraphs.size", 5, "no-setting"),
        ("subgraphs", 5, "bad-setting"),
        ("subgraphs.k.x", 5, "no-setting"),
    ],
)
def test_bad_values_are_named(name, value, code):
    with refused(code) as caught:
        Settings().replaced({name: value})
    assert name.split(".")[0] in str(caught.value)


def test_a_window_holds_a_subgraph():
    with refused("bad-setting"):
        Settings().replaced({"subgraphs.window": 3})
    assert Settings().replaced({"subgraphs.window": 4}).subgraphs.window == 4


def test_unknown_names():
    with refused("no-preset"):
        preset("best")
    with refused("no-stack"):
        preset("default", "large")


def test_changes_are_read_from_text():
    assert parse_change("subgraphs.k=5") == ("subgraphs.k", 5)
    assert parse_change("vectors.source=my file.txt") == ("vectors.source", "my file.txt")
    assert parse_change("training.clip=null") == ("training.clip", None)
    with refused("bad-setting"):
        parse_change("subgraphs.k")


def test_the_documentation_names_every_setting_and_preset():
    page = (Path(__file__).parents[1] / "docs" / "settings.md").read_text("utf-8")
    defaults = dict(re.findall(r"(?m)^\| `([\w.]+)` \| `([^`]*)` \|", page))
    assert {name: parse_change(f"{name}={value}")[1] for name, value in defaults.items()} == preset().flat()
    assert not [name for name in PRESETS if f"| `{name}` |" not in page]


def test_dotted_names_and_commas():
    dotted = Settings.from_dict({"objective.kind": "rating", "objective.range": "1, 5", "links": {"inclusive": True}})
    assert dotted == Settings.from_dict(
        {"objective": {"kind": "rating", "range": [1, 5]}, "links": {"inclusive": True}}
    )
    with refused("bad-setting"):
        Settings.from_dict({"links": {"linkers": ["caps"], "thresholds": {"caps": False}}})
