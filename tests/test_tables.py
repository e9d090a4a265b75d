"""Graded documents from tables, and what is wrong with some."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cohegraph.corpora.tables import read_graded, read_plain_text, read_texts
from cohegraph.errors import CohegraphError

ROWS = [
    {"text": 'A "quoted", text.\nSecond line.', "label": "low", "topic": "a"},
    {"text": "Ünïcödé \u2028 and a form feed \x0c here", "label": "high", "topic": "b"},
]


def write(folder, ending):
    file = folder / f"corpus.{ending}"
    if ending == "parquet":
        pq.write_table(pa.Table.from_pylist(ROWS), file)
    elif ending == "jsonl":
        file.write_text("".join(json.dumps(row) + "\n" for row in ROWS), "utf-8")
    else:
        import csv

        with file.open("w", encoding="utf-8-sig", newline="") as stream:
            writer = csv.DictWriter(stream, ROWS[0], delimiter="\t" if ending == "tsv" else ",")
            writer.writeheader()
            writer.writerows(ROWS)
    return file


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "parquet"])
def test_every_format_gives_the_same_documents(tmp_path, ending):
    documents = read_graded(write(tmp_path, ending), group_column="topic")
    assert documents.texts == [row["text"] for row in ROWS]
    assert documents.labels == ["low", "high"]
    assert documents.groups == ["a", "b"]
    assert read_texts(tmp_path / f"corpus.{ending}") == documents.texts


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", b"", "no rows"),
        ("a.csv", b"text,label\n", "no rows"),
        ("a.csv", b"body,label\nx,low\n", "no column 'text': its columns are body, label"),
        ("a.csv", b"text,label\nx,low\ny,\nz, \n", r"2 of 3 rows have no label \(row 2, 3\)"),
        ("a.csv", b"text,label\n,low\ny,high\n", r"1 rows have no text \(row 1\)"),
        ("a.csv", b"text,label\n\xff\xfe,low\n", "not UTF-8"),
        ("a.csv", b'text,label\n"open,low\n', "not a table"),
        ("a.csv", b"text,label\nThe dog ran, and sat,low\n", "line 2 has more fields than columns"),
        ("a.csv", b"text,label,text\nx,low,y\n", "two columns of the same name"),
        ("a.jsonl", b'{"text": 5, "label": "low"}\n{"text": ["a"], "label": "low"}\n', r"have no text \(row 1, 2\)"),
        ("a.jsonl", b'{"text": 1}\n[1]\n', "line 2 is not a JSON object"),
        ("a.jsonl", b'{"text": "x"\n', "line 1 is not a JSON object"),
        ("a.jsonl", b"PK\x03\x04\x00\x00", "is binary"),
        ("a.parquet", b"PAR1 nothing", "not a Parquet file"),
        ("a.docx", b"x", "must end in .csv"),
    ],
)
def test_what_is_wrong_is_said(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(CohegraphError, match=message):
        read_graded(tmp_path / name)


def test_missing_files_and_folders(tmp_path):
    with pytest.raises(CohegraphError, match="There is no file"):
        read_graded(tmp_path / "a.csv")
    with pytest.raises(CohegraphError, match="is a folder"):
        read_plain_text(tmp_path)


def test_unlabelled_rows_can_be_left_out(tmp_path):
    (tmp_path / "a.csv").write_text("text,label\nx,low\ny,\nz,high\n", "utf-8")
    assert read_graded(tmp_path / "a.csv", skip_unlabelled=True).texts == ["x", "z"]


def test_two_columns_of_one_name_in_parquet(tmp_path):
    table = pa.table([pa.array(["x"]), pa.array(["low"]), pa.array(["y"])], names=["text", "label", "text"])
    pq.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(CohegraphError, match="two columns of the same name"):
        read_graded(tmp_path / "a.parquet")
