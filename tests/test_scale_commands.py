"""The command on corpora of any size: features first, then training; results in a file that grows."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
import tracemalloc

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from safetensors.numpy import load_file

from cohegraph.corpora.stream import Documents
from cohegraph.files import lock
from cohegraph.model.persistence import read_model
from cohegraph.scale.feature_cache import FILE, FeatureCache
from cohegraph.scale.feature_store import ABOUT, shards_in

FAST = ["--set", "training.epochs=8", "--set", "training.hidden=4"]
COMMAND = [sys.executable, "-m", "cohegraph.cli"]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory, starter):
    file = tmp_path_factory.mktemp("corpus") / "corpus.jsonl"
    rows = [{"id": one.id, "text": one.text, "label": one.level, "topic": one.topic} for one in starter[:36]]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return file


@pytest.fixture(scope="module")
def made(tmp_path_factory, corpus, shipped):
    """Features of the corpus, with groups and ids."""
    folder = tmp_path_factory.mktemp("features") / "store"
    columns = ["--group-column", "topic", "--id-column", "id"]
    subprocess.run(
        [*COMMAND, "featurize", str(corpus), "--out", str(folder), "--workers", "1", "--shard", "10", *columns],
        check=True,
        capture_output=True,
    )
    return folder


@pytest.fixture
def store(tmp_path, made):
    return shutil.copytree(made, tmp_path / "store")


def weights(folder):
    return load_file(folder / "model.safetensors")


def test_features_then_training_is_training(run, corpus, made, tmp_path):
    """The same model and the same figures, whether texts or features are given, to rounding."""
    assert run("train", corpus, "--out", tmp_path / "texts", "--group-column", "topic", "--threads", 1, *FAST)[0] == 0
    code, out, err = run("train", made, "--out", tmp_path / "features", *FAST)
    assert code == 0
    assert "Accuracy in 5-fold cross-validation" in out
    assert "36 documents (low: 12, medium: 12, high: 12)." in err
    one, other = weights(tmp_path / "texts"), weights(tmp_path / "features")
    assert one.keys() == other.keys()
    for name, array in one.items():
        np.testing.assert_allclose(other[name], array, rtol=0, atol=1e-5, err_msg=name)
    about, found = (read_model(tmp_path / name).about for name in ("texts", "features"))
    assert found["training"]["validation"] == pytest.approx(about["training"]["validation"])
    assert found["settings"] == about["settings"]
    assert not (tmp_path / "features.unfinished").exists()
    assert json.loads(run("assess", "-", "--model", tmp_path / "features", "--json", stdin=b"A dog. A cat.")[1])


def test_several_workers_and_neighbours(run, made, tmp_path, starter):
    assert run("train", made, "--out", tmp_path / "one", "--folds", 0, "--keep-neighbours", *FAST)[0] == 0
    assert run("train", made, "--out", tmp_path / "two", "--folds", 0, "--workers", 2, *FAST)[0] == 0
    one, two = weights(tmp_path / "one"), weights(tmp_path / "two")
    for name in two:
        np.testing.assert_allclose(two[name], one[name], rtol=0, atol=1e-5, err_msg=name)
    kept = [json.loads(line)["id"] for line in (tmp_path / "one" / "documents.jsonl").read_text().splitlines()]
    assert kept == [one.id for one in starter[:36]]


def test_surface_figures_dev_documents_and_other_systems(run, made, tmp_path):
    """What models look at besides vectors is on disk too, or beside it in memory."""
    more = ["--set", "nodes.surface=0.5", "--set", "training.dev_share=0.2"]
    assert run("train", made, "--out", tmp_path / "surface", "--folds", 2, *more, *FAST)[0] == 0
    assert read_model(tmp_path / "surface").about["surface"]
    for system in ("sgc", "surface", "dnn"):
        code, _, err = run("train", made, "--out", tmp_path / system, "--folds", 0, "--system", system)
        assert (code, "Traceback" in err) == (0, False), err


def test_wrong_calls_of_train_on_features(one_sentence, made, store, tmp_path, corpus):
    out = ["--out", tmp_path / "model"]
    assert "name columns when they are made" in one_sentence("train", made, *out, "--group-column", "topic")
    assert "train without --keep-texts" in one_sentence("train", made, *out, "--keep-texts")
    assert "made with vectors.source=glove-6b-50d" in one_sentence("train", made, *out, "--stack", "base")
    assert "made with encoder.max_tokens=512" in one_sentence("train", made, *out, "--preset", "paper-toefl")
    assert "made with subgraphs.k=4" in one_sentence("train", made, *out, "--set", "subgraphs.k=5")
    assert "Several workers train the system 'gcn'" in one_sentence("train", corpus, *out, "--workers", 2)
    assert "There is no file" in one_sentence("train", tmp_path / "absent", *out)
    assert "Several workers train" in one_sentence("train", made, *out, "--workers", 2, "--system", "sgc")
    assert "made without 'grid'" in one_sentence("train", made, *out, "--system", "entity-grid")
    shards_in(store)[0].write_bytes(b"")
    assert "is damaged or missing: run 'cohegraph featurize' again" in one_sentence("train", store, *out)
    (store / ABOUT).unlink()
    assert "are not complete" in one_sentence("train", store, *out)
    assert not (tmp_path / "model").exists()


def test_documents_without_labels(run, one_sentence, tmp_path, starter, shipped):
    rows = [{"text": one.text, "label": one.level if n % 2 else None} for n, one in enumerate(starter[:12])]
    file = tmp_path / "half.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    assert run("featurize", file, "--out", tmp_path / "half", "--workers", 1)[0] == 0
    out = ["--out", tmp_path / "model", "--folds", 0]
    assert "6 of 12 documents in" in one_sentence("train", tmp_path / "half", *out)
    assert run("train", tmp_path / "half", *out, "--skip-unlabelled", *FAST)[0] == 0
    assert read_model(tmp_path / "model").about["documents"] == 6
    plain = tmp_path / "texts"
    plain.mkdir()
    (plain / "one.txt").write_text(starter[0].text)
    assert run("featurize", plain, "--out", tmp_path / "none", "--workers", 1)[0] == 0
    assert "have no labels" in one_sentence("train", tmp_path / "none", *out)


def test_a_snapshot_of_other_settings_is_not_taken(run, made, tmp_path):
    """Surface figures shape what the network sees, not how it is trained."""
    from cohegraph.scale.checkpoints import checkpoint

    options = ["--folds", 0, *FAST]
    assert run("train", made, "--out", tmp_path / "right", *options, "--set", "nodes.surface=0.5")[0] == 0
    target = tmp_path / "model"
    unfinished = tmp_path / "model.unfinished"
    kept = []

    def keep(folder):
        kept.extend(file.read_bytes() for file in folder.glob("*.safetensors"))

    import cohegraph.scale.checkpoints as module

    original, module.remove_checkpoints = module.remove_checkpoints, keep
    try:
        assert run("train", made, "--out", target, *options, "--set", "nodes.surface=1.0")[0] == 0
    finally:
        module.remove_checkpoints = original
    assert len(kept) == 1
    assert checkpoint(unfinished, 1).read_bytes() == kept[0]
    for surface in (0.5, 0.0):
        checkpoint(unfinished, 1).parent.mkdir(exist_ok=True)
        checkpoint(unfinished, 1).write_bytes(kept[0])
        assert run("train", made, "--out", target, *options, "--set", f"nodes.surface={surface}")[0] == 0
        if surface:
            assert weights(target)["w0"].tobytes() == weights(tmp_path / "right")["w0"].tobytes()


def test_wrong_calls_of_featurize(one_sentence, corpus, tmp_path, store):
    out = ["--out", tmp_path / "new"]
    assert "no column 'body'" in one_sentence("featurize", corpus, *out, "--text-column", "body")
    assert "no column 'grade'" in one_sentence("featurize", corpus, *out, "--label-column", "grade")
    assert "There is no file" in one_sentence("featurize", tmp_path / "absent.csv", *out)
    assert "no setting 'links.gamma'" in one_sentence("featurize", corpus, *out, "--set", "links.gamma=1")
    assert "--engine ray" in one_sentence("featurize", corpus, *out, "--address", "auto")
    assert "holds other things" in one_sentence("featurize", corpus, "--out", corpus.parent)
    holes = tmp_path / "holes.jsonl"
    holes.write_text('{"text": "A dog."}\n{"text": ""}\n{"text": null}\n')
    complaint = one_sentence("featurize", holes, *out, "--workers", 1)
    assert "2 of 3 documents have no text" in complaint
    assert "holes.jsonl:2" in complaint
    assert not (tmp_path / "new" / ABOUT).exists()
    assert "an address" in one_sentence("featurize", "s3://bucket/essays", *out)
    holes.write_text('{"text": "A dog.", "label": [1]}\n{"text": "A cat."}\n')
    assert "neither a word nor a number" in one_sentence("featurize", holes, *out)
    assert "holes.jsonl:1 has no topic" in one_sentence(
        "featurize", _with_label(holes), *out, "--group-column", "topic"
    )
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / ABOUT).write_text("hi")
    assert "holds other things" in one_sentence("featurize", corpus, "--out", tmp_path / "other")


def _with_label(file):
    file.write_text('{"text": "A dog."}\n{"text": "A cat.", "topic": "cats"}\n')
    return file


def test_other_columns_of_a_parquet_file_are_left_alone(run, tmp_path, shipped):
    table = pa.table({"text": ["A dog. A cat."], "when": pa.array([2**50], pa.timestamp("ms"))})
    pq.write_table(table, tmp_path / "odd.parquet")
    assert run("assess", tmp_path / "odd.parquet", "--json")[0] == 0


def test_a_table_that_changes_while_it_is_read_is_noticed(tmp_path):
    file = tmp_path / "table.jsonl"
    file.write_text('{"text": "one"}\n{"text": "two"}\n')
    documents = Documents([str(file)])
    file.write_text('{"text": "one"}\n')
    assert [entry.problem for entry in documents][1].endswith(
        "has changed while it was read: run the same command again."
    )


def test_documents_without_text_can_be_left_out(run, tmp_path, shipped):
    holes = tmp_path / "holes.jsonl"
    holes.write_text('{"text": "A dog."}\n{"text": ""}\n{"text": "A cat."}\n')
    code, out, err = run("featurize", holes, "--out", tmp_path / "new", "--workers", 1, "--skip-empty")
    assert code == 0
    assert "1 of 3 documents have no text and are left out" in err
    assert "The features of 2 documents" in out


def test_another_corpus_does_not_replace_one_by_mistake(run, one_sentence, store, tmp_path):
    other = tmp_path / "other.jsonl"
    other.write_text('{"text": "A dog."}\n')
    before = {file.name for file in store.iterdir()}
    complaint = one_sentence("featurize", other, "--out", store, "--workers", 1)
    assert "holds the features of 36 documents, and no more than 0 of them are in this corpus" in complaint
    assert before <= {file.name for file in store.iterdir()}
    code, out, _ = run("featurize", other, "--out", store, "--workers", 1, "--replace")
    assert code == 0
    assert "The features of 1 documents are in" in out
    assert "0 of them computed now" in " ".join(out.split())
    assert len(shards_in(store)) == 1


def test_a_killed_training_goes_on(made, tmp_path):
    """With SIGKILL, once the first snapshot is there; the model is the same, byte by byte."""
    options = ["--folds", "2", "--set", "training.epochs=400", "--set", "training.hidden=8", "--threads", "1"]
    for name in ("undisturbed", "killed"):
        (tmp_path / name).mkdir()
    command = [*COMMAND, "train", str(made), *options, "--out"]
    subprocess.run([*command, str(tmp_path / "undisturbed" / "model")], check=True, capture_output=True)
    target = tmp_path / "killed" / "model"
    process = subprocess.Popen([*command, str(target)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    unfinished = target.with_name("model.unfinished")
    while process.poll() is None and not list(unfinished.glob("training-*.safetensors")):
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert not target.exists()
    subprocess.run([*command, str(target)], check=True, capture_output=True)
    for file in ("model.safetensors", "model.json", "README.md"):
        assert (target / file).read_bytes() == (tmp_path / "undisturbed" / "model" / file).read_bytes()
    assert not unfinished.exists()


@pytest.fixture(scope="module")
def results(tmp_path_factory, corpus, shipped):
    """What an undisturbed run writes."""
    file = tmp_path_factory.mktemp("results") / "results.jsonl"
    command = [*COMMAND, "assess", str(corpus), "--threads", "1", "--out", str(file)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert "The results of 36 documents are in" in done.stdout
    return file.read_bytes()


def test_results_are_written_in_order(results, corpus, shipped, starter):
    lines = [json.loads(line) for line in results.splitlines()]
    assert [line["document"] for line in lines] == [f"{corpus}:{number}" for number in range(1, 37)]
    expected = shipped.assess([one.text for one in starter[:36]])
    assert [line["level"] for line in lines] == [one.level for one in expected]
    assert lines[3]["probabilities"] == expected[3].to_dict()["probabilities"]
    assert {line["model"] for line in lines} == {"starter"}


@pytest.mark.parametrize("kept", [0, 1, 500, 5_000, 20_000, None])
def test_a_run_that_was_stopped_goes_on_from_its_results(run, results, corpus, tmp_path, kept):
    file = tmp_path / "results.jsonl"
    file.write_bytes(results[:kept])
    code, _, err = run("assess", corpus, "--threads", 1, "--out", file)
    assert code == 0
    assert file.read_bytes() == results
    done = results[:kept].count(b"\n")
    assert (f"{done} of 36 documents are in" in err) == (done > 0)


def test_results_of_others_are_not_touched(one_sentence, results, corpus, tmp_path, text_file):
    file = tmp_path / "results.jsonl"
    for content, complaint in (
        (results[results.index(b"\n") + 1 :], "of other documents or of another model"),
        (results.replace(b'"starter"', b'"another"'), "of other documents or of another model"),
        (b"text,label\nprecious,1\n", "holds other things than results"),
        (b"precious", "holds other things than results"),
        (b'{"document": "my own notes"}', "holds other things than results"),
        (results[:3000] + b"\x00\n" + results[3000:], "holds other things than results"),
    ):
        file.write_bytes(content)
        assert complaint in one_sentence("assess", corpus, "--out", file)
        assert file.read_bytes() == content
    file.write_bytes(results)
    assert "of other documents" in one_sentence("assess", text_file, "--out", file)
    assert "cannot be written" in one_sentence("assess", text_file, "--out", tmp_path / "absent" / "results.jsonl")
    assert "cannot be written" in one_sentence("assess", text_file, "--out", tmp_path)
    assert "name a file of your own" in one_sentence("assess", text_file, "--out", "/dev/full")
    assert "is one of the files to assess" in one_sentence("assess", text_file, "--out", text_file)


def test_one_process_writes_results(one_sentence, corpus, tmp_path):
    file = tmp_path / "results.jsonl"
    with file.open("w") as stream:
        assert lock(stream)
        assert "Another process is writing results" in one_sentence("assess", corpus, "--out", file)


def test_a_full_disk_keeps_the_results(one_sentence, run, results, corpus, tmp_path, full_disk):
    file = tmp_path / "results.jsonl"
    assert "No space left on device" in one_sentence("assess", corpus, "--threads", 1, "--out", file)
    full_disk()
    assert run("assess", corpus, "--threads", 1, "--out", file)[0] == 0
    assert file.read_bytes() == results


def test_a_killed_assessment_goes_on(results, corpus, tmp_path):
    file = tmp_path / "results.jsonl"
    command = [*COMMAND, "assess", str(corpus), "--threads", "1", "--out", str(file)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while process.poll() is None and not (file.exists() and file.stat().st_size):
        time.sleep(0.005)
    process.kill()
    process.wait()
    assert 0 < file.stat().st_size < len(results)
    subprocess.run(command, check=True, capture_output=True)
    assert file.read_bytes() == results


def test_several_workers_give_the_same_results(results, corpus, tmp_path):
    file = tmp_path / "results.jsonl"
    command = [*COMMAND, "assess", str(corpus), "--workers", "2", "--out", str(file)]
    subprocess.run(command, check=True, capture_output=True)
    assert file.read_bytes() == results


def test_documents_without_text_do_not_keep_the_rest_from_being_assessed(run, shipped, tmp_path):
    table = tmp_path / "holes.parquet"
    pq.write_table(pa.table({"text": ["A dog. A cat.", None, " ", "A boat."] * 10}), table)
    code, _, err = run("assess", table, "--out", tmp_path / "results.jsonl")
    assert code == 2
    assert err.count("has no text to assess") == 20
    lines = [json.loads(line) for line in (tmp_path / "results.jsonl").read_text().splitlines()]
    assert len(lines) == 40
    assert ["error" in line for line in lines[:4]] == [False, True, True, False]
    code, _, err = run("assess", table, table, "--out", tmp_path / "more.jsonl")
    assert "20 more documents could not be assessed" in err
    # Nothing is left to do, and what could not be assessed is said again.
    assert run("assess", table, "--out", tmp_path / "results.jsonl")[0] == 2


def test_folders_of_tables_are_one_corpus(tmp_path):
    folder = tmp_path / "parts"
    (folder / "deep").mkdir(parents=True)
    pq.write_table(pa.table({"text": ["one", "two"], "label": [1, 2]}), folder / "a.parquet")
    (folder / "deep" / "b.jsonl").write_text('{"text": "three"}\n')
    documents = Documents([str(folder)], optional=["label"])
    assert len(documents) == 3
    assert [(entry.text, entry.fields["label"]) for entry in documents] == [("one", 1), ("two", 2), ("three", None)]
    (folder / "note.txt").write_text("four")
    mixed = Documents([str(folder)])
    assert [entry.text for entry in mixed] == ["four"]
    assert "the 1 text files are read, no table" in mixed.remarks[0]


@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet"])
def test_a_large_table_is_never_held_in_memory(tmp_path, ending):
    file, text, rows = tmp_path / f"large.{ending}", "word " * 1_000, 4_000
    if ending == "parquet":
        with pq.ParquetWriter(file, pa.schema({"text": pa.string()}), compression="none") as writer:
            for _ in range(rows // 100):
                writer.write_table(pa.table({"text": [text] * 100}))
    else:
        with file.open("w") as stream:
            stream.write("text\n" if ending == "csv" else "")
            for _ in range(rows):
                stream.write(json.dumps({"text": text}) + "\n" if ending == "jsonl" else f"{text}\n")
    tracemalloc.start()
    try:
        assert sum(len(entry.text) for entry in Documents([str(file)])) == len(text) * rows
        assert tracemalloc.get_traced_memory()[1] < 12_000_000  # of 20 MB
    finally:
        tracemalloc.stop()


def test_where_a_table_is_not_utf8(one_sentence, tmp_path):
    file = tmp_path / "bad.jsonl"
    for place in (30, 2**20 - 1, 2**20 + 1, 2**21 + 7):
        file.write_bytes(b'{"text": "' + b"a" * (place - 10) + b'\xff"}\n')
        assert f"(byte {place} is not valid)" in one_sentence("assess", file)
    file.write_bytes(b'{"text": "\xc3')
    assert "is not valid" in one_sentence("assess", file)


def test_cache_of_features(run, one_sentence, tmp_path, monkeypatch, shipped, store):
    monkeypatch.setenv("COHEGRAPH_CACHE", str(tmp_path / "cache"))
    texts = ["The dog chased a cat.", "A boat sailed."]
    FeatureCache().features(texts, shipped.featurizer, needs=["words"])
    assert "4 halves of texts' features and 2 sequences" in " ".join(run("cache", "info")[1].split())
    assert run("cache", "verify")[1] == "6 entries looked at, 0 of them damaged.\n"
    import sqlite3

    with sqlite3.connect(tmp_path / "cache" / FILE) as connection:
        key, half = connection.execute("SELECT key, content FROM halves LIMIT 1").fetchone()
        flipped = half[:-1] + bytes([half[-1] ^ 1])
        connection.execute("UPDATE halves SET content = ? WHERE key = ?", (flipped, key))
    connection.close()
    code, out, _ = run("cache", "verify")
    assert (code, out) == (
        2,
        "6 entries looked at, 1 of them damaged, which are removed and will be computed anew.\n",
    )
    assert run("cache", "verify")[1] == "5 entries looked at, 0 of them damaged.\n"
    assert "Nothing was removed" in run("cache", "clear", stdin=b"n\n")[1]
    assert run("cache", "clear", "--yes")[0] == 0
    assert "0 halves" in run("cache", "info")[1]


def test_cache_of_a_store(run, one_sentence, store, tmp_path):
    code, out, _ = run("cache", "info", store)
    assert code == 0
    assert "features of 36 documents in 4 files" in " ".join(out.split())
    assert "are as they were written" in run("cache", "verify", store)[1]
    file = shards_in(store)[2]
    file.write_bytes(file.read_bytes()[:-1])
    code, _, err = run("cache", "verify", store)
    assert code == 2
    assert file.name in err
    assert "1 of the 4 files" in err
    assert run("cache", "clear", store, "--yes")[0] == 0
    assert not store.exists()
    assert "holds no features" in one_sentence("cache", "clear", tmp_path, "--yes")
    assert "holds no features" in one_sentence("cache", "info", tmp_path / "absent")
