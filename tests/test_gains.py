"""Exact gains, their files, and how heads learn to predict them. The reader is a Llama of random weights."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from made_prose import corpus, parsed, piece_of
from material import refused
from tiny_llama import write_llama

from cohegraph.reading import gains as gains_module
from cohegraph.reading.examples import Example
from cohegraph.reading.gains import (
    GainsSchedule,
    KnownGains,
    chosen_for_gains,
    correlations,
    known_gains,
    made_gains,
    remove_gains,
    with_gains,
)
from cohegraph.reading.training import REACH, Group
from cohegraph.text.heads_network import HeadsNetwork, HeadsShape, Sentences, Texts
from cohegraph.text.reader import FIGURES, exact_gains
from cohegraph.text.readers import load_reader

SHAPE = HeadsShape(("mean-1",), 8, 6, hidden=16, related=4)
SCHEDULE = GainsSchedule(epochs=60, learning_rate=1e-2, numbers=8)


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    return load_reader(str(write_llama(tmp_path_factory.mktemp("llama"), num_hidden_layers=2)), "float32")


def test_gains_are_losses_alone_minus_losses_after(reader):
    document = parsed("The dog saw a cat. The cat ran. Rain fell on the town. The dog slept there.")
    found = exact_gains(reader, document, [(2, 3), (0, 1), (0, 3)])
    alone = reader.alone(document)
    for source in range(4):
        for target in range(4):
            if (source, target) in {(0, 1), (0, 3), (2, 3)}:
                expected = alone[target] - reader.after(document, source, [target])[0]
                assert found[source, target] == pytest.approx(expected, abs=1e-5)
                assert abs(expected) > 1e-3
            else:
                assert np.isnan(found[source, target])
    assert np.isnan(exact_gains(reader, document, [])).all()
    assert exact_gains(reader, parsed(""), []).shape == (0, 0)


def test_gains_do_not_depend_on_what_else_is_asked(reader):
    document = parsed(" ".join(f"The {word} saw a cat and ran {word} times." for word in "abcdefghijkl"))
    pairs = [(u, v) for u in range(12) for v in range(u + 1, 12)]
    found = exact_gains(reader, document, pairs)
    for pair in [(0, 1), (0, 7), (0, 8), (3, 11), (10, 11)]:
        assert exact_gains(reader, document, [pair])[pair] == found[pair]


def same(one, other):
    assert list(one) == list(other)
    for id in one:
        np.testing.assert_array_equal(one[id], other[id])


def test_gains_are_those_of_near_sentences_at_the_beginning(reader, tmp_path):
    short = piece_of("One is here. Two is here. Three is there.", "s/w/0")
    long = piece_of(" ".join(f"Number {number} is here." for number in range(20)), "s/w/1")
    found = made_gains([short, long], reader, tmp_path)
    assert [gains.shape for gains in found.values()] == [(3, 3), (12, 12)]
    distance = np.subtract.outer(-np.arange(12), -np.arange(12))
    np.testing.assert_array_equal(np.isnan(found["s/w/1"]), (distance <= 0) | (distance >= REACH))
    document = parsed(" ".join(long.sentences[:12]))
    expected = exact_gains(reader, document, [(3, 4), (3, 10)])
    np.testing.assert_allclose(found["s/w/1"][3, [4, 10]], expected[3, [4, 10]], atol=1e-5)


def test_gains_are_read_once(reader, tmp_path, monkeypatch):
    monkeypatch.setattr(gains_module, "_TEXTS_AT_ONCE", 2)
    pieces, read, after = corpus(sources=1, works=5, pieces=1), [], type(reader).after
    monkeypatch.setattr(type(reader), "after", lambda *about: read.append(about[1].text) or after(*about))
    found = made_gains(pieces, reader, tmp_path / "some")
    assert set(found) == {piece.id for piece in pieces}
    files = sorted((tmp_path / "some").iterdir())
    assert len(files) == 3
    torch.set_num_threads(2)
    try:
        same(made_gains(pieces, reader, tmp_path / "threaded"), found)
    finally:
        torch.set_num_threads(1)
    assert sorted(file.name for file in (tmp_path / "threaded").iterdir()) == [file.name for file in files]
    read.clear()
    same(made_gains(pieces, reader, tmp_path / "some"), found)
    assert not read
    # What is damaged or missing is read again, and nothing else.
    files[0].write_bytes(files[0].read_bytes()[:-4])
    files[1].unlink()
    files[2].with_name(f".{files[2].name}.left").touch()
    same(made_gains(pieces, reader, tmp_path / "some"), found)
    assert 3 <= len(set(read)) <= 4
    (tmp_path / "some" / "mine.npy").touch()
    remove_gains(tmp_path / "some")
    assert [file.name for file in (tmp_path / "some").iterdir()] == ["mine.npy"]


def test_an_interrupted_run_keeps_what_it_has_read(reader, tmp_path, monkeypatch):
    monkeypatch.setattr(gains_module, "_TEXTS_AT_ONCE", 2)
    pieces, exact, read = corpus(sources=1, works=5, pieces=1), exact_gains, []

    def interrupted(reader, document, pairs):
        if len(read) == 3:
            raise KeyboardInterrupt
        read.append(document.text)
        return exact(reader, document, pairs)

    monkeypatch.setattr(gains_module, "exact_gains", interrupted)
    with pytest.raises(KeyboardInterrupt):
        made_gains(pieces, reader, tmp_path / "some")
    first, _ = read[:2], read.clear()
    monkeypatch.setattr(gains_module, "exact_gains", lambda *about: read.append(about[1].text) or exact(*about))
    found = made_gains(pieces, reader, tmp_path / "some")
    assert len(read) == 3
    assert not set(first) & set(read)
    same(found, made_gains(pieces, reader, tmp_path / "other"))


def test_which_texts_are_read():
    pieces = corpus(sources=2, works=3, pieces=2)
    few, more = (chosen_for_gains(pieces, number, 0) for number in (4, 9))
    assert few == more[:4] == chosen_for_gains(pieces[::-1], 4, 0)
    assert few != chosen_for_gains(pieces, 4, 1)
    assert len(chosen_for_gains(pieces, 100, 0)) == len(pieces)
    assert chosen_for_gains(pieces, 0, 0) == []


def made_texts(number, seed, *, sentences=6):
    """Texts in which the gain of two sentences follows from the first numbers of their states."""
    random, found = np.random.default_rng(seed), []
    for _ in range(number):
        states = random.normal(size=(sentences, 8)).astype(np.float32) * np.float32([4, *[1] * 7])
        vectors = random.normal(size=(sentences, 6)).astype(np.float32)
        figures = random.gamma(2, size=(sentences, len(FIGURES) + 1)).astype(np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        gains = (0.2 + 0.02 * (states[:, :1] + states[:, 0])).astype(np.float32)
        gains[np.tril_indices(sentences)] = np.nan
        found.append(KnownGains(Sentences(states, figures, vectors), gains[:5, :5]))
    return found


def network(seed=0):
    with torch.random.fork_rng([]):
        torch.manual_seed(seed)
        return HeadsNetwork(SHAPE)


def test_gains_are_learnt_and_nothing_else_changes():
    before = network().eval()
    found = with_gains(before, made_texts(60, 0), SCHEDULE, 0)
    assert found.shape.gains == 8
    assert before.shape.gains == 0
    pearson, spearman = correlations(found, made_texts(40, 1))
    assert pearson > 0.8
    assert spearman > 0.8
    own, others = before.state_dict(), found.state_dict()
    assert all(torch.equal(own[name], others[name]) for name in own)
    assert {name.split(".")[0] for name in set(others) - set(own)} == {"gains"}
    texts = Texts.of([one.sentences for one in made_texts(3, 2)])
    assert torch.equal(before(texts).scores, found(texts).scores)
    # In nats: the mean is that of what was learnt.
    predicted = found(texts).gains[:, *np.triu_indices(6, 1)].detach()
    assert float(predicted.mean()) == pytest.approx(0.2, abs=0.1)


def test_the_same_seed_gives_the_same_gains():
    texts, few = made_texts(10, 0), GainsSchedule(epochs=2, numbers=4)
    torch.manual_seed(5)
    state = torch.get_rng_state()
    first = with_gains(network(), texts, few, 0).state_dict()
    assert torch.equal(state, torch.get_rng_state())
    torch.set_num_threads(2)
    try:
        again = with_gains(network(), texts, few, 0).state_dict()
    finally:
        torch.set_num_threads(1)
    other = with_gains(network(), texts, few, 1).state_dict()
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not torch.equal(first["gains.source.weight"], other["gains.source.weight"])


def test_texts_without_gains_do_not_count():
    texts = made_texts(2, 0)

    class Folder:
        def sentences(self, examples):
            return [texts[int(example.text)].sentences for example in examples]

    groups = [Group(Folder(), [Example(str(number), "s", "original", 0, 6)]) for number in range(2)]
    (known,) = known_gains(groups, {"1": texts[1].gains, "7": texts[0].gains})
    assert known.sentences is texts[1].sentences
    assert known.gains is texts[1].gains
    with refused("too-short"):
        with_gains(network(), [], SCHEDULE, 0)
    assert correlations(with_gains(network(), texts, GainsSchedule(epochs=1), 0), []) is None
