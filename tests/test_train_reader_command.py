"""``cohegraph train-reader``."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from random import Random

import pytest
import torch
from made_prose import EncoderDouble, ParserDouble, made_up
from material import refused_without_torch
from safetensors.torch import load_file
from tiny_llama import write_llama

from cohegraph.reading import examples, gains, heads_from_prose
from cohegraph.reading.gains import GainsSchedule
from cohegraph.text.heads import Heads
from cohegraph.text.reader import LlamaReader

KINDS = "shuffle,swap,insert:source,join:source,insert:similar"


@pytest.fixture(autouse=True)
def _doubles(monkeypatch):
    monkeypatch.setattr("cohegraph.text.spacy_parser.SpacyParser", ParserDouble)
    monkeypatch.setattr("cohegraph.text.encoder.TransformerEncoder", EncoderDouble)
    monkeypatch.setattr(examples, "_TEXTS_AT_ONCE", 4)
    monkeypatch.setattr(heads_from_prose, "GainsSchedule", lambda: GainsSchedule(epochs=2))


@pytest.fixture(scope="module")
def llama(tmp_path_factory):
    return write_llama(tmp_path_factory.mktemp("llama"), num_hidden_layers=2)


def write_prose(file, works=6, sentences=7, **further):
    random = Random(0)
    ids = [f"a/{work}/{part}" for work in range(works) for part in "01"]
    rows = [{"id": id, "text": made_up(random, id.replace("/", "-"), sentences), **further} for id in ids]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return file


@pytest.fixture
def prose(tmp_path):
    return write_prose(tmp_path / "prose.jsonl")


def call(prose, out, llama, *further):
    usual = ["--reader", llama, "--precision", "float32", "--kinds", KINDS, "--versions", "2", "--epochs", "2"]
    return ["train-reader", prose, "--out", out, *usual, *further]


@pytest.fixture
def wanted(run, prose, llama, tmp_path):
    """The weights of an uninterrupted run."""
    assert run(*call(prose, tmp_path / "wanted", llama))[0] == 0
    return (tmp_path / "wanted" / "heads.safetensors").read_bytes()


def test_heads_are_trained(run, prose, llama, tmp_path):
    out = tmp_path / "heads"
    code, told, err = run(*call(prose, out, llama))
    assert code == 0
    assert "The heads are in" in told
    assert [line[:12] for line in err.splitlines()] == ["Texts to lea", "Epoch 1 of 2", "Epoch 2 of 2"]
    heads = Heads.load(out)
    figures = heads.figures
    assert (figures["texts"], figures["dev_texts"], figures["seed"], figures["versions"]) == (10, 2, 0, 2)
    assert (figures["examples"], figures["dev_examples"]) == (30, 6)
    assert set(figures["kinds"]) == set(KINDS.split(","))
    assert 0 <= figures["accuracy"]["mean"] <= 1
    assert heads.encoder == "double"
    assert heads.reader.startswith("folder:")
    assert heads.shape.states == ("mean-1", "mean-2", "first-1", "last-1")
    assert heads.shape.gains
    assert figures["texts_with_gains"] == 10
    assert all(-1 <= one <= 1 for one in figures["accuracy"]["gains"])
    assert sorted(file.name for file in tmp_path.iterdir()) == ["heads", "prose.jsonl"]


def test_gains_of_some_texts(run, prose, llama, tmp_path, monkeypatch):
    out, weights, exact, read = tmp_path / "heads", {}, gains.exact_gains, []
    monkeypatch.setattr(gains, "exact_gains", lambda *about: read.append(about[1].text) or exact(*about))
    for number in ("0", "3"):
        assert run(*call(prose, out, llama, "--gains", number, "--force"))[0] == 0
        heads = Heads.load(out)
        assert heads.figures["texts_with_gains"] == int(number)
        assert bool(heads.shape.gains) == bool(int(number))
        assert (heads.figures["accuracy"]["gains"] is not None) == bool(int(number))
        weights[number] = load_file(out / "heads.safetensors")
        assert not (tmp_path / "heads.unfinished").exists()
    # Three training texts and one dev text.
    assert len(read) == 4
    # The rest of the heads is the same.
    assert all(torch.equal(weights["0"][name], weights["3"][name]) for name in weights["0"])


def test_a_run_that_was_interrupted_while_gains_were_read(run, prose, llama, tmp_path, monkeypatch, wanted):
    monkeypatch.setattr(gains, "_TEXTS_AT_ONCE", 4)
    out, exact, read = tmp_path / "heads", gains.exact_gains, []

    def watched(*about):
        if len(read) == 6:
            raise KeyboardInterrupt
        read.append(about[1].text)
        return exact(*about)

    monkeypatch.setattr(gains, "exact_gains", watched)
    assert run(*call(prose, out, llama))[0] == 130
    assert not out.exists()
    first, _ = read[:4], read.clear()
    monkeypatch.setattr(gains, "exact_gains", lambda *about: read.append(about[1].text) or exact(*about))
    assert run(*call(prose, out, llama))[0] == 0
    assert len(read) == 8
    assert not set(first) & set(read)
    assert (out / "heads.safetensors").read_bytes() == wanted
    assert not (tmp_path / "heads.unfinished").exists()


def test_what_is_there_is_replaced_with_force_alone(run, failing, wanted, prose, llama, tmp_path):
    assert failing(*call(prose, tmp_path / "wanted", llama)).code == "exists"
    assert run(*call(prose, tmp_path / "wanted", llama, "--force", "--seed", "1"))[0] == 0
    assert (tmp_path / "wanted" / "heads.safetensors").read_bytes() != wanted
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "mine.txt").write_text("mine")
    assert failing(*call(prose, tmp_path / "foreign", llama, "--force")).code == "foreign-folder"


def test_an_interrupted_run_resumes_to_the_same_heads(run, prose, llama, tmp_path, monkeypatch, wanted):
    out, write, read, seen = tmp_path / "heads", examples.ExampleFolder.write, LlamaReader.read_versions, []

    def interrupted(folder, *about):
        if len(list(folder.parent.glob("????????*"))) == 2:
            raise KeyboardInterrupt
        write(folder, *about)

    def watched(self, documents, states):
        seen.append(documents[0].text)
        return read(self, documents, states)

    monkeypatch.setattr(LlamaReader, "read_versions", watched)
    monkeypatch.setattr(examples.ExampleFolder, "write", staticmethod(interrupted))
    code, _, err = run(*call(prose, out, llama))
    assert code == 130
    assert "resume" in err
    assert not out.exists()
    assert len(list((tmp_path / "heads.unfinished").iterdir())) == 3
    first, _ = seen[:8], seen.clear()
    monkeypatch.setattr(examples.ExampleFolder, "write", staticmethod(write))
    # Changed options: what still fits is used.
    assert run(*call(prose, out, llama, "--epochs", "1"))[0] == 0
    assert not set(first) & set(seen)
    assert len(seen) == 4
    assert run(*call(prose, out, llama, "--force"))[0] == 0
    assert (out / "heads.safetensors").read_bytes() == wanted
    assert not (tmp_path / "heads.unfinished").exists()


_RUN = """
import sys
sys.path.insert(0, sys.argv.pop(1))
import cohegraph.text.spacy_parser, cohegraph.text.encoder
from cohegraph.reading import examples, heads_from_prose
from cohegraph.reading.gains import GainsSchedule
from cohegraph.cli import main
from made_prose import EncoderDouble, ParserDouble
cohegraph.text.spacy_parser.SpacyParser = ParserDouble
cohegraph.text.encoder.TransformerEncoder = EncoderDouble
examples._TEXTS_AT_ONCE = 4
heads_from_prose.GainsSchedule = lambda: GainsSchedule(epochs=2)
write = examples.ExampleFolder.write
def slow(folder, *about):
    import time
    write(folder, *about)
    time.sleep(600)
