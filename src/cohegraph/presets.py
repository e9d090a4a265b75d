"""Named settings: the three stacks of pretrained parts, the paper's settings and those of its released code.

A stack says which pretrained parts are used and the delta that belongs to their word vectors; a preset says all the
rest. Any preset goes with any stack: ``preset("paper-toefl", stack="compact")``.
"""

from typing import Any

from cohegraph.errors import CohegraphError
from cohegraph.settings import Settings

Changes = dict[str, Any]

# The default's delta gives GloVe 6B 50d graphs as dense as the paper's 0.65 gives GloVe 840B 300d
# (benchmarks/delta.py measures it).
STACKS: dict[str, Changes] = {
    "compact": {},
    "base": {
        "vectors.source": "glove.840B.300d.txt",
        "encoder.source": "sentence-transformers/all-mpnet-base-v2",
        "links.delta": 0.65,
    },
    "paper": {
        "parser.kind": "stanza",
        "parser.model": "en",
        "vectors.source": "glove.840B.300d.txt",
        "encoder.source": "xlnet-base-cased",
        "links.delta": 0.65,
    },
}

_PAPER_GCDC: Changes = {
    "encoder.overflow": "cut",
    "encoder.max_tokens": 512,
    "subgraphs.k": 4,
    "subgraphs.window": 8,
    "training.hidden": 240,
    "training.learning_rate": 0.01,
    "training.epochs": 160,
    "training.dropout": 0.5,
}
_PAPER_GCDC_WIDE: Changes = _PAPER_GCDC | {"training.hidden": 360, "training.learning_rate": 0.008}
_PAPER_TOEFL: Changes = _PAPER_GCDC | {
    "encoder.max_tokens": 1024,
    "subgraphs.k": 5,
    "training.learning_rate": 0.05,
    "training.epochs": 400,
}
_RELEASED: Changes = {
    "links.inclusive": True,
    "links.spelling": 0.75,
    "links.noun_form": "lemma",
    "links.min_words": 6,
    "subgraphs.patterns": "ordered",
    "corpus_graph.pmi": False,
    "corpus_graph.unseen": "released",
    "corpus_graph.too_short": "pattern",
    "training.init": "normal",
}
_RELEASED_TOEFL: Changes = (
    _PAPER_TOEFL | _RELEASED | {"training.epochs": 600, "training.input_dropout": 0.5, "training.clip": 2.0}
)

PRESETS: dict[str, Changes] = {
    "default": {},
    "paper-gcdc-clinton": _PAPER_GCDC,
    "paper-gcdc-enron": _PAPER_GCDC,
    "paper-gcdc-yahoo": _PAPER_GCDC_WIDE,
    "paper-gcdc-yelp": _PAPER_GCDC_WIDE,
    "paper-toefl": _PAPER_TOEFL,
    "released-gcdc-clinton": _PAPER_GCDC | _RELEASED,
    "released-gcdc-enron": _PAPER_GCDC | _RELEASED | {"subgraphs.window": 15},
    "released-gcdc-yahoo": _PAPER_GCDC_WIDE | _RELEASED,
    "released-gcdc-yelp": _PAPER_GCDC_WIDE | _RELEASED | {"subgraphs.window": 15, "training.hidden": 64},
    "released-toefl": _RELEASED_TOEFL,
    "released-toefl-prompt7": _RELEASED_TOEFL | {"training.learning_rate": 0.03},
}


def preset(name: str = "default", stack: str = "compact") -> Settings:
    """The settings of a named preset on a named stack."""
    for given, known, what in ((name, PRESETS, "preset"), (stack, STACKS, "stack")):
        if given not in known:
            raise CohegraphError(f"There is no {what} '{given}': choose from {', '.join(known)}.", code=f"no-{what}")
    return Settings().replaced(STACKS[stack] | PRESETS[name])
