"""Examples to learn from, what heads should say of them, training, and accuracy."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from made_prose import EncoderDouble, corpus, piece_of
from material import refused
from tiny_llama import write_llama

from cohegraph.corpora.corruptions import Corruption, DonorPool, Origin, Placed, Version
from cohegraph.corpora.prose import ProseText, split_by_work
from cohegraph.reading import examples as examples_module
from cohegraph.reading.accuracy import accuracy, area, area_at_equal_distance
from cohegraph.reading.examples import MIX, Example, ExampleFolder, Making, made_examples, remove_examples
from cohegraph.reading.pieces import similar_sentences, stretches
from cohegraph.reading.training import REACH, Group, Schedule, Targets, _balanced, groups_of, train
from cohegraph.text.heads_network import HeadsShape, Outputs, Sentences
from cohegraph.text.reader import FIGURES, State
from cohegraph.text.readers import load_reader

PIECE = piece_of("One is here. Two is here. Three is here. Four is here. Five is here.", "a/b/0", "a/b", "a")


def corruption(kind, *origins, donor=""):
    """A corrupted version by hand, from the texts and numbers of its sentences."""
    placed = tuple(Placed(f"{text} {number}.", Origin(text, number)) for text, number in origins)
    gaps = (" ",) * (len(placed) - 1)
    return Corruption(
        kind, donor, Version(PIECE.id, tuple(PIECE.placed(0, len(placed))), gaps), Version(PIECE.id, placed, gaps)
    )


def test_an_original_has_no_break_and_no_stranger():
    example = Example.of(PIECE, 7)
    assert (example.text, example.source, example.kind, example.start) == ("a/b/0", "a", "original", 7)
    assert (example.breaks, example.origins, example.strangers) == ((), (0,) * 5, [])
    assert example.first(3).origins == (0, 0, 0)
    assert example.first(3).sentences == 3


@pytest.mark.parametrize(
    ("made", "kind", "breaks", "origins", "strangers"),
    [
        (
            corruption("swap", ("a/b/0", 1), ("a/b/0", 0), ("a/b/0", 2)),
            "swap", (0, 1), (0, 0, 0), [],
        ),
        (
            corruption("insert", ("a/b/0", 0), ("x", 4), ("a/b/0", 1), ("y", 0), donor="source"),
            "insert:source", (0, 1, 2), (0, 1, 0, 2), [1, 3],
        ),
        (
            corruption("join", ("a/b/0", 0), ("a/b/0", 1), ("x", 3), ("x", 4), ("x", 5), donor="work"),
            "join:work", (1,), (0, 0, 1, 1, 1), [2, 3, 4],
        ),
        (
            corruption("repeat", ("a/b/0", 0), ("a/b/0", 1), ("a/b/0", 1), ("a/b/0", 2)),
            "repeat", (1,), (0, 0, 0, 0), [2],
        ),
        (
            corruption("drop", ("a/b/0", 0), ("a/b/0", 2), ("a/b/0", 3)),
            "drop", (0,), (0, 0, 0), [],
        ),
    ],
)  # fmt: skip
def test_what_is_known_of_a_corrupted_version(made, kind, breaks, origins, strangers):
    example = Example.of(PIECE, 0, made)
    assert (example.kind, example.breaks, example.origins, example.strangers) == (kind, breaks, origins, strangers)


def test_a_corrupted_version_ends_early():
    version = Example("t", "s", "interleave:source", 4, 5, (0, 2, 3), (0, 1, 1, 0, 1), (4,))
    assert version.first(4) == Example("t", "s", "interleave:source", 4, 4, (0, 2), (0, 1, 1, 0), ())


def test_cut_versions_keep_a_break():
    original = Example("t", "s", "original", 0, 12, (), (0,) * 12)
    breaks = [(place, *range(place + 2, 11)) for place in range(10)]
    corrupted = [Example("t", "s", "blocks", 12 * row, 12, some, (0,) * 12) for row, some in enumerate(breaks, 1)]
    unbroken = Example("t", "s", "repeat", 132, 12, (), (0,) * 12)
    group, random = Group(None, [original, *corrupted, unbroken]), np.random.default_rng(0)
    assert group.cut(0, random) == group
    lengths = set()
    for _ in range(100):
        whole, *found, last = group.cut(1, random).versions
        assert (whole, last) == (original, unbroken)
        for version, before in zip(found, corrupted, strict=True):
            assert 3 <= version.sentences < 12
            assert version.breaks == tuple(one for one in before.breaks if one < version.sentences - 1)
            assert version.breaks
            lengths.add(version.sentences)
    assert lengths == set(range(3, 12))
    shares = [sum(one.sentences < 12 for one in group.cut(0.5, random).versions) for _ in range(100)]
    assert 400 < sum(shares) < 600


def test_targets_by_hand():
    nan = float("nan")
    original = Example("t", "s", "original", 0, 4, (), (0,) * 4)
    inserted = Example("t", "s", "insert:source", 4, 3, (0, 1), (0, 1, 0))
    targets = Targets.of([original, inserted], 4)
    np.testing.assert_array_equal(targets.boundaries, [[1, 1, 1], [0, 0, nan]])
    np.testing.assert_array_equal(targets.belonging, [[1, 1, 1, 1], [1, 0, 1, nan]])
    assert targets.related[0].isnan().all()
    expected = np.full((4, 4), nan)
    expected[0, 1], expected[0, 2], expected[1, 2] = 0, 1, 0
    np.testing.assert_array_equal(targets.related[1], expected)


def test_sentences_that_are_far_apart_are_not_compared():
    size = REACH + 3
    related = Targets.of([Example("t", "s", "join:source", 0, size, (2,), (0,) * 3 + (1,) * (size - 3))], size).related[
        0
    ]
    for first in range(size):
        for second in range(size):
            asked = first < second < first + REACH
            assert bool(related[first, second].isnan()) != asked
            if asked:
                assert related[first, second] == float((first < 3) == (second < 3))


def test_both_answers_have_the_same_weight():
    logits = torch.zeros(1, 4)
    targets = torch.tensor([[1.0, 1.0, 1.0, 0.0]])
    even = float(_balanced(logits, targets))
    assert even == pytest.approx(np.log(2))
    wrong_once = float(_balanced(torch.tensor([[0.0, 0.0, 0.0, 2.0]]), targets))
    wrong_always = float(_balanced(torch.tensor([[-2.0, -2.0, -2.0, 0.0]]), targets))
    assert wrong_once == pytest.approx(wrong_always)
    assert float(_balanced(logits, torch.full((1, 4), torch.nan))) == 0


def made_sentences(number, seed=0):
    random = np.random.default_rng(seed)
    return Sentences(
        random.normal(size=(number, 6)).astype(np.float16),
        random.gamma(2, size=(number, len(FIGURES) + 1)).astype(np.float32),
        random.normal(size=(number, 5)).astype(np.float16),
    )


def test_examples_and_what_heads_take_of_them_are_kept(tmp_path):
    examples = [
        Example.of(PIECE, 0),
        Example.of(PIECE, 5, corruption("drop", ("a/b/0", 0), ("a/b/0", 2), ("a/b/0", 3))),
    ]
    sentences = [made_sentences(5), made_sentences(3, 1)]
    ExampleFolder.write(tmp_path / "some", examples, sentences)
    folder = ExampleFolder(tmp_path / "some")
    assert folder.examples == examples
    assert folder.texts() == [examples]
    found = folder.sentences(folder.examples)
    for one, other in zip(found, sentences, strict=True):
        for name in ("states", "figures", "vectors"):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    (beginning,) = folder.sentences([examples[0].first(2)])
    np.testing.assert_array_equal(beginning.states, sentences[0].states[:2])
    compared, pairs = groups_of([folder])[0].compared()
    assert compared == [examples[0].first(3), examples[1]]
    assert pairs == [(0, 1)]


def test_folders_that_lack_rows_are_not_used(tmp_path):
    ExampleFolder.write(tmp_path / "some", [Example.of(PIECE, 0)], [made_sentences(4)])
    with pytest.raises(ValueError, match="rows"):
        ExampleFolder(tmp_path / "some")


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    return load_reader(str(write_llama(tmp_path_factory.mktemp("llama"), num_hidden_layers=2)), "float32")


def making_of(pieces, reader, **changes):
    kinds = {name: weight for name, weight in MIX.items() if not name.endswith(("similar", "connective"))}
    usual = {"states": [State("mean", 2), State("first", 1)], "kinds": kinds, "versions": 3, "seed": 0}
    return Making(DonorPool(pieces), reader, EncoderDouble(), **usual | changes)


def contents(folders):
    return [
        (example, *(getattr(one, name).tobytes() for name in ("states", "figures", "vectors")))
        for folder in folders
        for versions in folder.texts()
        for example, one in zip(versions, folder.sentences(versions), strict=True)
    ]


def test_examples_are_made_once(reader, tmp_path, monkeypatch):
    monkeypatch.setattr(examples_module, "_TEXTS_AT_ONCE", 2)
    pieces = corpus(sources=2, works=2, pieces=2)[:5]
    making = making_of(pieces, reader)
    found = made_examples(pieces, making, tmp_path / "some")
    assert len(found) == 3
    assert [len(versions) for folder in found for versions in folder.texts()] == [4] * 5
    torch.set_num_threads(2)
    try:
        threaded = made_examples(pieces, making, tmp_path / "threaded")
    finally:
        torch.set_num_threads(1)
    assert contents(threaded) == contents(found)
    made, read = [], type(reader).read_versions
    monkeypatch.setattr(type(reader), "read_versions", lambda *about: made.append(about) or read(*about))
    assert contents(made_examples(pieces, making, tmp_path / "some")) == contents(found)
    assert not made
    # A folder that is damaged is made again, and nothing else.
    damaged = tmp_path / "some" / making.fingerprint(pieces[2:4]) / "states.npy"
    damaged.write_bytes(damaged.read_bytes()[:-1])
    assert contents(made_examples(pieces, making, tmp_path / "some")) == contents(found)
    assert len(made) == 2
    (tmp_path / "some" / "mine").mkdir()
    remove_examples(tmp_path / "some")
    assert [file.name for file in (tmp_path / "some").iterdir()] == ["mine"]


def test_what_examples_depend_on(reader):
    pieces = corpus(sources=2, works=2, pieces=1)
    usual = making_of(pieces, reader)
    others = [
        making_of(pieces, reader, seed=1),
        making_of(pieces, reader, versions=2),
        making_of(pieces, reader, kinds={"swap": 1.0}),
        making_of(pieces, reader, states=[State("mean", 2)]),
        making_of(pieces[:3], reader),
    ]
    prints = [making.fingerprint(pieces[:2]) for making in (usual, *others)] + [usual.fingerprint(pieces[1:3])]
    assert len(set(prints)) == len(prints)
    assert making_of(pieces[::-1], reader).fingerprint(pieces[:2]) == prints[0]


def test_examples_read_what_they_say(reader):
    pieces = corpus(sources=2, works=2, pieces=2)
    making = making_of(pieces, reader, kinds={"insert:source": 1.0}, versions=1)
    (original, inserted), (whole, version) = making.examples(pieces[0])
    (stranger,) = inserted.strangers
    assert original.sentences == len(whole) == len(pieces[0])
    assert inserted.start == len(whole)
    # Before the foreign sentence the two are alike, and from there on they differ.
    np.testing.assert_allclose(whole.states[:stranger], version.states[:stranger], rtol=1e-5)
    assert not np.allclose(whole.states[stranger], version.states[stranger], rtol=1e-2)
    assert not np.allclose(whole.vectors[stranger], version.vectors[stranger])
    np.testing.assert_array_equal(whole.vectors[stranger], version.vectors[stranger + 1])
    np.testing.assert_allclose(np.linalg.norm(version.vectors, axis=1), 1, rtol=1e-5)


def test_long_texts_are_used_in_part():
    long = [piece_of(" ".join(f"Word {n} is in text {i}." for n in range(20)), f"s/w/{i}") for i in range(200)]
    found = stretches([*long, PIECE], 0)
    assert found == stretches([*long, PIECE], 0) != stretches([*long, PIECE], 1)
    assert found[-1] is PIECE
    parts = [piece for piece, before in zip(found, long, strict=False) if piece is not before]
    assert 0.55 < len(parts) / 200 < 0.75
    assert {len(piece) for piece in parts} == set(range(5, 13))
    begins = [int(piece.sentences[0].split()[1]) for piece in parts]
    assert 0.4 < begins.count(0) / len(begins) < 0.7
    for piece, begin in zip(parts, begins, strict=True):
        whole = long[int(piece.id.split("/")[-1])]
        assert piece.sentences == whole.sentences[begin : begin + len(piece)]
        assert len(piece.gaps) == len(piece) - 1
        assert len(piece.names) == len(piece.changes) == len(piece.whole) == len(piece)


def test_vectors_of_similar_sentences_are_kept(tmp_path):
    class Counting(EncoderDouble):
        encoded = 0

        def encode(self, texts):
            Counting.encoded += len(texts)
            return super().encode(texts)

    pieces = corpus(sources=2, works=2, pieces=2)
    pool, other = DonorPool(pieces), DonorPool(pieces[1:])

    def nearest(pool, **kept):
        Counting.encoded = 0
        similar, encoded = similar_sentences(pool, Counting(), 0, show_progress=False, **kept), Counting.encoded
        return similar.nearest(pieces[0].sentences[0], pieces[0]), encoded

    found, encoded = nearest(pool, folder=tmp_path)
    assert encoded == len(pool.sample(20_000))
    assert nearest(pool, folder=tmp_path) == (found, 0)
    assert nearest(pool) == (found, encoded)
    # Those of other sentences are not taken.
    assert nearest(other, folder=tmp_path) == nearest(other)


def test_works_are_never_split():
    texts = [ProseText(f"{work}/{part}", str(work), "s", "") for work in range(20) for part in range(3)]
    train_texts, dev = split_by_work(texts, 0.1)
    assert {text.work for text in train_texts}.isdisjoint(text.work for text in dev)
    assert len({text.work for text in dev}) == 2
    assert split_by_work(texts[::-1], 0.1)[1] == dev[::-1]
    assert split_by_work(texts, 0) == (texts, [])
    assert split_by_work(texts[:3], 0.9) == (texts[:3], [])
    assert [len(part) for part in split_by_work(texts[:6], 0.01)] == [3, 3]
    assert split_by_work([], 0.1) == ([], [])


class InMemory:
    """What heads take of examples, by where they begin."""

    def __init__(self):
        self.rows = {}

    def sentences(self, examples):
        return [self.rows[example.start].first(example.sentences) for example in examples]


SHAPE = HeadsShape(("mean-1",), 8, 6, hidden=16, related=4)


def made_groups(number, seed, *, marked=True, sentences=6):
    """Texts with a foreign sentence, whose state is marked; or a sentence anywhere in both versions is."""
    random, folder, groups = np.random.default_rng(seed), InMemory(), []
    for text in range(number):
        foreign = int(random.integers(1, sentences))
        origins = tuple(int(place == foreign) for place in range(sentences))
        breaks = tuple(sorted({foreign - 1, foreign} & set(range(sentences - 1))))
        original = Example(str(text), "s", "original", 2 * text, sentences, (), (0,) * sentences)
        corrupted = Example(str(text), "s", "replace-one:source", 2 * text + 1, sentences, breaks, origins)
        for example in (original, corrupted):
            states = random.normal(size=(sentences, 8)).astype(np.float32)
            if marked and example is corrupted:
                states[foreign, 0] += 8
            if not marked:
                states[random.integers(sentences), 0] += 8
            figures = random.gamma(2, size=(sentences, len(FIGURES) + 1)).astype(np.float32)
            vectors = random.normal(size=(sentences, 6)).astype(np.float32)
            lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
            folder.rows[example.start] = Sentences(states, figures, vectors / lengths)
        groups.append(Group(folder, [original, corrupted]))
    return groups


SCHEDULE = Schedule(epochs=12, texts_at_once=12, learning_rate=1e-2)


def test_heads_learn_what_marks_a_foreign_sentence():
    network = train(made_groups(60, 0), SHAPE, SCHEDULE)
    found = accuracy(network, made_groups(60, 1))
    assert found.mean > 0.9
    assert found.belonging > 0.9
    assert found.boundaries > 0.9
    share, chance = found.found["replace-one:source"]
    assert share > 0.9
    assert chance == pytest.approx(1 / 6)


def test_heads_learn_nothing_where_there_is_nothing_to_learn():
    network = train(made_groups(60, 0, marked=False), SHAPE, SCHEDULE)
    found = accuracy(network, made_groups(100, 1, marked=False))
    assert 0.3 < found.mean < 0.7
    assert 0.4 < found.belonging < 0.6


def test_the_same_seed_gives_the_same_weights():
    groups, epochs = made_groups(30, 0), []
    torch.manual_seed(5)
    before = torch.get_rng_state()
    schedule = Schedule(epochs=2, texts_at_once=12)
    first = train(groups, SHAPE, schedule, lambda epoch, network: epochs.append((epoch, network.training))).state_dict()
    assert epochs == [(1, False), (2, False)]
    assert torch.equal(before, torch.get_rng_state())
    torch.set_num_threads(2)
    try:
        threaded = train(groups, SHAPE, schedule, lambda _, network: accuracy(network, groups)).state_dict()
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(1)
    other = train(groups, SHAPE, Schedule(epochs=2, texts_at_once=12, seed=1)).state_dict()
    assert all(torch.equal(first[name], threaded[name]) for name in first)
    assert not all(torch.equal(first[name], other[name]) for name in first)


def test_training_that_cannot_succeed_is_refused():
    with refused("no-texts"):
        train([], SHAPE, SCHEDULE)
    groups = made_groups(3, 0)
    groups[0].folder.rows[0].states[:] = np.nan
    with refused("diverged"):
        train(groups, SHAPE, SCHEDULE)


class Stub:
    """Says what it was told to say."""

    def __init__(self, outputs):
        self.outputs = outputs

    def eval(self):
        return self

    def __call__(self, texts):
        return self.outputs


def test_accuracy_by_hand():
    folder = InMemory()
    folder.rows = {place: made_sentences(4) for place in range(4)}
    versions = [
        Example("t", "s", "original", 0, 4, (), (0,) * 4),
        Example("t", "s", "join:source", 1, 4, (1,), (0, 0, 1, 1)),
        Example("t", "s", "insert:work", 2, 4, (0, 1), (0, 1, 0, 0)),
        Example("t", "s", "swap", 3, 4, (0, 1, 2), (0,) * 4),
    ]
    related = torch.zeros(4, 4, 4)
    # At distance 1 the pair across the break is between the other two, at distance 2 and 3 all are different.
    related[1, 0, 1], related[1, 1, 2], related[1, 2, 3] = 2.0, 1.0, 0.5
    outputs = Outputs(
        boundaries=torch.tensor([[9.0, 9, 9], [3, 1, 2], [0, 1, 2], [1, 0, 2]]),
        belonging=torch.tensor([[9.0, 9, 9, 9], [4, 3, 2, 1], [0, 1, 2, 3], [5, 5, 5, 5]]),
        related=related,
        scores=torch.tensor([1.0, 0.0, 1.0, 2.0]),
    )
    found = accuracy(Stub(outputs), [Group(folder, versions)])
    assert found.pairs == {"insert:work": (0.5, 1), "join:source": (1.0, 1), "swap": (0.0, 1)}
    assert found.mean == 0.5
    assert found.found == {"join:source": (1.0, pytest.approx(1 / 3)), "insert:work": (0.0, 0.25)}
    holds, breaks = [3, 2, 2], [1, 0, 1, 1, 0, 2]
    expected = np.mean([(good > bad) + 0.5 * (good == bad) for good in holds for bad in breaks])
    assert found.boundaries == pytest.approx(expected)
    own, foreign = [4, 3, 0, 2, 3, 5, 5, 5, 5], [2, 1, 1]
    expected = np.mean([(good > bad) + 0.5 * (good == bad) for good in own for bad in foreign])
    assert found.belonging == pytest.approx(expected)
    # One pair across the break at distance 1, two at distance 2 and one at distance 3.
    assert found.related == pytest.approx((0.5 + 2 * 0.5 + 0.5) / 4)
    assert found.to_dict()["pairs"] == found.pairs
    assert "\n" not in found.in_words()


def test_areas():
    assert area([]) == area([(1.0, True)]) == 0.5
    assert area([(1.0, True), (0.0, False), (0.5, True)]) == 1.0
    assert area_at_equal_distance({}) == 0.5
    far = {1: [(1.0, True), (0.0, False)], 2: [(0.0, True), (1.0, False), (2.0, False), (3.0, False)]}
    assert area_at_equal_distance(far) == pytest.approx(0.25)
