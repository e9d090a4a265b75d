"""``cohegraph corrupt``."""

from __future__ import annotations

import gzip
import json
import os
from collections import Counter
from random import Random

import numpy as np
import pytest
from made_prose import ParserDouble, made_up
from material import refused_without_torch

from cohegraph.corpora.corruptions import chosen


@pytest.fixture(autouse=True)
def _parser(monkeypatch):
    monkeypatch.setattr("cohegraph.text.spacy_parser.SpacyParser", ParserDouble)


@pytest.fixture
def prose(tmp_path):
    """A compressed table of works with two parts each."""
    random = Random(0)
    ids = [f"{source}/{work}/{part}" for source in "ab" for work in "wxyz" for part in "01"]
    rows = [{"id": id, "source": id[0], "genre": "made up", "text": made_up(random, id, 8)} for id in ids]
    file = tmp_path / "prose.jsonl.gz"
    file.write_bytes(gzip.compress("".join(json.dumps(row) + "\n" for row in rows).encode()))
    return file


def rows_of(file):
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()]


def test_pairs_of_all_kinds_are_written(run, prose, tmp_path):
    out = tmp_path / "pairs.jsonl"
    code, told, err = run("corrupt", prose, "--out", out)
    assert (code, err) == (0, "")
    rows = rows_of(out)
    made = Counter(f"{row['kind']}:{row['donor']}" if row["donor"] else row["kind"] for row in rows)
    # In one text, no two names can be exchanged; none has a connective.
    assert made == dict.fromkeys([name for name in chosen() if name != "connective"], 16) | {"names": 15}
    told = " ".join(told.split())
    assert f"{len(rows)} pairs from 16 texts" in told
    assert "join:source 16" in told
    assert "names 1, connective 16." in told
    for row in rows:
        assert row["text"] != row["original"]
        assert len(row["spans"]) == len(row["origins"])
        sentences = row["text"].replace("\n\n", " ").replace(". ", ".|").split("|")
        assert [row["text"][start:end] for start, end in row["spans"]] == sentences
        assert row["damage"] == pytest.approx(len(row["breaks"]) / (len(row["spans"]) - 1), abs=1e-4)
        assert [number for number, (id, _) in enumerate(row["origins"]) if id != row["id"]] == row["foreign"]
    assert not list(tmp_path.glob(".*"))


def test_the_same_bytes_again(run, prose, tmp_path):
    first, again, other = (tmp_path / f"{name}.jsonl" for name in ("first", "again", "other"))
    for file in (first, again):
        assert run("corrupt", prose, "--out", file)[0] == 0
    assert run("corrupt", prose, "--out", other, "--seed", "1")[0] == 0
    assert first.read_bytes() == again.read_bytes() != other.read_bytes()


def test_kinds_versions_and_limit(run, prose, tmp_path):
    out = tmp_path / "pairs.jsonl"
    assert run("corrupt", prose, "--out", out, "--kinds", "swap, join", "--versions", "2", "--limit", "6")[0] == 0
    rows = rows_of(out)
    assert {row["kind"] for row in rows} <= {"swap", "join"}
    assert set(Counter(row["id"] for row in rows).values()) == {2}
    assert len({row["id"] for row in rows}) == 6


