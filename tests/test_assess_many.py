"""Many documents assessed by the command: results in a file that grows, from which a stopped run goes on."""

from __future__ import annotations

import json
import subprocess
import time
import tracemalloc
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from material import COMMAND, TEXT

from cohegraph.corpora.stream import Documents
from cohegraph.features.store import ABOUT, FeatureStore, shards_in
from cohegraph.files import lock
from cohegraph.scale.stored_documents import StoredDocuments

FAST = ["--set", "training.epochs=8", "--set", "training.hidden=4"]


@pytest.fixture(scope="module")
def results(tmp_path_factory, graded_file, shipped):
    """What an undisturbed run writes."""
    file = tmp_path_factory.mktemp("results") / "results.jsonl"
    command = [*COMMAND, "assess", str(graded_file), "--threads", "1", "--out", str(file)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert "The results of 36 documents are in" in done.stdout
    return file.read_bytes()


def test_results_are_written_in_order(results, graded_file, shipped, starter):
    lines = [json.loads(line) for line in results.splitlines()]
    assert [line["document"] for line in lines] == [f"{graded_file}:{number}" for number in range(1, 37)]
    expected = shipped.assess([one.text for one in starter[:36]])
    assert [line["level"] for line in lines] == [one.level for one in expected]
    assert lines[3]["probabilities"] == expected[3].to_dict()["probabilities"]
    assert {line["model"] for line in lines} == {"starter"}


@pytest.mark.parametrize("kept", [0, 1, 500, 5_000, 20_000, None])
def test_a_run_that_was_stopped_goes_on_from_its_results(run, results, graded_file, tmp_path, kept):
    file = tmp_path / "results.jsonl"
    file.write_bytes(results[:kept])
    code, _, err = run("assess", graded_file, "--threads", 1, "--out", file)
    assert code == 0
    assert file.read_bytes() == results
    done = results[:kept].count(b"\n")
    assert (f"{done} of 36 documents done already" in err) == (done > 0)


def test_results_of_others_are_not_touched(one_sentence, results, graded_file, tmp_path, text_file):
    file = tmp_path / "results.jsonl"
    for content, complaint in (
        (b"".join(results.splitlines(keepends=True)[::-1]), "of other documents or of another model"),
        (results.replace(b'"starter"', b'"another"'), "of other documents or of another model"),
        (b'{"document": "a", "text_sha256": "", "model": "another", "error": "b"}\n', "or of another model"),
        (b"text,label\nprecious,1\n", "holds other things than results"),
        (b"precious", "holds other things than results"),
        (b'{"document": "my own notes"}', "holds other things than results"),
        (results[:3000] + b"\x00\n" + results[3000:], "holds other things than results"),
    ):
        file.write_bytes(content)
        assert complaint in one_sentence("assess", graded_file, "--out", file)
        assert file.read_bytes() == content
    file.write_bytes(results)
    assert "of other documents" in one_sentence("assess", text_file, "--out", file)
    assert "cannot be written" in one_sentence("assess", text_file, "--out", tmp_path / "absent" / "results.jsonl")
    assert "cannot be written" in one_sentence("assess", text_file, "--out", tmp_path)
    assert "name a file of your own" in one_sentence("assess", text_file, "--out", "/dev/full")
    assert "is one of the files to assess" in one_sentence("assess", text_file, "--out", text_file)


def test_one_process_writes_results(one_sentence, graded_file, tmp_path):
    file = tmp_path / "results.jsonl"
    with file.open("w") as stream:
        assert lock(stream)
        assert "Another process is writing results" in one_sentence("assess", graded_file, "--out", file)


def test_a_full_disk_keeps_the_results(one_sentence, run, results, graded_file, tmp_path, full_disk):
    file = tmp_path / "results.jsonl"
    assert "No space left on device" in one_sentence("assess", graded_file, "--threads", 1, "--out", file)
    full_disk()
    assert run("assess", graded_file, "--threads", 1, "--out", file)[0] == 0
    assert file.read_bytes() == results


def test_a_killed_assessment_goes_on(results, graded_file, tmp_path):
    file = tmp_path / "results.jsonl"
    command = [*COMMAND, "assess", str(graded_file), "--threads", "1", "--out", str(file)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while process.poll() is None and not (file.exists() and file.stat().st_size):
        time.sleep(0.005)
    process.kill()
    process.wait()
    assert 0 < file.stat().st_size < len(results)
    subprocess.run(command, check=True, capture_output=True)
    assert file.read_bytes() == results


def test_several_workers_give_the_same_results(results, graded_file, tmp_path):
    file = tmp_path / "results.jsonl"
    command = [*COMMAND, "assess", str(graded_file), "--workers", "2", "--out", str(file)]
    subprocess.run(command, check=True, capture_output=True)
    assert file.read_bytes() == results


def test_documents_without_text_do_not_keep_the_rest_from_being_assessed(run, shipped, tmp_path):
    table = tmp_path / "holes.parquet"
    pq.write_table(pa.table({"text": ["A dog. A cat.", None, " ", "A boat."] * 10}), table)
    code, _, err = run("assess", table, "--out", tmp_path / "results.jsonl")
    assert code == 2
    assert err.count("has no text") == 20
    lines = [json.loads(line) for line in (tmp_path / "results.jsonl").read_text().splitlines()]
    assert len(lines) == 40
    assert ["error" in line for line in lines[:4]] == [False, True, True, False]
    code, _, err = run("assess", table, table, "--out", tmp_path / "more.jsonl")
    assert "20 more documents could not be assessed" in err
    # Nothing is left to do, and what could not be assessed is said again.
    assert run("assess", table, "--out", tmp_path / "results.jsonl")[0] == 2


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


def test_a_row_that_cannot_be_read_costs_nothing_but_itself(run, results, graded_file, tmp_path, monkeypatch):
    """Broken rows are told of; once they are mended, only they are assessed, and the file is as if all were whole."""
    monkeypatch.chdir(tmp_path)
    file, whole = tmp_path / "rows.jsonl", graded_file.read_bytes().splitlines(keepends=True)[:8]
    rows = list(whole)
    rows[2], rows[4], rows[7] = b'{"text": \n', b'{"text": "\xff"}\n', b'{"text": " "}\n'
    file.write_bytes(b"".join(rows))
    code, out, err = run("assess", file.name, "--out", "results.jsonl", "--threads", 1)
    assert code == 2
    assert "The results of 8 documents are in results.jsonl." in out
    place = len(b"".join(rows[:4])) + len(b'{"text": "')
    for complaint in (
        "rows.jsonl, line 3 is not a JSON object: each line must be one.",
        f"rows.jsonl, line 5 is not UTF-8 (byte {place} is not valid): save it as plain UTF-8 text.",
        "rows.jsonl:8 has no text.",
    ):
        assert complaint in err
    lines = [json.loads(line) for line in Path("results.jsonl").read_text("utf-8").splitlines()]
    assert [("error" in line) for line in lines] == [number in (2, 4, 7) for number in range(8)]
    rows[4], rows[7] = whole[4], whole[7]
    file.write_bytes(b"".join(rows))
    code, _, err = run("assess", file.name, "--out", "results.jsonl", "--threads", 1)
    assert code == 2
    assert "2 documents of those in results.jsonl can be assessed now, or are new." in err
    file.write_bytes(b"".join(whole))
    assert run("assess", file.name, "--out", "results.jsonl", "--threads", 1)[0] == 0
    found = Path("results.jsonl").read_text("utf-8").replace("rows.jsonl:", f"{graded_file}:")
    assert found.encode() == b"".join(results.splitlines(keepends=True)[:8])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["results.jsonl", "rows.jsonl"]


def test_a_full_disk_while_mended_rows_are_put_in(run, tmp_path, full_disk):
    file, out = tmp_path / "rows.jsonl", tmp_path / "results.jsonl"
    file.write_text(json.dumps({"text": TEXT}) + "\n{\n", "utf-8")
    assert run("assess", file, "--out", out)[0] == 2
    before = out.read_bytes()
    file.write_text(json.dumps({"text": TEXT}) + "\n" + json.dumps({"text": f"{TEXT} It is."}) + "\n", "utf-8")
    code, _, err = run("assess", file, "--out", out)
    assert code == 2
    assert "(No space left on device): make room and run the same command again; what is done is kept." in err
    assert out.read_bytes() == before
    full_disk()
    assert run("assess", file, "--out", out)[0] == 0
    assert len(list(tmp_path.iterdir())) == 2


def test_rows_of_separated_tables_with_too_many_fields(run, tmp_path):
    file = tmp_path / "rows.csv"
    file.write_text(f'text\n"{TEXT}"\na,b,c\n"{TEXT}"\n', "utf-8")
    code, out, err = run("assess", file, "--json")
    assert code == 2
    assert [("error" in json.loads(line)) for line in out.splitlines()] == [False, True, False]
    assert "line 3 has more fields than columns" in err


def test_results_name_ids(run, one_sentence, graded_file, starter, tmp_path):
    out = tmp_path / "results.jsonl"
    assert run("assess", graded_file, "--id-column", "id", "--out", out, "--workers", 1)[0] == 0
    lines = [json.loads(line) for line in out.read_text("utf-8").splitlines()]
    assert [line["id"] for line in lines] == [one.id for one in starter[:36]]
    assert "holds results of other documents" in one_sentence("assess", graded_file, "--out", out)
    assert starter[0].id in run("assess", graded_file, "--id-column", "id")[1]
    assert "no column 'name'" in one_sentence("assess", graded_file, "--id-column", "name")


def test_features_are_assessed_as_their_texts_are(run, one_sentence, made_store, store, graded_file, tmp_path):
    """With a model of the same settings; resumed in the middle of a file of features, too."""
    model, out, again = tmp_path / "model", tmp_path / "stored.jsonl", tmp_path / "again.jsonl"
    assert run("train", made_store, "--out", model, "--folds", 0, "--set", "training.epochs=5")[0] == 0
    assert run("assess", made_store, "--model", model, "--out", out)[0] == 0
    assert run("assess", graded_file, "--model", model, "--id-column", "id", "--out", again, "--threads", 1)[0] == 0
    stored, texts = ([json.loads(line) for line in file.read_text("utf-8").splitlines()] for file in (out, again))
    for number, (one, other) in enumerate(zip(stored, texts, strict=True), start=1):
        assert one.pop("document") == f"{made_store}:{number}"
        assert other.pop("document") == f"{graded_file}:{number}"
        assert other.pop("text_sha256").startswith(one.pop("text_sha256"))
        assert one.pop("probabilities") == pytest.approx(other.pop("probabilities"), abs=1e-6)
        assert one.pop("unlikeness") == pytest.approx(other.pop("unlikeness"), abs=1e-6)
        assert one == other
    whole = out.read_bytes()
    out.write_bytes(b"".join(whole.splitlines(keepends=True)[:14]))
    assert "14 of 36 documents done already" in run("assess", made_store, "--model", model, "--out", out)[2]
    assert out.read_bytes() == whole
    missing = tmp_path / "missing.jsonl"
    assert "or --set subgraphs.k=5." in one_sentence("assess", made_store, "--out", missing)
    assert not missing.exists()
    assert "assess it by itself" in one_sentence("assess", made_store, graded_file)
    assert "leave out --workers" in one_sentence("assess", made_store, "--workers", 2)
    assert "name columns when they are made" in one_sentence("assess", made_store, "--id-column", "id")
    assert "one of the files to assess" in one_sentence("assess", store, "--model", model, "--out", store / ABOUT)
    shard = shards_in(store)[1]
    shard.write_bytes(shard.read_bytes()[:-1])
    out.unlink()
    assert f"{shard.name} is damaged or missing" in one_sentence("assess", store, "--model", model, "--out", out)
    assert len(out.read_bytes().splitlines()) == 10


def test_some_of_the_documents_of_a_store(made_store):
    """Documents that are new are anywhere in its files, and need not be the last of one."""
    documents = StoredDocuments(made_store)
    entries, lengths = list(documents), FeatureStore(made_store).corpus().features.tally("sentences")
    assert [entry.row for entry in entries] == list(range(1, 37))
    counting = SimpleNamespace(assess=lambda features: features.tally("sentences").tolist())
    for rows in ([3, 9, 11, 35], [0, 20], [34], list(range(36))):
        scored = [one for some in documents.score([entries[row] for row in rows], counting) for one in some]
        assert [one.entry.row for one in scored] == [row + 1 for row in rows]
        assert [one.result for one in scored] == lengths[rows].tolist()


def results_of(*files):
    return [json.loads(line) for file in files for line in Path(file).read_text("utf-8").splitlines()]


def test_mended_rows_with_ids(run, tmp_path, monkeypatch):
    """Of a row that cannot be read no id is known, before or after."""
    monkeypatch.chdir(tmp_path)
    rows = [json.dumps({"id": number, "text": f"{TEXT} It is no. {number}."}) for number in range(4)]
    call = ("assess", "rows.jsonl", "--id-column", "id", "--threads", 1, "--out")
    for broken in ([1, 3], [1], []):
        lines = ["{" if number in broken else row for number, row in enumerate(rows)]
        Path("rows.jsonl").write_text("\n".join(lines), "utf-8")
        for name in ("results.jsonl", f"{len(broken)}.jsonl"):
            assert run(*call, name)[0] == (2 if broken else 0)
        assert Path("results.jsonl").read_bytes() == Path(name).read_bytes()


def test_tables_that_could_not_be_read_and_documents_that_are_new(run, one_sentence, tmp_path, monkeypatch):
    """A file that is mended, one that is added between others, and one that grew: only their documents are assessed."""
    monkeypatch.chdir(tmp_path)

    def table(name, numbers, broken=b""):
        rows = "".join(f'"{TEXT} It is no. {number}."\n' for number in numbers)
        Path(name).write_bytes(b"text\n" + rows.encode() + broken)

    call = ("assess", "a.csv", "b.csv", "c.csv", "--threads", 1, "--out")
    table("a.csv", range(2))
    table("b.csv", range(10, 13), b"\xff")
    table("c.csv", range(20, 22))
    assert run(*call, "results.jsonl")[0] == 2
    assert [("error" in line) for line in results_of("results.jsonl")] == [False, False, True, False, False]
    table("b.csv", range(10, 13))
    assert "3 documents of those in results.jsonl can be assessed now" in run(*call, "results.jsonl")[2]
    assert run(*call, "new.jsonl")[0] == 0
    assert Path("results.jsonl").read_bytes() == Path("new.jsonl").read_bytes()
    table("d.csv", range(30, 31))
    more = ("assess", "a.csv", "d.csv", "b.csv", "c.csv", "--threads", 1, "--out", "results.jsonl")
    assert run(*more)[0] == 0
    assert [line["document"][0] for line in results_of("results.jsonl")] == list("aadbbbcc")
    assert sorted(path.name for path in tmp_path.glob("*results*")) == ["results.jsonl"]
    before = Path("results.jsonl").read_bytes()
    assert "holds results of other documents" in one_sentence(*call, "results.jsonl")
    assert Path("results.jsonl").read_bytes() == before


@pytest.mark.parametrize("kept", [0, 1, 400, 900, None])
def test_an_interrupted_mending_goes_on(run, tmp_path, monkeypatch, kept):
    """What is there of the mended documents is taken, if it is theirs."""
    monkeypatch.chdir(tmp_path)
    rows = [json.dumps({"text": f"{TEXT} It is no. {number}."}) for number in range(4)]
    call = ("assess", "rows.jsonl", "--threads", 1, "--out")
    Path("rows.jsonl").write_text("\n".join(["{", rows[1], "{", rows[3]]), "utf-8")
    assert run(*call, "results.jsonl")[0] == 2
    Path("rows.jsonl").write_text("\n".join(rows), "utf-8")
    assert run(*call, "new.jsonl")[0] == 0
    whole = Path("new.jsonl").read_bytes().splitlines(keepends=True)
    mended = whole[0] + whole[2] if kept is not None else whole[1]
    Path("results.jsonl.mended").write_bytes(mended[:kept])
    assert run(*call, "results.jsonl")[0] == 0
    assert Path("results.jsonl").read_bytes() == b"".join(whole)
    assert not Path("results.jsonl.mended").exists()


def test_standard_input_that_was_empty(run, tmp_path):
    out = tmp_path / "results.jsonl"
    assert run("assess", "-", "--out", out)[0] == 2
    assert run("assess", "-", "--out", out, stdin=TEXT.encode())[0] == 0
    assert results_of(out)[0]["level"]


def test_a_results_file_behind_a_link(run, tmp_path):
    file, out, link = tmp_path / "rows.jsonl", tmp_path / "results.jsonl", tmp_path / "link.jsonl"
    file.write_text("{\n", "utf-8")
    out.touch(0o600)
    link.symlink_to(out)
    assert run("assess", file, "--out", link)[0] == 2
    file.write_text(json.dumps({"text": TEXT}), "utf-8")
    assert run("assess", file, "--out", link)[0] == 0
    assert link.is_symlink()
    assert "level" in results_of(out)[0]
    assert out.stat().st_mode & 0o777 == 0o600


def test_names_that_are_too_long_for_files(run, text_file):
    code, out, err = run("assess", text_file, "a" * 300, "--json")
    assert code == 2
    assert "level" in json.loads(out.splitlines()[0])
    assert "File name too long" in err
