"""Documents from tables, files and folders: one reader and one set of rules for all commands."""

from __future__ import annotations

import csv
import decimal
import json
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cohegraph.corpora.columns import Columns, Entry
from cohegraph.corpora.own import collected, read_own
from cohegraph.corpora.stream import Documents
from cohegraph.corpora.tables import read_plain_text
from cohegraph.errors import CohegraphError, DamagedFileError

ROWS = [
    {"text": 'A "quoted", text.\nSecond line.', "label": "low", "topic": "a", "name": "x"},
    {"text": "Ünïcödé \u2028 and a form feed \x0c here", "label": "high", "topic": "b", "name": "y"},
]
LABELLED = Columns(label="label")


def write(folder, ending, rows=ROWS):
    file = folder / f"corpus.{ending}"
    if ending == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), file)
    elif ending in ("jsonl", "ndjson"):
        file.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8-sig")
    else:
        with file.open("w", encoding="utf-8-sig", newline="") as stream:
            writer = csv.DictWriter(stream, rows[0], delimiter="\t" if ending == "tsv" else ",")
            writer.writeheader()
            writer.writerows(rows)
    return file


def complaint(call, *arguments, **options):
    """The error that reading gives."""
    with pytest.raises(CohegraphError) as caught:
        call(*arguments, **options)
    return caught.value


def usable(file, columns=LABELLED, *, labelled=True):
    return list(Documents([str(file)], columns).usable(labelled=labelled))


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "ndjson", "parquet"])
def test_every_format_gives_the_same_documents(tmp_path, ending):
    file = write(tmp_path, ending)
    corpus = read_own(file, group_column="topic", id_column="name")
    assert corpus.texts == tuple(row["text"] for row in ROWS)
    assert corpus.labels == ("low", "high")
    assert corpus.groups == ("a", "b")
    assert corpus.ids == ("x", "y")
    assert [entry.text for entry in Documents([str(file)])] == list(corpus.texts)
    assert list(corpus) == [
        Entry(name, row["text"], name, row["label"], row["topic"], number)
        for number, (name, row) in enumerate(zip(corpus.ids, ROWS, strict=True), start=1)
    ]


@pytest.mark.parametrize(
    ("name", "content", "kind", "code", "facts"),
    [
        ("a.csv", b"", CohegraphError, "no-rows", ["a.csv"]),
        ("a.csv", b"text,label\n", CohegraphError, "no-rows", ["a.csv"]),
        ("a.csv", b"body,label\nx,low\n", CohegraphError, "missing-column", ["'text'", "body, label"]),
        ("a.csv", b"text,label\nx,low\ny,\nz, \n", CohegraphError, "missing-label", ["2 of 3", "a.csv:2", "label"]),
        ("a.csv", b"text,label\n,low\ny,high\n", CohegraphError, "missing-text", ["a.csv:1", "text"]),
        ("a.csv", b"text,label\n\xff\xfe,low\n", CohegraphError, "not-utf-8", ["byte 11"]),
        ("a.csv", b'text,label\n"open,low\n', DamagedFileError, "damaged-file", ["a.csv"]),
        ("a.csv", b"text,label\nThe dog ran, and sat,low\n", DamagedFileError, "damaged-file", ["line 2"]),
        ("a.csv", b"text,label,text\nx,low,y\n", DamagedFileError, "same-columns", ["a.csv"]),
        ("a.jsonl", b'{"text": "x", "label": 1}\n{"text": 5, "label": 2}\n', CohegraphError, "not-a-text", [":2"]),
        ("a.jsonl", b'{"text": "x", "label": [1]}\n', CohegraphError, "not-a-label", ["a.jsonl:1"]),
        ("a.jsonl", b'{"text": "x", "label": Infinity}\n', CohegraphError, "label-not-finite", ["a.jsonl:1"]),
        ("a.jsonl", b'{"text": "x", "label": "-inf"}\n', CohegraphError, "label-not-finite", ["a.jsonl:1", "-inf"]),
        ("a.jsonl", b'{"text": "x", "label": 1e400}\n', CohegraphError, "label-not-finite", ["a.jsonl:1"]),
        ("a.jsonl", b'{"text": "x", "label": 12345678901234567}\n', CohegraphError, "label-too-large", [":1"]),
        ("a.jsonl", b'{"text": 1}\n[1]\n', DamagedFileError, "damaged-file", ["line 2"]),
        ("a.jsonl", b'{"text": "x"\n', DamagedFileError, "damaged-file", ["line 1"]),
        ("a.jsonl", b"PK\x03\x04\x00\x00", CohegraphError, "binary", ["a.jsonl"]),
        ("a.parquet", b"PAR1 nothing", DamagedFileError, "damaged-file", ["a.parquet"]),
        ("a.docx", b"x", CohegraphError, "missing-label", ["a.docx", "label"]),
    ],
)
def test_what_is_wrong_is_said(tmp_path, name, content, kind, code, facts):
    (tmp_path / name).write_bytes(content)
    error = complaint(usable, tmp_path / name)
    assert (type(error), error.code) == (kind, code)
    assert all(fact in str(error) for fact in facts), str(error)


