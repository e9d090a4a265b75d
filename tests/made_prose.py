"""Made-up prose, and doubles of a parser and an encoder that need no pretrained part."""

from __future__ import annotations

import itertools
import re
from random import Random

import numpy as np

from cohegraph.corpora.corruptions import Piece
from cohegraph.text.document import Document, Noun, Sentence
from cohegraph.text.encoder import Encoded

NAMES = ("Anna", "Bruno", "Clara")


def parsed(text):
    """A parser double: sentences end with a full stop before white space; capitalised words of NAMES are names."""
    sentences = []
    for found in re.finditer(r"\S.*?\.(?=\s|$)", text, re.DOTALL):
        nouns = tuple(
            Noun(name.group(), name.group(), found.start() + name.start(), found.start() + name.end(), "PROPN")
            for name in re.finditer("|".join(NAMES), found.group())
        )
        words = len(found.group().split())
        sentences.append(Sentence(found.group(), found.start(), found.end(), words, nouns))
    return Document(text, tuple(sentences))


def piece_of(text, id="s/w/0", work="s/w", source="s"):
    return Piece.of(parsed(text), id, work=work, source=source)


def made_up(random, label, sentences):
    """A text of sentences that occur nowhere else, of very different lengths, in paragraphs."""
    parts = []
    for number in range(sentences):
        words = ["stone"] * int(random.lognormvariate(1.8, 0.6)) + ["tree"] * random.randrange(3)
        names = " and ".join(random.sample(NAMES, 2)) if number % 2 else ""
        parts.append(f"Text {label} number {number} {names} {' '.join(words)} ends.".replace("  ", " "))
        parts.append(random.choice([" ", " ", "\n\n"]))
    return "".join(parts[:-1])


def corpus(seed=0, sources=3, works=4, pieces=5):
    """Pieces of works of sources."""
    random = Random(seed)
    found = []
    for source, work, number in itertools.product(range(sources), range(works), range(pieces)):
        id = f"s{source}/w{work}/{number}"
        text = made_up(random, id.replace("/", "-"), random.randint(6, 16))
        found.append(piece_of(text, id, f"s{source}/w{work}", f"s{source}"))
    return found


class ParserDouble:
    """Parses as `parsed` does."""

    identity = "double"

    def parse(self, texts):
        return map(parsed, texts)


class EncoderDouble:
    """Vectors that depend on the words of a text."""

    identity, dimensions = "double", 8

    def __init__(self, *_, **__):
        pass

    def encode(self, texts):
        vectors = [np.random.default_rng(list(text.encode())).normal(size=8) for text in texts]
        none = np.zeros(len(texts), dtype=np.int64)
        return Encoded(np.array(vectors, dtype=np.float32).reshape(-1, 8), none, none)
