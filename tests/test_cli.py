"""The command, as a person or a program uses it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from material import TEXT

from cohegraph.corpora.starter import CORPUS
from cohegraph.version import __version__

FAST = ["--set", "training.epochs=5", "--set", "training.hidden=4"]


def test_version_and_help(run):
    assert run("--version")[1] == f"cohegraph {__version__}\n"
    code, out, _ = run("--help")
    assert code == 0
    for command in ("assess", "train", "demo", "doctor"):
        assert command in out
        assert run(command, "--help")[0] == 0


def test_assess_prints_a_table_and_names_the_model(run, shipped, text_file):
    code, out, _ = run("assess", text_file)
    assert code == 0
    assert "text.txt" in out
    assert "low medium high" in " ".join(out.split())
    assert "Model: starter." in out
    assert "by construction" in " ".join(out.split())


def test_assess_as_json(run, shipped, text_file):
    code, out, _ = run("assess", text_file, "-", "--json", stdin=TEXT.encode())
    first, second = map(json.loads, out.splitlines())
    assert code == 0
    assert first["document"] == str(text_file)
    assert first["model"] == "starter"
    assert first["level"] in ("low", "medium", "high")
    assert list(first["probabilities"]) == ["low", "medium", "high"]
    assert first["counts"]["sentences"] == 5
    assert {"cut_tokens", "dropped_sentences", "unknown_nouns", "unseen_subgraphs"} <= set(first["counts"])
    assert {**second, "document": ""} == {**first, "document": ""}


def test_assess_reads_folders_tables_and_the_pipe(run, shipped, tmp_path, small_corpus, text_file):
    code, out, _ = run("assess", small_corpus, "--json")
    assert code == 0
    assert json.loads(out.splitlines()[17])["document"] == f"{small_corpus}:18"
    assert len(run("assess", tmp_path, "--json")[1].splitlines()) == 1
    assert json.loads(run("assess", "--json", stdin=TEXT.encode())[1])["document"] == "standard input"


def test_what_cannot_be_read_does_not_keep_the_rest_from_being_assessed(run, shipped, tmp_path, text_file):
    (tmp_path / "empty.txt").write_text(" \n")
    (tmp_path / "image.png").write_bytes(b"\x89PNG\r\n\x1a\n\x00\x00")
    (tmp_path / "latin.txt").write_bytes("caf\xe9".encode("latin-1"))
    bad = [tmp_path / name for name in ("empty.txt", "image.png", "latin.txt", "absent.txt")]
    code, out, err = run("assess", *bad, text_file, "--json")
    results = [json.loads(line) for line in out.splitlines()]
    assert code == 2
    assert [("error" in result) for result in results] == [True] * 4 + [False]
    for words in ("has no text", "is binary", "not UTF-8", "There is no file"):
        assert words in err
    assert "Traceback" not in err


def test_a_text_in_place_of_a_name_does_not_cost_the_rest(run, shipped, text_file):
    code, out, err = run("assess", "A whole text. " * 40, text_file, "--json")
    assert code == 2
    assert "level" in json.loads(out.splitlines()[1])
    assert "Traceback" not in err


def test_control_characters_in_names_do_nothing(run, shipped, tmp_path):
    file = tmp_path / "a\x1b[31mred[bold].txt"
    file.write_text(TEXT)
    assert "\x1b[31m" not in run("assess", file)[1]


def test_an_unknown_option_is_a_usage_error(run):
    code, _, err = run("assess", "--colour")
    assert code == 2
    assert err.startswith("cohegraph: No such option: --colour")
    assert err.endswith("; cohegraph assess --help tells what it takes.\n")
    assert err.count("\n") == 1


def test_levels_are_no_markup(run, shipped, tmp_path, starter):
    file = tmp_path / "c.jsonl"
    names = {"low": "[/b]", "medium": "[red]x", "high": "\x1b[31m"}
    rows = ({"text": one.text, "label": names[one.label]} for one in starter[:9])
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert run("train", file, "--out", tmp_path / "model", "--folds", 0, *FAST)[0] == 0
    text = tmp_path / "text.txt"
    text.write_text(TEXT)
    for command in (["assess", text], ["explain", text, "--what-if", 0]):
        code, out, err = run(*command, "--model", tmp_path / "model")
        assert code == 0, err
        assert "[/b]" in out
        assert "\x1b[31m" not in out


@pytest.mark.parametrize("command", ["assess", "explain"])
def test_streams_of_any_kind(shipped, tmp_path, command):
    """Standard streams may be closed, or may not have the letters of a text."""
    text = tmp_path / "text.txt"
    text.write_text(TEXT.replace("keeper", "kéeper 養蜂"), "utf-8")
    program = Path(sys.executable).with_name("cohegraph")
    plain = os.environ | {"PYTHONIOENCODING": "ascii"}
    done = subprocess.run([program, command, text, "--json", "--threads", "1"], capture_output=True, env=plain)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["document"].endswith("text.txt")
    assert done.stdout.isascii()
    closed = subprocess.run(f"'{program}' {command} <&- >&-", shell=True, capture_output=True, text=True)
    assert (closed.returncode, closed.stderr.count("\n")) == (2, 1), closed.stderr


def test_a_model_of_numbers_predicts_numbers(run, shipped, tmp_path, starter):
    """Rows without a text or a label are left out if asked for."""
    grades = {"low": 1, "medium": 2, "high": 3}
    rows = [{"text": one.text, "label": grades[one.label]} for one in starter[:9]]
    rows += [{"text": "", "label": 1}, {"text": "A dog."}]
    file = tmp_path / "grades.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    call = ("train", file, "--out", tmp_path / "m", "--folds", 0, "--set", "training.epochs=5")
    code, _, err = run(*call, "--skip-empty", "--skip-unlabelled")
    assert code == 0
    assert "9 documents (1: 3, 2: 3, 3: 3)." in err
    assert json.loads((tmp_path / "m" / "model.json").read_text("utf-8"))["levels"] == [1, 2, 3]


def test_levels_in_no_known_order_are_said_to_be_so(run, shipped, tmp_path, starter):
    file = tmp_path / "c.csv"
    words = {"low": "poor", "medium": "fair", "high": "good"}
    file.write_text("text,label\n" + "".join(f'"{one.text}",{words[one.label]}\n' for one in starter[:9]), "utf-8")
    code, _, err = run("train", file, "--out", tmp_path / "m", "--folds", 0, *FAST)
    assert code == 0
    assert "--levels" in err
    assert "in no known order" in (tmp_path / "m" / "README.md").read_text()


ODD_TEXTS = {
    "one sentence": "Hello there.",
    "no noun": "It was. They went. She did. He may. We must.",
    "only emoji": "😀 🎉 🐕",
    "another language": "Der Hund schläft im Garten. Die Katze jagt Mäuse. Abends regnet es. Morgen scheint die Sonne.",
    "markup": "<script>alert('x')</script> [bold]not markup[/bold]",
}


@pytest.mark.parametrize("name", ODD_TEXTS)
def test_odd_texts_have_a_defined_result(run, shipped, name):
    code, out, _ = run("assess", "-", "--json", stdin=ODD_TEXTS[name].encode())
    result = json.loads(out)
    assert code == 0
    assert sum(result["probabilities"].values()) == pytest.approx(1)
    expected = {"one sentence": "Fewer than 5", "only emoji": "Fewer than 5", "no noun": "no noun"}
    if name in expected:
        assert any(expected[name] in notice for notice in result["notices"])


def test_a_foreign_text_is_suspected(run, shipped):
    text = "Kissa istuu ikkunalaudalla. Talonmies korjaa polkupyörää. Sateenvarjo unohtui bussiin. Leipuri nukkuu jo."
    result = json.loads(run("assess", "-", "--json", stdin=text.encode())[1])
    assert any("is the text English?" in notice for notice in result["notices"])


def test_bad_calls_of_assess(one_sentence, shipped, tmp_path, small_corpus, text_file):
    assert "no model folder" in one_sentence("assess", text_file, "--model", tmp_path / "absent")
    assert "no column 'body'" in one_sentence("assess", small_corpus, "--text-column", "body")
    assert "no text" in one_sentence("assess", "-", stdin=b"")
    assert "not UTF-8" in one_sentence("assess", "-", stdin=b"\xff\xfe")
    broken = tmp_path / "model"
    shutil.copytree(MODEL, broken)
    (broken / "model.safetensors").write_bytes(b"x")
    assert "1 bytes instead of" in one_sentence("assess", text_file, "--model", broken)


def test_train_then_assess(run, shipped, tmp_path, small_corpus, text_file):
    out_folder = tmp_path / "models" / "mine"
    code, out, err = run(
        "train", small_corpus, "--out", out_folder, "--group-column", "topic", "--folds", "2", *FAST
    )  # fmt: skip
    assert code == 0, err
    assert "Accuracy in 2-fold cross-validation" in out
    assert "Cross-validation over 2 folds, groups kept together" in (out_folder / "README.md").read_text()
    code, out, _ = run("assess", text_file, "--model", out_folder, "--json")
    assert code == 0
    assert json.loads(out)["model"] == "mine"


def test_train_on_the_starter_corpus_by_its_columns(run, shipped, tmp_path):
    code, _, err = run(
        "train", CORPUS, "--label-column", "level", "--levels", "low,medium,high", "--out", tmp_path / "m",
        "--folds", 0, *FAST,
    )  # fmt: skip
    assert code == 0, err
    assert "90 documents (low: 30, medium: 30, high: 30)." in err


def write_csv(tmp_path, rows):
    file = tmp_path / "c.csv"
    file.write_text("text,label\n" + "".join(f"{text},{label}\n" for text, label in rows), "utf-8")
    return file


def test_bad_calls_of_train(one_sentence, tmp_path, small_corpus):
    out = ["--out", tmp_path / "m"]
    assert "There is no file" in one_sentence("train", tmp_path / "absent.csv", *out)
    assert "no column 'grade'" in one_sentence("train", small_corpus, "--label-column", "grade", *out)
    assert "same label 'low'" in one_sentence("train", write_csv(tmp_path, [("a", "low"), ("b", "low")]), *out)
    few = write_csv(tmp_path, [("a", "low"), ("b", "low"), ("c", "high"), ("d", "high")])
    assert "fewer than the 5 folds" in one_sentence("train", few, *out)
    assert "2 folds or more" in one_sentence("train", few, "--folds", 1, *out)
    missing = write_csv(tmp_path, [("a", "low"), ("b", "")])
    assert "c.csv:2 has no label" in one_sentence("train", missing, *out)
    assert "no setting 'k'" in one_sentence("train", small_corpus, "--set", "k=5", *out)
    assert "no preset" in one_sentence("train", small_corpus, "--preset", "best", *out)
    assert "not the labels" in one_sentence("train", small_corpus, "--levels", "a,b", *out)
    assert "groups, fewer" in one_sentence("train", small_corpus, "--group-column", "label", *out)
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.txt").write_text("years")
    assert "other things than a model" in one_sentence("train", small_corpus, "--out", tmp_path / "thesis")
    assert not (tmp_path / "m").exists()


def test_missing_vectors_are_said(one_sentence, tmp_path, small_corpus):
    error = one_sentence("train", small_corpus, "--out", tmp_path / "m", "--stack", "base")
    assert "no word vectors 'glove.840B.300d.txt'" in error


def test_doctor(run, shipped, monkeypatch):
    code, out, _ = run("doctor")
    assert code == 0
    assert out.count("SHA-256 verified") == 3
    monkeypatch.setattr("cohegraph.cli.doctor.STARTER_MODEL", MODEL / "absent")
    code, out, _ = run("doctor")
    assert code == 2
    assert "missing or damaged" in out


def test_demo(run, shipped, tmp_path):
    code, out, _ = run("demo", "--out", tmp_path / "m")
    assert code == 0
    assert "of 18 held-out texts" in out
    right = int(out.split(" of 18 held-out")[0].split()[-1])
    assert right >= 12
    assert (tmp_path / "m" / "model.safetensors").is_file()


def test_ctrl_c_during_training_leaves_nothing(tmp_path, small_corpus, shipped):
    process = subprocess.Popen(
        [sys.executable, "-m", "cohegraph.cli", "train", str(small_corpus), "--out", str(tmp_path / "m"),
         "--folds", "0", "--set", "training.epochs=10000000", "--threads", "1"],
        stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"},
        # Shells start background jobs with the signal ignored, and children inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    assert "18 documents" in process.stderr.readline()
    time.sleep(6)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    error = process.communicate(timeout=60)[1]
    assert process.returncode == 130
    assert "Interrupted: nothing was written" in error
    assert "Traceback" not in error
    assert [path.name for path in tmp_path.iterdir()] == ["corpus.jsonl"]


def test_experiment_on_a_table(run, small_corpus, tmp_path):
    arguments = ["experiment", small_corpus, "--group-column", "topic", "--folds", "2", "--systems", "majority,surface"]
    code, out, err = run(*arguments, "--out", tmp_path / "out", "--cores", "1")
    assert code == 0, err
    assert "Surface figures + LR" in out
    assert "report.html" in out
    assert (tmp_path / "out" / "report.html").exists()
    assert run(*arguments, "--out", tmp_path / "out", "--cores", "1")[1] == out


def test_experiment_bad_input(one_sentence, small_corpus, tmp_path):
    plan = tmp_path / "plan.toml"
    out = ["--out", tmp_path / "out"]
    plan.write_text("[corpus\n")
    assert "is not valid TOML" in one_sentence("experiment", plan, *out)
    plan.write_text('[corpus]\nkind = "table"\npath = "nothing.csv"\n')
    assert "There is no file or folder" in one_sentence("experiment", plan, *out)
    plan.write_text(f'[corpus]\nkind = "table"\npath = "{small_corpus}"\n[protocol]\nfolds = 40\n')
    assert "too few for 40 folds" in one_sentence("experiment", plan, *out)
    plan.write_bytes(b'title = "\xff"')
    assert "is not UTF-8" in one_sentence("experiment", plan, *out)
    assert "Columns and levels are named for a table" in one_sentence("experiment", plan, "--label-column", "x")
    assert "choose from ellipse-cohesion" in one_sentence("experiment", "ellipsis", *out)
    assert "Say where the corpus 'gcdc' is" in one_sentence("experiment", "gcdc", *out)
    assert "GCDC is a folder" in one_sentence("experiment", "gcdc", "--corpus", small_corpus, *out)
    assert "no column 'grade'" in one_sentence("experiment", small_corpus, "--label-column", "grade", *out)
    assert "no system 'gnc'" in one_sentence("experiment", small_corpus, "--systems", "gnc", *out)
    assert "no section 'a'" in one_sentence("experiment", small_corpus, "--sections", "a", *out)
    assert "There is no setting 'training.speed'" in one_sentence(
        "experiment", small_corpus, "--set", "training.speed=1", *out
    )
    assert not (tmp_path / "out" / "results.jsonl").exists()