examples.ExampleFolder.write = staticmethod(slow)
main()
"""


def test_a_killed_run_resumes_to_the_same_heads(run, failing, prose, llama, tmp_path, wanted):
    out, folder = tmp_path / "heads", tmp_path / "heads.unfinished"
    arguments = [str(one) for one in call(prose, out, llama)]
    command = [sys.executable, "-c", _RUN, str(Path(__file__).parent), *arguments]
    process = subprocess.Popen(command, stderr=subprocess.PIPE)
    try:
        for _ in range(3000):
            if list(folder.glob("????????*")) or process.poll() is not None:
                break
            time.sleep(0.1)
        assert process.poll() is None, process.stderr.read()
        # While it runs, no other process works in its folder.
        if os.name == "posix":
            assert failing(*call(prose, out, llama)).code == "in-use"
    finally:
        process.send_signal(signal.SIGKILL if os.name == "posix" else signal.SIGTERM)
        process.wait()
    (kept,) = folder.glob("????????*")
    # What a killed process could not remove.
    (folder / f".{kept.name}.0123456789ab").mkdir()
    assert run(*call(prose, out, llama))[0] == 0
    assert (out / "heads.safetensors").read_bytes() == wanted
    assert not folder.exists()


def test_a_full_disk_is_one_sentence(run, one_sentence_more, prose, llama, tmp_path, wanted, full_disk):
    assert "heads.unfinished" in one_sentence_more(*call(prose, tmp_path / "heads", llama))
    assert not (tmp_path / "heads").exists()
    full_disk()
    assert run(*call(prose, tmp_path / "heads", llama))[0] == 0
    assert (tmp_path / "heads" / "heads.safetensors").read_bytes() == wanted


@pytest.fixture
def one_sentence_more(run):
    """Run something that must fail after it has said what it found: exit code 2, one complaint."""

    def command(*arguments):
        code, _, err = run(*arguments)
        assert code == 2
        assert "Traceback" not in err
        (complaint,) = [line for line in err.splitlines() if line.startswith("cohegraph: ")]
        return complaint

    return command


def test_a_column_splits(run, failing, prose, llama, tmp_path):
    rows = [json.loads(line) for line in prose.read_text("utf-8").splitlines()]
    for number, row in enumerate(rows):
        row["part"] = "dev" if number < 3 else "test" if number < 6 else "train"
    prose.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    assert run(*call(prose, tmp_path / "heads", llama, "--split-column", "part"))[0] == 0
    figures = Heads.load(tmp_path / "heads").figures
    assert (figures["texts"], figures["dev_texts"]) == (6, 3)
    prose.write_text("".join(json.dumps(row) + "\n" for row in rows[:6]), "utf-8")
    assert failing(*call(prose, tmp_path / "other", llama, "--split-column", "part")).code == "no-texts"


def test_without_dev_texts_there_are_no_figures(run, llama, tmp_path):
    one = write_prose(tmp_path / "one.jsonl", works=1)
    code, _, err = run(*call(one, tmp_path / "heads", llama, "--kinds", "shuffle,swap"))
    assert code == 0
    assert "measure accuracy on" in " ".join(err.split())
    assert Heads.load(tmp_path / "heads").figures["accuracy"] is None


def test_a_sample_of_texts_and_chosen_states(run, prose, llama, tmp_path):
    chosen = ["--texts", "6", "--states", "last-2", "--dev-share", "0.3", "--threads", "1"]
    assert run(*call(prose, tmp_path / "heads", llama, *chosen))[0] == 0
    heads = Heads.load(tmp_path / "heads")
    assert heads.figures["texts"] + heads.figures["dev_texts"] == 6
    assert heads.shape.states == ("last-2",)


def test_bad_input(failing, one_sentence_more, prose, llama, tmp_path, monkeypatch):
    out = tmp_path / "heads"
    assert failing(*call(prose, out, llama, "--states", "mean-9")).code == "bad-setting"
    assert failing(*call(prose, out, llama, "--states", "all")).code == "bad-setting"
    assert failing(*call(prose, out, llama, "--states", ",")).code == "bad-setting"
    both = ("--split-column", "part", "--dev-share", "0.5")
    assert failing(*call(prose, out, llama, *both)).code == "contradiction"
    # No text has a connective.
    assert failing(*call(prose, out, llama, "--kinds", "connective")).code == "not-suitable"
    assert failing(*call(prose, tmp_path / "absent" / "heads", llama)).code == "cannot-write"
    assert failing(*call(prose, out, tmp_path / "absent")).code == "no-file"
    monkeypatch.setenv("COHEGRAPH_CACHE", str(tmp_path / "cache"))
    missing = failing(*call(prose, out, "smollm2-135m"))
    assert missing.code == "not-installed"
    assert "cohegraph parts install" in str(missing)
    short = write_prose(tmp_path / "short.jsonl", sentences=4)
    assert "5 sentences" in one_sentence_more(*call(short, out, llama))
    assert not out.exists()
    assert not (tmp_path / "heads.unfinished").exists()


def test_bad_input_is_refused_before_torch_is_imported(prose, tmp_path):
    out = tmp_path / "heads"
    empty = tmp_path / "empty.jsonl"
    empty.write_text('{"id": "a", "text": " "}\n', "utf-8")
    calls = [
        ["train-reader", prose, "--out", out, "--kinds", "jumble"],
        ["train-reader", prose, "--out", out, "--kinds", ","],
        ["train-reader", tmp_path / "absent.txt", "--out", out],
        ["train-reader", prose, "--out", out, "--split-column", "part"],
        ["train-reader", prose, prose, "--out", out],
        ["train-reader", empty, "--out", out],
    ]
    codes = ["unknown-kind", "unknown-kind", "missing-file", "missing-column", "same-ids", "no-texts"]
    assert refused_without_torch(calls) == codes