@pytest.mark.parametrize("text", ["5", "0.5", '{"a": 1}', "[1]", "true"])
def test_a_text_that_is_none_is_not_skipped_as_empty(tmp_path, text):
    file = tmp_path / "a.jsonl"
    file.write_text(f'{{"text": "x", "label": 1}}\n{{"text": {text}, "label": 2}}\n')
    error = complaint(usable, file, Columns(label="label", skip_empty=True))
    assert error.code == "not-a-text"
    assert "a.jsonl:2" in str(error)
    assert [bool(entry.problem) for entry in Documents([str(file)])] == [False, True]


def test_missing_files_and_folders(tmp_path):
    assert complaint(usable, tmp_path / "a.csv").code == "missing-file"
    assert complaint(usable, tmp_path / "a.txt", labelled=False).code == "missing-file"
    assert complaint(usable, tmp_path).code == "empty-folder"
    assert complaint(read_plain_text, tmp_path).code == "is-a-folder"


def test_rows_can_be_left_out(tmp_path):
    file = tmp_path / "a.csv"
    file.write_text("text,label\nx,low\ny,\n,low\nz,high\nw,nan\n", "utf-8")
    assert len(usable(file, Columns(skip_empty=True), labelled=False)) == 4
    assert complaint(usable, file, Columns(label="label", skip_unlabelled=True)).code == "missing-text"
    assert complaint(usable, file, Columns(label="label", skip_empty=True)).code == "missing-label"
    documents = Documents([str(file)], Columns(label="label", skip_empty=True, skip_unlabelled=True))
    corpus = collected(documents, "a")
    assert corpus.texts == ("x", "z")
    assert corpus.ids == ("1", "2")
    assert [remark[:6] for remark in documents.remarks] == ["2 of 5", "1 of 5"]
    file.write_text("text,label\nx,1\n,\n", "utf-8")
    for skipped in ("skip_empty", "skip_unlabelled"):
        assert [entry.text for entry in usable(file, Columns(label="label", **{skipped: True}))] == ["x"]
    file.write_text("text,label\ny,\n", "utf-8")
    assert complaint(read_own, file, skip_unlabelled=True).code == "no-documents"


def test_what_is_named_must_be_there(tmp_path):
    file = tmp_path / "a.jsonl"
    file.write_text('{"text": "x", "topic": "a"}\n{"text": "y", "name": 7}\n')
    for columns, code, row in (
        (Columns(group="topic"), "missing-group", 2),
        (Columns(id="name"), "missing-id", 1),
        (Columns(section="topic"), "missing-section", 2),
    ):
        error = complaint(usable, file, columns, labelled=False)
        assert error.code == code
        assert f"a.jsonl:{row}" in str(error)
    # Whoever assesses does without.
    assert [entry.id for entry in Documents([str(file)], Columns(id="name"))] == [None, "7"]


def test_a_label_column_that_may_be_missing(tmp_path):
    file = tmp_path / "a.jsonl"
    file.write_text('{"text": "x"}\n{"text": "y"}\n')
    columns = Columns(label="label", optional_label=True)
    assert [entry.label for entry in usable(file, columns, labelled=False)] == [None, None]
    file.write_text('{"text": "x"}\n{"text": "y", "label": 3}\n')
    assert [entry.label for entry in usable(file, columns, labelled=False)] == [None, 3]
    pq.write_table(pa.table({"text": ["x"]}), tmp_path / "a.parquet")
    assert [entry.label for entry in usable(tmp_path / "a.parquet", columns, labelled=False)] == [None]