def test_columns_are_named(run, tmp_path):
    table, out = tmp_path / "table.csv", tmp_path / "pairs.jsonl"
    random = Random(1)
    lines = [f'{number},{number // 3},all,"{made_up(random, number, 8)}"' for number in range(6)]
    table.write_text("\n".join(["key,book,shelf,words", *lines]) + "\n")
    columns = ["--text-column", "words", "--id-column", "key", "--work-column", "book", "--source-column", "shelf"]
    assert run("corrupt", table, "--out", out, "--kinds", "insert:work,join:source", *columns)[0] == 0
    rows = rows_of(out)
    assert len(rows) == 12
    for row in rows:
        foreign = {int(id) for id, _ in row["origins"] if id != row["id"]}
        same_book = {number for number in range(6) if number // 3 == int(row["id"]) // 3}
        assert foreign <= same_book if row["donor"] == "work" else foreign.isdisjoint(same_book)


def test_a_folder_of_text_files(run, tmp_path):
    random = Random(2)
    (tmp_path / "texts").mkdir()
    for number in range(4):
        (tmp_path / "texts" / f"{number}.txt").write_text(made_up(random, number, 8))
    out = tmp_path / "pairs.jsonl"
    code, told, _ = run("corrupt", tmp_path / "texts", "--out", out, "--kinds", "shuffle,insert:source,insert:work")
    assert code == 0
    assert Counter(row["kind"] for row in rows_of(out)) == {"shuffle": 4, "insert": 4}
    assert "insert:work 4" in " ".join(told.split())


def test_the_encoder_is_loaded_for_similar_sentences_alone(run, prose, tmp_path, monkeypatch):
    asked = []

    class EncoderDouble:
        dimensions = 8

        def __init__(self, **_):
            asked.append(self)

        def encode(self, texts):
            vectors = [np.random.default_rng(list(text.encode())).normal(size=8) for text in texts]
            return type("Encoded", (), {"vectors": np.array(vectors, dtype=np.float32)})

    monkeypatch.setattr("cohegraph.text.encoder.TransformerEncoder", EncoderDouble)
    out = tmp_path / "pairs.jsonl"
    assert run("corrupt", prose, "--out", out, "--kinds", "insert")[0] == 0
    assert not asked
    assert run("corrupt", prose, "--out", out, "--kinds", "insert:similar", "--force")[0] == 0
    assert len(asked) == 1
    assert {row["donor"] for row in rows_of(out)} == {"similar"}


def test_a_file_is_replaced_if_asked(run, prose, tmp_path):
    out = tmp_path / "pairs.jsonl"
    out.write_text("mine")
    assert run("corrupt", prose, "--out", out, "--kinds", "swap", "--force")[0] == 0
    assert len(rows_of(out)) == 16


def test_bad_input(one_sentence, failing, prose, tmp_path):
    out = tmp_path / "pairs.jsonl"
    assert "shuffle" in one_sentence("corrupt", prose, "--out", out, "--kinds", "jumble")
    assert failing("corrupt", prose, "--out", out, "--kinds", "join:similar").code == "unknown-kind"
    assert failing("corrupt", prose, "--out", out, "--kinds", ",").code == "unknown-kind"
    assert failing("corrupt", tmp_path / "absent.jsonl", "--out", out).code == "missing-file"
    assert failing("corrupt", prose, "--out", out, "--work-column", "book").code == "missing-column"
    assert failing("corrupt", prose, "--out", prose).code == "out-is-input"
    assert failing("corrupt", prose, "--out", tmp_path / "absent" / "pairs.jsonl").code == "cannot-write"
    assert failing("corrupt", prose, "--out", tmp_path).code == "is-a-folder"
    assert failing("corrupt", prose, prose, "--out", out).code == "same-ids"
    out.write_text("mine")
    assert failing("corrupt", prose, "--out", out).code == "exists"
    assert out.read_text() == "mine"
    out.unlink()
    link, pipe, target = tmp_path / "link", tmp_path / "pipe", tmp_path / "target"
    target.write_text("mine")
    link.symlink_to(target)
    os.mkfifo(pipe)
    for special in (link, pipe):
        assert failing("corrupt", prose, "--out", special, "--force").code == "is-special"
    assert link.is_symlink()
    assert pipe.is_fifo()
    short = tmp_path / "short.txt"
    short.write_text("One sentence.")
    assert failing("corrupt", short, "--out", out).code == "too-short"
    assert not out.exists()
    assert not list(tmp_path.glob(".*"))


def test_bad_input_is_refused_before_torch_is_imported(prose, tmp_path):
    out = tmp_path / "pairs.jsonl"
    calls = [
        ["corrupt", prose, "--out", out, "--kinds", "jumble"],
        ["corrupt", tmp_path / "absent.txt", "--out", out],
    ]
    assert refused_without_torch(calls) == ["unknown-kind", "missing-file"]
