"""Features of a corpus in a folder, and training on it, by the command."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from material import COMMAND, TEXT
from safetensors.numpy import load_file

from cohegraph.features.store import ABOUT, FeatureStore, shards_in
from cohegraph.files import lock
from cohegraph.model.persistence import read_model

FAST = ["--set", "training.epochs=8", "--set", "training.hidden=4"]


def weights(folder):
    return load_file(folder / "model.safetensors")


def test_features_then_training_is_training(run, graded_file, made_store, tmp_path):
    """The same model and the same figures, whether texts or features are given, to rounding."""
    assert (
        run("train", graded_file, "--out", tmp_path / "texts", "--group-column", "topic", "--threads", 1, *FAST)[0] == 0
    )
    code, out, err = run("train", made_store, "--out", tmp_path / "features", *FAST)
    assert code == 0
    assert "5-fold" in out
    assert err.count("12") == 3
    one, other = weights(tmp_path / "texts"), weights(tmp_path / "features")
    assert one.keys() == other.keys()
    for name, array in one.items():
        np.testing.assert_allclose(other[name], array, rtol=0, atol=1e-5, err_msg=name)
    about, found = (read_model(tmp_path / name).about for name in ("texts", "features"))
    assert found["training"]["validation"] == pytest.approx(about["training"]["validation"])
    assert found["settings"] == about["settings"]
    assert not (tmp_path / "features.unfinished").exists()
    assert json.loads(run("assess", "-", "--model", tmp_path / "features", "--json", stdin=b"A dog. A cat.")[1])


def test_several_workers_and_neighbours(run, made_store, tmp_path, starter):
    assert run("train", made_store, "--out", tmp_path / "one", "--folds", 0, "--keep-neighbours", *FAST)[0] == 0
    assert run("train", made_store, "--out", tmp_path / "two", "--folds", 0, "--workers", 2, *FAST)[0] == 0
    one, two = weights(tmp_path / "one"), weights(tmp_path / "two")
    for name in two:
        np.testing.assert_allclose(two[name], one[name], rtol=0, atol=1e-5, err_msg=name)
    kept = [json.loads(line)["id"] for line in (tmp_path / "one" / "documents.jsonl").read_text().splitlines()]
    assert kept == [one.id for one in starter[:36]]


def test_surface_figures_dev_documents_and_other_systems(run, made_store, tmp_path):
    """What models look at besides vectors is on disk too, or beside it in memory."""
    more = ["--set", "nodes.surface=0.5", "--set", "training.dev_share=0.2"]
    assert run("train", made_store, "--out", tmp_path / "surface", "--folds", 2, *more, *FAST)[0] == 0
    assert {"surface_mean", "surface_scale"} <= weights(tmp_path / "surface").keys()
    for system in ("sgc", "surface", "dnn"):
        code, _, err = run("train", made_store, "--out", tmp_path / system, "--folds", 0, "--system", system)
        assert (code, "Traceback" in err) == (0, False), err


def test_wrong_calls_of_train_on_features(failing, one_sentence, made_store, store, tmp_path, graded_file):
    out = ["--out", tmp_path / "model"]
    for source, options, code in (
        (made_store, ["--group-column", "topic"], "columns-of-features"),
        (made_store, ["--keep-texts"], "no-texts"),
        (made_store, ["--stack", "base"], "other-settings"),
        (made_store, ["--preset", "paper-toefl"], "other-settings"),
        (made_store, ["--set", "subgraphs.k=5"], "other-settings"),
        (graded_file, ["--workers", 2], "workers-without-chunks"),
        (made_store, ["--workers", 2, "--system", "sgc"], "workers-without-chunks"),
        (made_store, ["--system", "entity-grid"], "missing-material"),
        (tmp_path / "absent", [], "missing-file"),
    ):
        assert failing("train", source, *out, *options).code == code, options
    one_sentence("train", made_store, *out, "--set", "subgraphs.k=5")
    shards_in(store)[0].write_bytes(b"")
    assert failing("train", store, *out).code == "damaged-file"
    (store / ABOUT).unlink()
    assert failing("train", store, *out).code == "unfinished-store"
    assert not (tmp_path / "model").exists()


# Runs the command, and prints the code of what it refuses and whether torch was imported by then.
EARLY = """
import sys
from cohegraph.cli.app import app
from cohegraph.errors import CohegraphError
try:
    app(sys.argv[1:], standalone_mode=False)