@pytest.mark.parametrize(
    ("labels", "levels"),
    [
        ([3, 1, 2], (1, 2, 3)),
        ([3.0, 1.0], (1.0, 3.0)),
        ([True, False, True], (False, True)),
        ([0, 1], (0, 1)),
        (["high", "low"], ("low", "high")),
    ],
)
@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_labels_stay_what_they_are(tmp_path, ending, labels, levels):
    corpus = read_own(write(tmp_path, ending, [{"text": f"text {label}", "label": label} for label in labels]))
    assert corpus.labels == tuple(labels)
    assert corpus.levels == levels
    assert {type(label) for label in (*corpus.labels, *corpus.levels)} == {type(labels[0])}
    assert corpus.in_words().levels == tuple(map(str, levels))


def test_decimal_labels_are_numbers(tmp_path):
    for values, labels in ((["1.00", "2.00"], (1, 2)), (["1.50", "2.00"], (1.5, 2.0))):
        table = pa.table({"text": ["x", "y"], "label": pa.array(map(decimal.Decimal, values), pa.decimal128(5, 2))})
        pq.write_table(table, tmp_path / "a.parquet")
        documents = Documents([str(tmp_path / "a.parquet")], Columns(label="label"))
        assert collected(documents, "a", rated=True).labels == labels


def test_ratings_are_no_levels(tmp_path):
    file = write(tmp_path, "jsonl", [{"text": f"text {label}", "label": label} for label in (0.5, 0.25, 1.0)])
    assert complaint(read_own, file).code == "ratings-as-levels"
    corpus = collected(Documents([str(file)], Columns(label="label")), "rated", rated=True)
    assert (corpus.labels, corpus.levels) == ((0.5, 0.25, 1.0), ())


def test_two_columns_of_one_name_in_parquet(tmp_path):
    table = pa.table([pa.array(["x"]), pa.array(["low"]), pa.array(["y"])], names=["text", "label", "text"])
    pq.write_table(table, tmp_path / "a.parquet")
    assert complaint(usable, tmp_path / "a.parquet").code == "same-columns"


def test_folders_of_tables_are_one_corpus(tmp_path):
    folder = tmp_path / "parts"
    (folder / "deep").mkdir(parents=True)
    pq.write_table(pa.table({"text": ["one", "two"], "label": [1, 2]}), folder / "a.parquet")
    (folder / "deep" / "b.jsonl").write_text('{"text": "three"}\n')
    documents = Documents([str(folder)], Columns(label="label", optional_label=True))
    assert len(documents) == 3
    assert [(entry.text, entry.label) for entry in documents] == [("one", 1), ("two", 2), ("three", None)]
    (folder / "note.txt").write_text("four")
    mixed = Documents([str(folder)])
    assert [(entry.text, entry.id) for entry in mixed] == [("four", None)]
    assert [entry.id for entry in mixed.usable()] == [str(folder / "note.txt")]
    assert len(mixed.remarks) == 1


def test_a_table_that_changes_while_it_is_read_is_noticed(tmp_path):
    file = tmp_path / "table.jsonl"
    file.write_text('{"text": "one"}\n{"text": "two"}\n')
    documents = Documents([str(file)], Columns(skip_empty=True))
    documents.check()
    file.write_text('{"text": "one"}\n')
    assert [entry.error and entry.error.code for entry in documents] == [None, "changed-file"]
    assert complaint(list, documents.usable()).code == "changed-file"


def test_reading_imports_no_torch(tmp_path):
    file = write(tmp_path, "parquet")
    program = (
        "import sys; from pathlib import Path; from cohegraph.corpora.own import read_own; "
        "from cohegraph.corpora.registry import read_corpus; from cohegraph.corpora.starter import starter_corpus; "
        f"assert len(read_own(Path({str(file)!r}))) == 2; assert len(starter_corpus()) == 90; "
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
