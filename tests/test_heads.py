"""Heads: what they say of a text, alone and in company, and their files."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import warnings
from dataclasses import asdict, replace

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from material import refused

from cohegraph.errors import CohegraphError, DamagedFileError
from cohegraph.text import heads as heads_module
from cohegraph.text.heads import Heads
from cohegraph.text.heads_network import (
    HeadsNetwork,
    HeadsShape,
    Sentences,
    Texts,
    _least_between,
    _of_boundaries,
    _of_sentences,
)
from cohegraph.text.reader import FIGURES, Reading, State

SHAPE = HeadsShape(("mean-2", "first-1"), 6, 5, hidden=16, related=4, gains=3)


def reading(sentences, seed=0):
    """What a reader and an encoder may have found."""
    random = np.random.default_rng(seed)
    losses = random.gamma(2, size=(sentences, len(FIGURES))).astype(np.float32)
    states = random.normal(size=(sentences, 2, 6)).astype(np.float32)
    vectors = random.normal(size=(sentences, 5)).astype(np.float32)
    return Reading(random.integers(1, 20, sentences), losses, states), vectors


def network(seed=0, shape=SHAPE):
    with torch.random.fork_rng([]):
        torch.manual_seed(seed)
        return HeadsNetwork(shape).eval()


@pytest.fixture(scope="module")
def heads():
    return Heads(network(), "some reader", "some encoder", {"texts": 3})


@pytest.fixture(scope="module")
def saved(heads, tmp_path_factory):
    folder = tmp_path_factory.mktemp("heads") / "saved"
    heads.save(folder)
    return folder


@pytest.fixture
def own(saved, tmp_path):
    return shutil.copytree(saved, tmp_path / "own")


def same(one, other):
    for name in ("boundaries", "belonging", "related", "gains"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert one.score == other.score


def test_a_text_is_judged_in_company_as_alone():
    texts = [Sentences.of(*reading(number, seed=number)) for number in (1, 9, 4, 2)]
    judge = network().double()
    with torch.inference_mode():
        together = judge(Texts.of(texts))
        for row, text in enumerate(texts):
            alone, size = judge(Texts.of([text])), len(text)
            torch.testing.assert_close(together.boundaries[row, : size - 1], alone.boundaries[0])
            torch.testing.assert_close(together.belonging[row, :size], alone.belonging[0])
            torch.testing.assert_close(together.related[row, :size, :size], alone.related[0])
            torch.testing.assert_close(together.scores[row], alone.scores[0])
            torch.testing.assert_close(together.gains[row, :size, :size], alone.gains[0])


def test_outputs_are_the_same_while_gradients_are_kept():
    texts, judge = Texts.of([Sentences.of(*reading(number, seed=number)) for number in (3, 8)]), network().double()
    with torch.inference_mode():
        found = judge(texts)
    torch.testing.assert_close(judge(texts).scores.detach(), found.scores.clone())


@pytest.mark.parametrize("sentences", [0, 1, 2, 7, 100])
def test_shapes(heads, sentences):
    found = heads.judge(*reading(sentences))
    assert found.boundaries.shape == (max(0, sentences - 1),)
    assert found.belonging.shape == (sentences,)
    assert found.related.shape == (sentences, sentences)
    for values in (found.boundaries, found.belonging, found.related):
        assert values.dtype == np.float32
        assert ((values >= 0) & (values <= 1)).all()
    assert np.isfinite(found.score)
    assert found.gains.dtype == np.float32
    assert found.gains.shape == (sentences, sentences)
    assert np.isfinite(found.gains).all()
    assert not np.tril(found.gains).any()


def test_the_same_digits_with_any_number_of_threads(heads):
    alone = heads.judge(*reading(40))
    torch.set_num_threads(2)
    try:
        threaded = heads.judge(*reading(40))
    finally:
        torch.set_num_threads(1)
    same(alone, threaded)


def test_sentences_without_a_token_or_a_vector(heads):
    found, vectors = reading(4)
    empty = Reading(np.zeros(4, dtype=np.int64), np.zeros_like(found.losses), np.zeros_like(found.states))
    judgement = heads.judge(empty, np.zeros_like(vectors))
    assert np.isfinite(judgement.belonging).all()
    assert np.isfinite(judgement.score)


def test_figures_of_a_document_are_means_over_tokens():
    found, vectors = reading(5)
    document = Sentences.of(found, vectors).document
    expected = [found.tokens @ found.losses[:, FIGURES.index(name)] for name in ("loss", "expected_loss")]
    total = found.tokens.sum()
    np.testing.assert_allclose(document, [expected[0] / total, expected[1] / total, np.log(total)], rtol=1e-5)


def cosine(one, other):
    return float(one @ other / max(np.linalg.norm(one) * np.linalg.norm(other), 1e-12))


def test_similarities_are_those_of_a_slow_loop():
    sizes = (7, 3, 1)
    texts = Texts.of([Sentences.of(*reading(size, seed=size)) for size in sizes])
    vectors = texts.vectors.double()
    boundaries = _of_boundaries(vectors, texts.real)
    sentences = _of_sentences(vectors @ vectors.transpose(1, 2), texts.real)
    for row, size in enumerate(sizes):
        own = vectors[row, :size].numpy()
        for place in range(size - 1):
            before, after = own[: place + 1], own[place + 1 :]
            near_before, near_after = before[-3:].sum(0), after[:3].sum(0)
            expected = [
                cosine(own[place], own[place + 1]),
                cosine(near_before, near_after),
                cosine(before.sum(0), after.sum(0)),
                cosine(near_before, after.sum(0)),
                cosine(before.sum(0), near_after),
            ]
            np.testing.assert_allclose(boundaries[row, place], expected, atol=1e-6)
        for place in range(size):
            others = [float(own[place] @ own[other]) for other in range(size) if other != place]
            expected = [
                np.mean(others) if others else 0,
                max(others, default=-1),
                own[place] @ own[place - 1] if place else 0,
                own[place] @ own[place + 1] if place + 1 < size else 0,
            ]
            np.testing.assert_allclose(sentences[row, place], expected, atol=1e-6)


def test_the_weakest_boundary_between_two_sentences():
    boundaries = torch.randn(2, 6, generator=torch.Generator().manual_seed(0))
    found = _least_between(boundaries)
    for text in range(2):
        for first in range(7):
            for second in range(7):
                expected = boundaries[text, first:second].min() if first < second else 0
                assert found[text, first, second] == expected
    assert _least_between(torch.zeros(2, 0)).tolist() == [[[0]], [[0]]]


@pytest.mark.parametrize("sentences", [9, 12, 13, 31])
def test_long_texts_are_judged_in_windows(heads, sentences, monkeypatch):
    monkeypatch.setattr(heads_module, "_WINDOW", 8)
    windows = heads_module._windows(sentences)
    assert [number for _, own, end in windows for number in range(own, end)] == list(range(sentences))
    read, vectors = reading(sentences)
    found = heads.judge(read, vectors)
    near = np.zeros((sentences, sentences), dtype=bool)
    for begin, own, end in windows:
        # Two sentences of context on either side, where the text has them.
        assert 0 <= begin <= max(own - 2, 0)
        assert min(end + 2, sentences) <= begin + 8 <= sentences
        part = [getattr(read, name)[begin : begin + 8] for name in ("tokens", "losses", "states")]
        alone = heads.judge(Reading(*part), vectors[begin : begin + 8])
        mine = slice(own - begin, end - begin)
        np.testing.assert_array_equal(found.belonging[own:end], alone.belonging[mine])
        np.testing.assert_array_equal(found.boundaries[own : min(end, sentences - 1)], alone.boundaries[mine])
        np.testing.assert_array_equal(found.related[own:end, begin : begin + 8], alone.related[mine])
        np.testing.assert_array_equal(found.gains[own:end, begin : begin + 8], alone.gains[mine])
        near[own:end, begin : begin + 8] = True
    assert not found.related[~near].any()
    assert near[np.subtract.outer(np.arange(sentences), np.arange(sentences)) == -2].all()
    assert np.isfinite(found.score)


def test_saved_heads_judge_as_before(heads, saved):
    loaded = Heads.load(saved)
    same(loaded.judge(*reading(12)), heads.judge(*reading(12)))
    assert loaded.identity == heads.identity
    assert (loaded.reader, loaded.encoder, loaded.figures) == ("some reader", "some encoder", {"texts": 3})
    assert loaded.shape == SHAPE
    assert loaded.states == (State("mean", 2), State("first", 1))
    assert Heads(network(1), "", "", {}).identity != heads.identity


def test_heads_without_gains(heads, tmp_path):
    without = Heads(network(shape=replace(SHAPE, gains=0)), "some reader", "some encoder", {})
    without.save(tmp_path / "without")
    # So are those that were written before there were gains.
    shape = {name: value for name, value in asdict(without.shape).items() if name != "gains"}
    change(tmp_path / "without", shape=shape)
    loaded = Heads.load(tmp_path / "without")
    for sentences in (0, 5):
        assert loaded.judge(*reading(sentences)).gains is None
    np.testing.assert_array_equal(loaded.judge(*reading(5)).related, heads.judge(*reading(5)).related)
    with_shape(gains=3)(tmp_path / "without")
    with refused("damaged-file", DamagedFileError):
        Heads.load(tmp_path / "without")


def change(folder, **values):
    """Change what is said about heads as somebody would who knows how they are sealed."""
    file = folder / "heads.json"
    about = json.loads(file.read_text("utf-8")) | values
    about["sha256"] = heads_module._sha256(about, (folder / "heads.safetensors").read_bytes())
    file.write_text(json.dumps(about), "utf-8")


def with_shape(**values):
    def changed(folder):
        shape = json.loads((folder / "heads.json").read_text("utf-8"))["shape"]
        change(folder, shape=shape | values)

    return changed


def other_weights(change_them):
    def changed(folder):
        from safetensors.torch import load, save

        weights = load((folder / "heads.safetensors").read_bytes())
        change_them(weights)
        content = save(weights)
        (folder / "heads.safetensors").write_bytes(content)
        change(folder)

    return changed


DAMAGE = {
    "no object": lambda folder: (folder / "heads.json").write_text("[]"),
    "cut": lambda folder: (folder / "heads.json").write_text("{"),
    "not text": lambda folder: (folder / "heads.json").write_bytes(b"\xff\xfe"),
    "deep": lambda folder: (folder / "heads.json").write_text("[" * 100_000),
    "other format": lambda folder: change(folder, format=0),
    "no format": lambda folder: change(folder, format="one"),
    "huge": with_shape(hidden=4 * 10**12),
    "huger": with_shape(hidden=4 * 10**40),
    "wider": with_shape(hidden=20),
    "odd": with_shape(hidden=17),
    "nothing": with_shape(hidden=0),
    "below nothing": with_shape(state_width=-6),
    "words": with_shape(hidden="many"),
    "no gains": with_shape(gains=0),
    "less than no gains": with_shape(gains=-1),
    "gains in words": with_shape(gains="many"),
    "no state": with_shape(states=["middle-3", "mean-1"]),
    "states are numbers": with_shape(states=[1, 2]),
    "one more": with_shape(more=1),
    "other words": lambda folder: (folder / "heads.json").write_text(
        (folder / "heads.json").read_text("utf-8").replace('"mean-2"', '"mean-1"')
    ),
    "no reader": lambda folder: change(folder, reader=None),
    "no figures": lambda folder: change(folder, figures=7),
    "weights": lambda folder: (folder / "heads.safetensors").write_bytes(b"nothing"),
    "not a number": other_weights(lambda weights: weights["mean"].fill_(torch.nan)),
    "a weight less": other_weights(lambda weights: weights.pop("mean")),
    "a weight more": other_weights(lambda weights: weights.update(more=torch.ones(1))),
}


@pytest.mark.parametrize("case", DAMAGE)
def test_damaged_heads_are_refused(own, case):
    DAMAGE[case](own)
    with refused("damaged-file", DamagedFileError):
        Heads.load(own)


def test_folders_without_heads_are_refused(own, tmp_path):
    with refused("no-heads"):
        Heads.load(tmp_path / "absent")
    with refused("no-heads"):
        Heads.load(own / "heads.json")
    change(own, format=2)
    with refused("newer-format"):
        Heads.load(own)
    (own / "heads.safetensors").unlink()
    with refused("no-heads"):
        Heads.load(own)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    place=st.floats(0, 1, exclude_max=True), value=st.integers(0, 255), name=st.sampled_from(["json", "safetensors"])
)
def test_a_changed_byte_is_refused_or_harmless(saved, tmp_path, place, value, name):
    folder = shutil.copytree(saved, tmp_path / "changed", dirs_exist_ok=True)
    file = folder / f"heads.{name}"
    content = bytearray(file.read_bytes())
    before, content[int(place * len(content))] = bytes(content), value
    file.write_bytes(content)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            Heads.load(folder)
        except CohegraphError as error:
            refusal = str(error)
        else:
            refusal = ""
    assert "\n" not in refusal
    assert refusal or name == "json" or content == before


def test_heads_load_without_the_compiler_of_torch(heads, tmp_path):
    """Its import takes seconds."""
    heads.save(tmp_path / "heads")
    program = "import pathlib, sys; from cohegraph.text.heads import Heads; Heads.load(pathlib.Path(sys.argv[1])); "
    program += "sys.exit('torch._dynamo' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program, str(tmp_path / "heads")], check=False).returncode == 0