except CohegraphError as error:
    print(error.code, "torch" in sys.modules)
"""


def test_features_of_other_settings_are_refused_before_anything_is_loaded(made_store, tmp_path):
    """The shipped model reads patterns of five sentences, and the store has those of four."""
    out = ["--out", str(tmp_path / "model")]
    for call in (
        ["train", str(made_store), *out, "--set", "subgraphs.k=5"],
        ["train", str(made_store), *out, "--preset", "paper-toefl"],
        ["assess", str(made_store), "--model", "starter"],
    ):
        done = subprocess.run([sys.executable, "-c", EARLY, *call], capture_output=True, text=True, check=True)
        assert done.stdout.split() == ["other-settings", "False"], call


def test_a_ranking_is_trained_in_memory(run, failing, graded_file, store, tmp_path):
    """It compares documents with each other; the model is the one of the texts."""
    table = tmp_path / "rated.jsonl"
    rows = [json.loads(line) for line in graded_file.read_text("utf-8").splitlines()]
    for number, row in enumerate(rows):
        row["label"] = number % 5 / 4
    table.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    columns = ["--group-column", "topic"]
    assert run("featurize", table, "--out", store, "--workers", 1, *columns)[0] == 0
    options = ["--objective", "ranking", "--folds", 0, "--threads", 1, *FAST]
    call = ("train", store, "--out", tmp_path / "features", *options)
    assert failing(*call, "--workers", 2).code == "workers-without-chunks"
    assert run(*call)[0] == 0
    assert not (tmp_path / "features.unfinished").exists()
    assert run("train", table, "--out", tmp_path / "texts", *columns, *options)[0] == 0
    one, other = weights(tmp_path / "texts"), weights(tmp_path / "features")
    for name, array in one.items():
        np.testing.assert_allclose(other[name], array, rtol=0, atol=1e-5, err_msg=name)


def test_the_ablations_train_in_chunks_too(run, made_store, tmp_path):
    for system, workers in (("gcn-no-pmi", 1), ("gcn-no-edges", 2)):
        call = ("train", made_store, "--out", tmp_path / system, "--folds", 0, "--system", system, "--workers", workers)
        assert run(*call, *FAST)[0] == 0
        assert read_model(tmp_path / system).about["system"] == system


def test_documents_without_labels(run, failing, tmp_path, starter, shipped):
    rows = [{"text": one.text, "label": one.label if n % 2 else None} for n, one in enumerate(starter[:12])]
    file = tmp_path / "half.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    assert run("featurize", file, "--out", tmp_path / "half", "--workers", 1)[0] == 0
    out = ["--out", tmp_path / "model", "--folds", 0]
    assert failing("train", tmp_path / "half", *out).code == "missing-label"
    assert run("train", tmp_path / "half", *out, "--skip-unlabelled", *FAST)[0] == 0
    assert read_model(tmp_path / "model").about["documents"] == 6
    plain = tmp_path / "texts"
    plain.mkdir()
    (plain / "one.txt").write_text(starter[0].text)
    assert run("featurize", plain, "--out", tmp_path / "none", "--workers", 1)[0] == 0
    assert failing("train", tmp_path / "none", *out).code == "missing-label"


def test_a_snapshot_of_other_settings_is_not_taken(run, made_store, tmp_path):
    """Surface figures shape what the network sees, not how it is trained."""
    from cohegraph.scale.checkpoints import checkpoint

    options = ["--folds", 0, *FAST]
    assert run("train", made_store, "--out", tmp_path / "right", *options, "--set", "nodes.surface=0.5")[0] == 0
    target = tmp_path / "model"
    unfinished = tmp_path / "model.unfinished"
    kept = []

    def keep(folder):
        kept.extend(file.read_bytes() for file in folder.glob("*.safetensors"))

    import cohegraph.scale.checkpoints as module

    original, module.remove_checkpoints = module.remove_checkpoints, keep
    try:
        assert run("train", made_store, "--out", target, *options, "--set", "nodes.surface=1.0")[0] == 0
    finally:
        module.remove_checkpoints = original
    assert len(kept) == 1
    assert checkpoint(unfinished, 1).read_bytes() == kept[0]
    for surface in (0.5, 0.0):
        checkpoint(unfinished, 1).parent.mkdir(exist_ok=True)
        checkpoint(unfinished, 1).write_bytes(kept[0])
        assert run("train", made_store, "--out", target, *options, "--set", f"nodes.surface={surface}")[0] == 0
        if surface:
            assert weights(target)["w0"].tobytes() == weights(tmp_path / "right")["w0"].tobytes()


def test_wrong_calls_of_featurize(failing, one_sentence, graded_file, tmp_path, store):
    out = ["--out", tmp_path / "new"]
    holes, other = tmp_path / "holes.jsonl", tmp_path / "other"
    other.mkdir()
    (other / ABOUT).write_text("hi")
    for source, options, code in (
        (graded_file, ["--text-column", "body"], "missing-column"),
        (graded_file, ["--label-column", "grade"], "missing-column"),
        (tmp_path / "absent.csv", [], "missing-file"),
        (graded_file, ["--set", "links.gamma=1"], "no-setting"),
        (graded_file, ["--set", "links.linkers=verbs"], "no-linker"),
        (graded_file, ["--address", "auto"], "address-without-ray"),
        ("s3://bucket/essays", [], "is-an-address"),
    ):
        assert failing("featurize", source, *out, *options).code == code, options
    for folder in (graded_file.parent, other):
        assert failing("featurize", graded_file, "--out", folder).code == "foreign-folder"
    holes.write_text('{"text": "A dog."}\n{"text": ""}\n{"text": null}\n')
    error = failing("featurize", holes, *out, "--workers", 1)
    assert error.code == "missing-text"
    assert "holes.jsonl:2" in str(error)
    assert not (tmp_path / "new" / ABOUT).exists()
    holes.write_text('{"text": "A dog.", "label": [1]}\n{"text": "A cat."}\n')
    assert failing("featurize", holes, *out).code == "not-a-label"
    assert failing("featurize", _with_label(holes), *out, "--group-column", "topic").code == "missing-group"
    one_sentence("featurize", tmp_path / "absent.csv", *out)


def _with_label(file):
    file.write_text('{"text": "A dog."}\n{"text": "A cat.", "topic": "cats"}\n')
    return file


def test_other_columns_of_a_parquet_file_are_left_alone(run, tmp_path, shipped):
    table = pa.table({"text": ["A dog. A cat."], "when": pa.array([2**50], pa.timestamp("ms"))})
    pq.write_table(table, tmp_path / "odd.parquet")
    assert run("assess", tmp_path / "odd.parquet", "--json")[0] == 0


def test_documents_without_text_can_be_left_out(run, tmp_path, shipped):
    holes = tmp_path / "holes.jsonl"
    holes.write_text('{"text": "A dog."}\n{"text": ""}\n{"text": "A cat."}\n')
    code, _, err = run("featurize", holes, "--out", tmp_path / "new", "--workers", 1, "--skip-empty")
    assert code == 0
    assert "1 of 3" in err
    assert len(FeatureStore(tmp_path / "new")) == 2


def test_another_corpus_does_not_replace_one_by_mistake(run, failing, store, tmp_path, starter):
    """Nor with the second try, nor by one document that is there many times, nor after a run that was stopped."""
    other, many = tmp_path / "other.jsonl", tmp_path / "many.jsonl"
    other.write_text('{"text": "A dog."}\n')
    many.write_text((json.dumps({"text": starter[0].text}) + "\n") * 30)
    before = {file.name for file in store.iterdir()}
    for corpus in (other, other, many, many):
        assert failing("featurize", corpus, "--out", store, "--workers", 1, "--shard", 4).code == "other-corpus"
        assert before <= {file.name for file in store.iterdir()}
        assert len(FeatureStore(store)) == 36
    code, _, _ = run("featurize", other, "--out", store, "--workers", 1, "--replace")
    assert code == 0
    assert len(FeatureStore(store)) == len(shards_in(store)) == 1


def test_a_killed_training_goes_on(made_store, tmp_path):
    """With SIGKILL, once the first snapshot is there; the model is the same, byte by byte."""
    options = ["--folds", "2", "--set", "training.epochs=400", "--set", "training.hidden=8", "--threads", "1"]
    for name in ("undisturbed", "killed"):
        (tmp_path / name).mkdir()
    command = [*COMMAND, "train", str(made_store), *options, "--out"]
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


def test_one_process_trains_a_model(failing, run, made_store, tmp_path):
    call = ("train", made_store, "--out", tmp_path / "model", "--folds", 0, *FAST)
    unfinished = tmp_path / "model.unfinished"
    unfinished.mkdir()
    with (unfinished / ".lock").open("w") as stream:
        assert lock(stream)
        assert failing(*call).code == "in-use"
    assert run(*call)[0] == 0
    assert not unfinished.exists()
    unfinished.touch()
    assert failing(*call).code == "foreign-folder"


@pytest.mark.skipif(sys.platform != "linux", reason="processes are looked up in /proc")
def test_a_training_that_is_ended_says_how_it_goes_on(made_store, tmp_path):
    """With SIGTERM, as batch systems end what takes too long."""
    target = tmp_path / "model"
    options = ["--folds", "0", "--set", "training.epochs=100000", "--workers", "2", "--out", str(target)]
    process = subprocess.Popen([*COMMAND, "train", str(made_store), *options], stderr=subprocess.PIPE, text=True)
    for line in process.stderr:
        if "36 documents" in line:
            break
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    # It is about to train, and has started the processes that train.
    while not (tmp_path / "model.unfinished" / ".lock").exists() or len(children.read_text().split()) < 2:
        assert process.poll() is None
        time.sleep(0.02)
    for _ in range(6):
        # Python drops an interruption that arrives inside a callback of C code; a later signal has to be heard.
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            _, err = process.communicate(timeout=10)
            break
    assert process.returncode == 130
    assert str(target) in "".join(err.split())
    assert not target.exists()
    assert "Traceback" not in err
    assert "resource_tracker" not in err


def test_text_files_go_by_their_names(run, tmp_path, shipped):
    folder = tmp_path / "texts"
    folder.mkdir()
    for number in range(3):
        (folder / f"{number}.txt").write_text(f"{TEXT} It is no. {number}.", "utf-8")
    for more in ([], ["--id-column", "id"]):
        assert run("featurize", folder, "--out", tmp_path / "store", "--workers", 1, *more)[0] == 0
        ids = FeatureStore(str(tmp_path / "store")).corpus().ids
        assert ids == tuple(str(folder / f"{number}.txt") for number in range(3))


def test_features_for_a_model(run, failing, graded_file, tmp_path, shipped):
    call = ("featurize", graded_file, "--out", tmp_path / "store", "--workers", 1, "--model", "starter")
    assert failing(*call, "--set", "subgraphs.k=4").code == "two-settings"
    assert run(*call)[0] == 0
    assert run("assess", tmp_path / "store")[0] == 0


def test_only_documents_without_text_are_skipped(failing, tmp_path, shipped):
    """What cannot be read is something else."""
    texts = tmp_path / "texts"
    texts.mkdir()
    (texts / "a.txt").write_text(TEXT, "utf-8")
    (texts / "b.txt").write_bytes(b"\xff\xfe")
    call = ("--out", tmp_path / "store", "--workers", 1, "--skip-empty")
    assert failing("featurize", texts, *call).code == "not-utf-8"
    assert not (tmp_path / "store").exists()


def test_a_training_that_cannot_be_kept(failing, made_store, tmp_path):
    """A folder is where the snapshot should be; one of texts touches no snapshots."""
    unfinished = tmp_path / "model.unfinished"
    (unfinished / "training-1.safetensors").mkdir(parents=True)
    call = ("train", made_store, "--out", tmp_path / "model", "--folds", 0, *FAST)
    assert failing(*call).code == "cannot-write"


def test_training_on_texts_leaves_snapshots_alone(run, graded_file, tmp_path):
    kept = tmp_path / "model.unfinished" / "training-1.safetensors"
    kept.parent.mkdir()
    kept.touch()
    assert run("train", graded_file, "--out", tmp_path / "model", "--folds", 0, *FAST)[0] == 0
    assert kept.exists()
