"""A made-up text, made-up features, token vectors and entity grids, and the command as a process."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import contextmanager

import numpy as np
import pytest
from scipy import sparse

from cohegraph.errors import CohegraphError
from cohegraph.features import TALLIES, Features
from cohegraph.features.document_features import DocumentReading
from cohegraph.graph.catalogue import catalogue
from cohegraph.graph.entity_grid import EntityGrid, build_entity_grid
from cohegraph.text.reader import FIGURES
from cohegraph.text.token_sequence import TokenSequence

DIMENSIONS, CLASSES = 7, 3
COMMAND = [sys.executable, "-m", "cohegraph.cli"]
TEXT = "The keeper opens the hive. The bees leave the hive. The hive is old. Old hives hold honey. Honey is sweet."
# All that the tokenizers of small encoders know.
WORDS = (
    "the a dog cat house garden tree river runs sleeps sees likes and or in on near old small green . , ! ? it is was "
    "of to by with stone water light night day morning sentence word text one two three"
).split()


@contextmanager
def refused(code, kind=CohegraphError):
    """What is done in here fails with an error of this code, in one sentence."""
    with pytest.raises(kind) as caught:
        yield caught
    assert caught.value.code == code
    assert "\n" not in str(caught.value)


_REFUSALS = """
import json, sys
from cohegraph.cli.app import app
from cohegraph.errors import CohegraphError
found = []
for arguments in json.loads(sys.argv[1]):
    try:
        app(arguments, standalone_mode=False)
    except CohegraphError as error:
        found.append(error.code)
print(json.dumps([found, "torch" in sys.modules]))
"""


def refused_without_torch(calls):
    """The codes with which commands are refused, all in one process, which has not imported torch after the last."""
    arguments = json.dumps([[str(one) for one in call] for call in calls])
    command = [sys.executable, "-c", _REFUSALS, arguments]
    found, with_torch = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert not with_torch
    return found


def made_features(documents: int, seed: int, k: int = 4, dimensions: int = 12) -> Features:
    """Random counts, vectors and tallies; every 17th document has no subgraph."""
    random = np.random.default_rng(seed)
    patterns = len(catalogue(k))
    counts = random.poisson(0.4, (documents, patterns)) * (random.random((documents, patterns)) < 0.4)
    counts[::17] = 0
    tallies = random.integers(1, 30, (documents, len(TALLIES)))
    vectors = random.normal(size=(documents, dimensions)).astype(np.float32)
    return Features(sparse.csr_array(counts.astype(np.int64)), vectors, tallies)


def codes(notices):
    """The codes of notices."""
    return [notice.code for notice in notices]


def sequence(sentences, paragraphs=None) -> TokenSequence:
    """From one array of token vectors a sentence."""
    lengths = np.array([len(sentence) for sentence in sentences], dtype=np.int64)
    parts = np.array([len(sentences)] if paragraphs is None else paragraphs, dtype=np.int64)
    return TokenSequence(np.concatenate(sentences).astype(np.float16), lengths, parts)


def hinting_sequence(generator, code, width=10) -> TokenSequence:
    """Tokens lean towards the level's own direction, and sentences are the more alike the higher the level is."""
    common = generator.normal(size=width)
    sentences = []
    for _ in range(generator.integers(4, 9)):
        tokens = generator.normal(size=(generator.integers(2, 6), width)) + 1.5 * code * common
        tokens[:, code] += 3
        sentences.append(tokens)
    return sequence(sentences, [2, len(sentences) - 2])


def hinting_grid(generator, code) -> EntityGrid:
    """The higher the level, the more often an entity goes on, and as a subject."""
    sentences = int(generator.integers(5, 9))
    return build_entity_grid(
        sentences,
        [
            (sentence, entity, 3 if generator.random() < code / 2 else 1)
            for sentence in range(sentences)
            for entity in "abc"
            if generator.random() < 0.2 + 0.35 * code
        ],
    )


def hinting_reading(generator, code) -> DocumentReading:
    """What a reader finds: sentences of a higher level are easier to foresee, and belong more surely."""
    size = generator.integers(3, 8)
    return DocumentReading(
        tokens=generator.integers(3, 20, size),
        losses=(generator.random((size, len(FIGURES))) + 3 - code).astype(np.float32),
        boundaries=generator.random(size - 1).astype(np.float32),
        belonging=((generator.random(size) + code) / 3).astype(np.float32),
        score=generator.normal(size=1).astype(np.float32),
        states=generator.normal(size=(2, 4)).astype(np.float16),
        alone=np.zeros(0, dtype=np.float32),
    )


def path(generator, in_order: bool, sentences=8, width=10) -> TokenSequence:
    """Sentences along a path, each near its neighbours: in order, or shuffled."""
    angles = np.linspace(0, np.pi, sentences) + generator.uniform(0, 2 * np.pi)
    order = np.arange(sentences) if in_order else generator.permutation(sentences)
    turned = np.zeros((sentences, width))
    turned[:, 0], turned[:, 1] = np.cos(angles), np.sin(angles)
    return sequence([turned[row] + 0.1 * generator.normal(size=(3, width)) for row in order])


def permuted(one: TokenSequence, order) -> TokenSequence:
    """The same sentences in another order."""
    pieces = np.split(np.asarray(one.vectors), np.cumsum(one.sentences)[:-1])
    return sequence([pieces[row] for row in order], one.paragraphs)


def learnable(seed=0, documents=300):
    """Documents whose class shows weakly in their vectors and plainly in their patterns."""
    rng = np.random.default_rng(seed)
    classes = rng.integers(0, CLASSES, documents)
    rates = np.full((CLASSES, 12), 0.05)
    for c in range(CLASSES):
        rates[c, 4 * c : 4 * c + 4] = 6
    counts = sparse.csr_array(rng.poisson(rates[classes]))
    vectors = rng.normal(size=(documents, DIMENSIONS))
    vectors[np.arange(documents), classes] += 1
    return counts, vectors, classes
