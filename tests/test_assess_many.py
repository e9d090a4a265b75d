"""Many documents assessed by the command: results in a file, from which a stopped run resumes."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
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
from cohegraph.scale.scoring import StoredDocuments


@pytest.fixture(scope="module")
def results(tmp_path_factory, graded_file, shipped):
    """What an undisturbed run writes."""
    file = tmp_path_factory.mktemp("results") / "results.jsonl"
    subprocess.run(to_file(graded_file, file), check=True, capture_output=True)
    return file.read_bytes()


def to_file(documents, out):
    return [*COMMAND, "assess", str(documents), "--threads", "1", "--out", str(out)]


def lines_of(file):
    return [json.loads(line) for line in Path(file).read_text("utf-8").splitlines()]


def test_results_are_written_in_order(results, graded_file, shipped, starter):
    lines = [json.loads(line) for line in results.splitlines()]
    assert [line["document"] for line in lines] == [f"{graded_file}:{number}" for number in range(1, 37)]
    expected = shipped.assess([one.text for one in starter[:36]])
    assert [line["level"] for line in lines] == [one.level for one in expected]
    assert lines[3]["probabilities"] == expected[3].to_dict()["probabilities"]
    assert {line["model"] for line in lines} == {"starter"}


@pytest.mark.parametrize("kept", [0, 5_000, None])
def test_a_run_that_was_cut_resumes_to_the_same_bytes(run, results, graded_file, tmp_path, kept):
    file = tmp_path / "results.jsonl"
    file.write_bytes(results[:kept])
    assert run("assess", graded_file, "--threads", 1, "--out", file)[0] == 0
    assert file.read_bytes() == results


def test_results_of_others_are_not_touched(one_sentence, results, graded_file, tmp_path, text_file):
    file = tmp_path / "results.jsonl"
    sha256 = json.loads(results.splitlines()[0])["model_sha256"].encode()
    for content in (
        results.replace(sha256, sha256[::-1]),
        b"text,label\nprecious,1\n",
        b"precious",
        results[:3000] + b"\x00\n" + results[3000:],
    ):
        file.write_bytes(content)
        one_sentence("assess", graded_file, "--out", file)
        assert file.read_bytes() == content
    text = text_file.read_bytes()
    for place in (tmp_path / "absent" / "results.jsonl", tmp_path, "/dev/full", text_file):
        one_sentence("assess", text_file, "--out", place)
    assert text_file.read_bytes() == text
    assert sorted(path.name for path in tmp_path.iterdir()) == [file.name, text_file.name]
    text_file.write_bytes(b"")
    one_sentence("assess", text_file, "--out", text_file)
    assert not text_file.read_bytes()


def test_one_process_writes_results(one_sentence, graded_file, tmp_path):
    file = tmp_path / "results.jsonl"
    with file.open("w") as stream:
        assert lock(stream)
        one_sentence("assess", graded_file, "--out", file)
    assert not file.read_bytes()


@pytest.mark.parametrize(
    "arguments",
    [
        ["absent.txt"],
        ["absent.txt", "--workers", "2"],
        ["table.csv"],
        ["table.csv", "--text-column", "a", "--id-column", "id"],
        ["empty.txt", "--out", "absent/results.jsonl"],
        ["text.txt", "--out", "table.csv"],
        ["text.txt", "--out", "text.txt"],
        ["text.txt", "--model", "absent"],
        ["text.txt", "--model", "."],
        ["text.txt", "--retry-errors"],
        ["text.txt", "--device", "gpu"],
        ["text.txt", "--json", "--out", "results.jsonl"],
    ],
)
def test_bad_input_is_refused_before_torch_is_imported(arguments, tmp_path, text_file):
    (tmp_path / "table.csv").write_text("a\nb\n", "utf-8")
    program = """if True:
        import sys
        from cohegraph.cli import main
        try:
            main()
        except SystemExit as exit:
            sys.exit(99 if "torch" in sys.modules else exit.code)
    """
    command = [sys.executable, "-c", program, "assess", *arguments]
    assert subprocess.run(command, check=False, capture_output=True, cwd=tmp_path).returncode == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["table.csv", "text.txt"]


def test_nothing_is_loaded_where_nothing_is_left_to_do(run, results, graded_file, tmp_path, monkeypatch):
    file = tmp_path / "results.jsonl"
    file.write_bytes(results)
    monkeypatch.setattr("cohegraph.cli.assess.load", None)
    assert run("assess", graded_file, "--out", file, "--workers", 2)[0] == 0
    assert file.read_bytes() == results


def test_a_full_disk_keeps_the_results(one_sentence, run, results, graded_file, tmp_path, full_disk):
    file = tmp_path / "results.jsonl"
    one_sentence("assess", graded_file, "--threads", 1, "--out", file)
    assert file.read_bytes()
    full_disk()
    assert run("assess", graded_file, "--threads", 1, "--out", file)[0] == 0
    assert file.read_bytes() == results


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGKILL, -9), (signal.SIGTERM, 130)])
def test_a_stopped_process_resumes_to_the_same_bytes(results, graded_file, tmp_path, sent, code):
    file = tmp_path / "results.jsonl"
    process = subprocess.Popen(to_file(graded_file, file), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while process.poll() is None and not (file.exists() and file.stat().st_size):
        time.sleep(0.005)
    process.send_signal(sent)
    assert process.wait() == code
    assert 0 < file.stat().st_size < len(results)
    subprocess.run(to_file(graded_file, file), check=True, capture_output=True)
    assert file.read_bytes() == results


def test_several_workers_give_the_same_results(results, graded_file, tmp_path):
    file = tmp_path / "results.jsonl"
    command = [*COMMAND, "assess", str(graded_file), "--workers", "2", "--out", str(file)]
    subprocess.run(command, check=True, capture_output=True)
    assert file.read_bytes() == results


def test_documents_without_text_do_not_keep_the_rest_from_being_assessed(run, shipped, tmp_path):
    table, file = tmp_path / "holes.parquet", tmp_path / "results.jsonl"
    pq.write_table(pa.table({"text": ["A dog. A cat.", None, " ", "A boat."] * 10}), table)
    code, _, err = run("assess", table, "--out", file)
    assert code == 2
    assert len(err.splitlines()) == 20
    assert ["error" in line for line in lines_of(file)] == [False, True, True, False] * 10
    # Nothing is left to do, and what could not be assessed is reported again.
    before = file.read_bytes()
    for option in ([], ["--retry-errors"]):
        code, _, err = run("assess", table, "--out", file, *option)
        assert code == 2
        assert len(err.splitlines()) == 21
        assert file.read_bytes() == before


def test_the_same_files_given_twice_are_documents_of_their_own(run, shipped, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("a.txt").write_text(TEXT, "utf-8")
    Path("a.txt (2)").write_text(f"{TEXT} It is another.", "utf-8")
    Path("b.csv").write_text(f"text\n{TEXT}\n{TEXT}\n", "utf-8")
    call = ("assess", "a.txt", "b.csv", "a.txt", "a.txt (2)", "b.csv", "-", "-", "--threads", 1, "--out", "out.jsonl")
    assert run(*call, stdin=TEXT.encode())[0] == 0
    whole, file = Path("out.jsonl").read_bytes(), Path("out.jsonl")
    assert len({line["document"] for line in lines_of(file)}) == len(lines_of(file)) == 9
    for kept in (1, 3, 5, 7, 9):
        file.write_bytes(b"".join(whole.splitlines(keepends=True)[:kept]))
        assert run(*call, stdin=TEXT.encode())[0] == 0
        assert file.read_bytes() == whole


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
        assert f"(byte {place})" in one_sentence("assess", file)
    file.write_bytes(b'{"text": "\xc3')
    assert "(byte 10)" in one_sentence("assess", file)


def test_rows_that_cannot_be_read_are_errors_until_they_are_retried(run, results, graded_file, tmp_path, monkeypatch):
    """Only rows that were repaired are assessed again, with the results that they would have had at once."""
    monkeypatch.chdir(tmp_path)
    file, whole = tmp_path / "rows.jsonl", graded_file.read_bytes().splitlines(keepends=True)[:8]
    call = ("assess", file.name, "--out", "results.jsonl", "--threads", 1)
    rows = list(whole)
    rows[2], rows[4], rows[7] = b'{"text": \n', b'{"text": "\xff"}\n', b'{"text": " "}\n'
    file.write_bytes(b"".join(rows))
    assert run(*call)[0] == 2
    first = Path("results.jsonl").read_bytes()
    assert [("error" in line) for line in lines_of("results.jsonl")] == [number in (2, 4, 7) for number in range(8)]
    assert {line["text_sha256"] for line in lines_of("results.jsonl") if "error" in line} == {None}
    rows[4], rows[7] = whole[4], whole[7]
    file.write_bytes(b"".join(rows))
    assert run(*call)[0] == 2
    assert Path("results.jsonl").read_bytes() == first
    assert run(*call, "--retry-errors")[0] == 2
    second = Path("results.jsonl").read_bytes()
    assert second.startswith(first)
    file.write_bytes(b"".join(whole))
    assert run(*call, "--retry-errors")[0] == 0
    assert run(*call)[0] == 0
    assert Path("results.jsonl").read_bytes().startswith(second)
    assert len(lines_of("results.jsonl")) == 11
    last = {line["document"]: line for line in lines_of("results.jsonl")}
    expected = [json.loads(line) for line in results.splitlines()[:8]]
    assert list(last.values()) == [{**line, "document": f"rows.jsonl:{n}"} for n, line in enumerate(expected, start=1)]


def test_rows_of_separated_tables_with_too_many_fields(run, tmp_path):
    file = tmp_path / "rows.csv"
    file.write_text(f'text\n"{TEXT}"\na,b,c\n"{TEXT}"\n', "utf-8")
    code, out, err = run("assess", file, "--json")
    assert code == 2
    assert [("error" in json.loads(line)) for line in out.splitlines()] == [False, True, False]
    assert "line 3 has more fields than columns" in err


def test_results_name_ids(run, one_sentence, graded_file, starter, tmp_path):
    out = tmp_path / "results.jsonl"
    for _ in range(2):
        assert run("assess", graded_file, "--id-column", "id", "--out", out)[0] == 0
        assert [line["id"] for line in lines_of(out)] == [one.id for one in starter[:36]]
    assert starter[0].id in run("assess", graded_file, "--id-column", "id")[1]
    one_sentence("assess", graded_file, "--id-column", "name")


def test_features_are_assessed_as_their_texts_are(
    run, one_sentence, made_store, store, graded_file, tmp_path, monkeypatch
):
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
    assert run("assess", made_store, "--model", model, "--out", out)[0] == 0
    assert out.read_bytes() == whole
    with monkeypatch.context() as patched:
        patched.setattr("cohegraph.cli.assess.load", None)  # nothing is left to do
        assert run("assess", made_store, "--model", model, "--out", out)[0] == 0
    # Where results are missing here and there, too.
    lines = whole.splitlines(keepends=True)
    out.write_bytes(b"".join(lines[:5] + lines[9:14] + lines[20:35]))
    assert run("assess", made_store, "--model", model, "--out", out)[0] == 0
    assert sorted(out.read_bytes().splitlines(keepends=True)) == sorted(lines)
    missing = tmp_path / "missing.jsonl"
    assert "or --set subgraphs.k=5." in one_sentence("assess", made_store, "--out", missing)
    assert not missing.exists()
    assert "assess it by itself" in one_sentence("assess", made_store, graded_file)
    assert "leave out --workers" in one_sentence("assess", made_store, "--workers", 2)
    assert "name columns when they are made" in one_sentence("assess", made_store, "--id-column", "id")
    assert "one of the files to assess" in one_sentence("assess", store, "--model", model, "--out", store / ABOUT)
    shard = shards_in(store)[2]
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
        scored = [one for some in documents.score([entries[row] for row in rows], lambda: counting) for one in some]
        assert [one.entry.row for one in scored] == [row + 1 for row in rows]
        assert [one.result for one in scored] == lengths[rows].tolist()


def test_documents_that_are_added_moved_or_changed_are_appended(run, shipped, tmp_path, monkeypatch):
    """A table that was unreadable as a whole is one document then, and its rows are new ones."""
    monkeypatch.chdir(tmp_path)

    def table(name, numbers, broken=b""):
        rows = "".join(f'"{TEXT} It is no. {number}."\n' for number in numbers)
        Path(name).write_bytes(b"text\n" + rows.encode() + broken)

    def appended(*files):
        known = len(lines_of("results.jsonl")) if Path("results.jsonl").exists() else 0
        code = run("assess", *files, "--threads", 1, "--out", "results.jsonl")[0]
        return code, [line["document"] for line in lines_of("results.jsonl")[known:]]

    table("a.csv", range(2))
    table("b.csv", range(10, 13), b"\xff")
    assert appended("a.csv", "b.csv") == (2, ["a.csv:1", "a.csv:2", "b.csv"])
    table("b.csv", range(10, 13))
    assert appended("a.csv", "b.csv") == (0, ["b.csv:1", "b.csv:2", "b.csv:3"])
    table("c.csv", range(20, 21))
    assert appended("c.csv", "b.csv", "a.csv") == (0, ["c.csv:1"])
    table("a.csv", [0, 5, 1])
    assert appended("a.csv") == (0, ["a.csv:2", "a.csv:3"])
    table("a.csv", range(2))
    assert appended("a.csv", "b.csv", "c.csv") == (0, ["a.csv:2"])
    assert appended("a.csv", "b.csv", "c.csv") == (0, [])


def test_standard_input_that_was_empty(run, tmp_path):
    out = tmp_path / "results.jsonl"
    assert run("assess", "-", "--out", out)[0] == 2
    assert run("assess", "-", "--out", out, stdin=TEXT.encode())[0] == 2
    assert run("assess", "-", "--out", out, "--retry-errors", stdin=TEXT.encode())[0] == 0
    assert ["error" in line for line in lines_of(out)] == [True, False]


def test_a_results_file_behind_a_link(run, tmp_path):
    file, out, link = tmp_path / "rows.jsonl", tmp_path / "results.jsonl", tmp_path / "link.jsonl"
    file.write_text("{\n", "utf-8")
    out.touch(0o600)
    link.symlink_to(out)
    assert run("assess", file, "--out", link)[0] == 2
    assert link.is_symlink()
    assert len(lines_of(out)) == 1
    assert out.stat().st_mode & 0o777 == 0o600


def test_names_that_are_too_long_for_files(run, text_file):
    code, out, err = run("assess", text_file, "a" * 300, "--json")
    assert code == 2
    assert "level" in json.loads(out.splitlines()[0])
    assert "File name too long" in err
