"""The command, as a person or a program uses it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from dataclasses import replace

import pytest
from material import COMMAND, TEXT, codes, refused_without_torch
from torch.optim.optimizer import register_optimizer_step_post_hook

from cohegraph import load
from cohegraph.corpora.columns import Columns
from cohegraph.corpora.starter import CORPUS, hold_out_topics, starter_corpus
from cohegraph.corpora.stream import Documents
from cohegraph.errors import MissingPartError
from cohegraph.models.starter import STARTER
from cohegraph.systems.registry import SYSTEMS
from cohegraph.text.packaged import ALL_PACKAGED
from cohegraph.version import __version__

FAST = ["--set", "training.epochs=5", "--set", "training.hidden=4"]


def test_version_and_help(run):
    assert run("--version")[1] == f"cohegraph {__version__}\n"
    code, out, _ = run("--help")
    assert code == 0
    for command in ("assess", "explain", "serve", "train", "demo", "doctor"):
        assert command in out
        assert run(command, "--help")[0] == 0


def test_assess_prints_a_table_and_names_the_model(run, shipped, text_file):
    code, out, _ = run("assess", text_file)
    (found,) = shipped.assess([TEXT])
    assert code == 0
    head, row, *rest = out.splitlines()
    assert head.split() == ["document", "level", "score", "low", "medium", "high", "sentences", "links"]
    shares = (f"{share:.2f}" for share in found.probabilities.values())
    assert row.split()[1:] == [found.level, f"{found.score:.0f}", *shares, "5", str(found.counts["links"])]
    assert row.startswith(str(text_file)[:20])
    assert shipped.name_ in "".join(rest)
    assert " ".join(shipped.note_.split()) in " ".join(out.split())


def test_assess_as_json(run, shipped, text_file):
    code, out, _ = run("assess", text_file, "-", "--json", stdin=TEXT.encode())
    first, second = map(json.loads, out.splitlines())
    assert code == 0
    assert first["document"] == str(text_file)
    assert first["model"] == "starter"
    assert first["level"] in ("low", "medium", "high")
    assert list(first["probabilities"]) == ["low", "medium", "high"]
    assert first["score"] == pytest.approx(50 * first["probabilities"]["medium"] + 100 * first["probabilities"]["high"])
    assert first["counts"]["sentences"] == 5
    assert {"cut_tokens", "dropped_sentences", "unknown_nouns", "unseen_subgraphs"} <= set(first["counts"])
    assert {**second, "document": ""} == {**first, "document": ""}


def test_results_in_a_file_have_the_score(run, shipped, text_file, tmp_path):
    out = tmp_path / "results.jsonl"
    assert run("assess", text_file, "--out", out)[0] == 0
    (found,) = (one for one in map(json.loads, out.read_text("utf-8").splitlines()) if "level" in one)
    assert found["score"] == pytest.approx(shipped.assess([TEXT])[0].score)


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
    lines = err.splitlines()
    assert len(lines) == 4
    assert all(file.name in line for file, line in zip(bad, lines, strict=True))
    # The same reasons as where such a file is the only one.
    reasons = [entry.error.code for entry in Documents(map(str, bad), Columns(), spare_others=True)]
    assert reasons == ["missing-text", "binary", "not-utf-8", "missing-file"]


def test_a_text_in_place_of_a_name_does_not_cost_the_rest(run, shipped, text_file):
    code, out, err = run("assess", "A whole text. " * 40, text_file, "--json")
    assert code == 2
    assert "level" in json.loads(out.splitlines()[1])
    assert "Traceback" not in err


def test_control_characters_in_names_do_nothing(run, shipped, tmp_path):
    file = tmp_path / "a\x1b[31mred[bold].txt"
    file.write_text(TEXT)
    assert "\x1b[31m" not in run("assess", file)[1]


def test_an_unknown_option_is_a_usage_error(one_sentence):
    err = one_sentence("assess", "--colour")
    assert "--colour" in err
    assert "--help" in err


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


def test_a_terminal_without_the_letters_of_a_text(shipped, tmp_path):
    text = tmp_path / "text.txt"
    text.write_text(TEXT.replace("keeper", "kéeper 養蜂"), "utf-8")
    plain = os.environ | {"PYTHONIOENCODING": "ascii"}
    command = [*COMMAND, "explain", text, "--json", "--what-if", "0", "--threads", "1"]
    done = subprocess.run(command, capture_output=True, env=plain)
    assert done.returncode == 0, done.stderr
    assert "養蜂" in json.loads(done.stdout)["text"]
    assert done.stdout.isascii()


@pytest.mark.parametrize("command", ["assess", "explain"])
def test_closed_streams(command):
    program = " ".join(f"'{part}'" for part in COMMAND)
    closed = subprocess.run(f"{program} {command} <&- >&-", shell=True, capture_output=True, text=True)
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
    assert code == 0, err
    about = json.loads((tmp_path / "m" / "model.json").read_text("utf-8"))
    assert (about["levels"], about["documents"]) == ([1, 2, 3], 9)
    assert about["training"]["documents"] == {"1": 3, "2": 3, "3": 3}


def test_levels_in_no_known_order_are_said_to_be_so(run, shipped, tmp_path, starter):
    file = tmp_path / "c.csv"
    words = {"low": "poor", "medium": "fair", "high": "good"}
    file.write_text("text,label\n" + "".join(f'"{one.text}",{words[one.label]}\n' for one in starter[:9]), "utf-8")
    code, _, err = run("train", file, "--out", tmp_path / "m", "--folds", 0, *FAST)
    assert code == 0
    assert "--levels" in err
    assert not json.loads((tmp_path / "m" / "model.json").read_text("utf-8"))["ordered"]


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
    (found,) = shipped.assess([ODD_TEXTS[name]])
    assert result["notices"] == list(found.notices)
    assert result["notice_codes"] == codes(found.notices)
    expected = {
        "one sentence": "few-sentences",
        "only emoji": "few-sentences",
        "no noun": "no-noun",
        "another language": "not-english",
    }
    if name in expected:
        assert expected[name] in codes(found.notices)


def test_a_foreign_text_is_suspected(shipped):
    text = "Kissa istuu ikkunalaudalla. Talonmies korjaa polkupyörää. Sateenvarjo unohtui bussiin. Leipuri nukkuu jo."
    assert {"unknown-nouns", "not-english"} <= set(codes(shipped.assess([text])[0].notices))


def test_bad_calls_of_assess(failing, one_sentence, shipped, tmp_path, small_corpus, text_file):
    assert failing("assess", text_file, "--model", tmp_path / "absent").code == "no-model"
    one_sentence("assess", text_file, "--model", tmp_path / "absent")
    assert "body" in one_sentence("assess", small_corpus, "--text-column", "body")
    one_sentence("assess", "-", stdin=b"")
    one_sentence("assess", "-", stdin=b"\xff\xfe")
    broken = tmp_path / "model"
    shutil.copytree(STARTER.folder, broken)
    (broken / "model.safetensors").write_bytes(b"x")
    assert failing("assess", text_file, "--model", broken).code == "damaged-file"


def test_train_then_assess(run, shipped, tmp_path, small_corpus, text_file):
    out_folder = tmp_path / "models" / "mine"
    code, out, err = run(
        "train", small_corpus, "--out", out_folder, "--group-column", "topic", "--folds", "2", *FAST
    )  # fmt: skip
    assert code == 0, err
    figures = json.loads((out_folder / "model.json").read_text("utf-8"))["training"]["validation"]
    assert (figures["folds"], figures["grouped"]) == (2, True)
    assert f"{100 * figures['accuracy']:.1f} %" in out
    code, out, _ = run("assess", text_file, "--model", out_folder, "--json")
    assert code == 0
    assert json.loads(out)["model"] == "mine"


def test_train_on_the_starter_corpus_by_its_columns(run, shipped, tmp_path):
    some = tmp_path / "some.jsonl"
    some.write_text("".join(CORPUS.read_text("utf-8").splitlines(keepends=True)[:12]), "utf-8")
    code, _, err = run(
        "train", some, "--label-column", "level", "--levels", "low,medium,high", "--out", tmp_path / "m",
        "--folds", 0, *FAST,
    )  # fmt: skip
    assert code == 0, err
    about = json.loads((tmp_path / "m" / "model.json").read_text("utf-8"))
    assert about["training"]["documents"] == {"low": 4, "medium": 4, "high": 4}
    assert about["ordered"]


def write_csv(tmp_path, rows):
    file = tmp_path / "c.csv"
    file.write_text("text,label\n" + "".join(f"{text},{label}\n" for text, label in rows), "utf-8")
    return file


def test_bad_calls_of_train(failing, one_sentence, tmp_path, small_corpus):
    out = ["--out", tmp_path / "m"]
    assert failing("train", tmp_path / "absent.csv", *out).code == "missing-file"
    one_sentence("train", tmp_path / "absent.csv", *out)
    assert failing("train", small_corpus, "--label-column", "grade", *out).code == "missing-column"
    one_label = write_csv(tmp_path, [("a", "low"), ("b", "low")])
    assert failing("train", one_label, *out).code == "one-label"
    few = write_csv(tmp_path, [("a", "low"), ("b", "low"), ("c", "high"), ("d", "high")])
    for folds in (1, 5):
        assert failing("train", few, "--folds", folds, *out).code == "bad-folds"
    missing = write_csv(tmp_path, [("a", "low"), ("b", "")])
    error = failing("train", missing, *out)
    assert error.code == "missing-label"
    assert "c.csv:2" in str(error)
    assert failing("train", small_corpus, "--set", "k=5", *out).code == "no-setting"
    assert failing("train", small_corpus, "--preset", "best", *out).code == "no-preset"
    assert failing("train", small_corpus, "--levels", "a,b", *out).code == "unknown-level"
    assert failing("train", small_corpus, "--group-column", "label", *out).code == "bad-folds"
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.txt").write_text("years")
    assert failing("train", small_corpus, "--out", tmp_path / "thesis").code == "foreign-folder"
    assert not (tmp_path / "m").exists()


def test_missing_vectors_are_said(failing, tmp_path, small_corpus):
    error = failing("train", small_corpus, "--out", tmp_path / "m", "--stack", "base")
    assert isinstance(error, MissingPartError)
    assert "glove.840B.300d.txt" in str(error)


def test_doctor(run, shipped, monkeypatch):
    code, out, _ = run("doctor")
    assert code == 0
    for part in ALL_PACKAGED.values():
        assert part.name in out
    absent = replace(STARTER, name="absent")
    monkeypatch.setattr("cohegraph.cli.doctor.READY", {absent.name: absent})
    code, out, _ = run("doctor")
    assert code == 2
    assert str(absent.folder) in "".join(out.split())


def test_demo(run, shipped, tmp_path):
    code, out, _ = run("demo", "--out", tmp_path / "m")
    assert code == 0
    _, held_out = hold_out_topics(starter_corpus())
    right = round(18 * load(tmp_path / "m").score(held_out.texts, held_out.labels))
    assert right >= 12
    assert str(right) in out.split()


def test_ctrl_c_during_training_leaves_nothing(run, tmp_path, small_corpus, shipped):
    steps = []

    def interrupt(*_):
        steps.append(1)
        if len(steps) == 20:
            signal.raise_signal(signal.SIGINT)

    # Shells start background jobs with the signal ignored, and children inherit that.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    hook = register_optimizer_step_post_hook(interrupt)
    try:
        code, _, err = run("train", small_corpus, "--out", tmp_path / "m", "--folds", 0, "--threads", 1)
    finally:
        hook.remove()
        signal.signal(signal.SIGINT, before)
    assert (code, len(steps)) == (130, 20)
    assert "Traceback" not in err
    assert [path.name for path in tmp_path.iterdir()] == ["corpus.jsonl"]


def test_experiment_on_a_table(run, small_corpus, tmp_path, monkeypatch):
    arguments = ["experiment", small_corpus, "--group-column", "topic", "--folds", "2", "--systems", "majority,surface"]
    code, out, err = run(*arguments, "--out", tmp_path / "out", "--cores", "1")
    assert code == 0, err
    for system in ("majority", "surface"):
        assert SYSTEMS[system].title in out
    assert "report.html" in out
    assert (tmp_path / "out" / "report.html").exists()
    # Figures take longest, and are the same again.
    monkeypatch.setattr("cohegraph.experiments.report.write_figures", lambda *_: [])
    assert run(*arguments, "--out", tmp_path / "out", "--cores", "1")[1] == out


def test_bad_options_of_train_are_refused_before_torch_is_imported(tmp_path, small_corpus):
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("Not a model.")
    calls = [
        ("no-system", ["--system", "gnc"]),
        ("no-setting", ["--set", "training.speed=1"]),
        ("bad-setting", ["--set", "subgraphs.k=99"]),
        ("bad-setting", ["--set", "subgraphs.k"]),
        ("no-preset", ["--preset", "papers"]),
        ("no-stack", ["--stack", "papers"]),
        ("bad-folds", ["--folds", "1"]),
        ("bad-folds", ["--folds", "90"]),
        ("foreign-folder", ["--out", tmp_path / "other"]),
        ("bad-rating", ["--objective", "rating"]),
        ("no-groups", ["--objective", "ranking"]),
        ("unknown-level", ["--levels", "bad,good"]),
        ("no-device", ["--device", "gpu"]),
    ]
    train = ["train", small_corpus, "--out", tmp_path / "model"]
    assert refused_without_torch([*train, *call] for _, call in calls) == [code for code, _ in calls]


def test_bad_calls_of_experiment(failing, one_sentence, small_corpus, tmp_path):
    plan = tmp_path / "plan.toml"
    out = ["--out", tmp_path / "out"]
    for content in (
        b"[corpus\n",
        b'[corpus]\nkind = "table"\npath = "nothing.csv"\n',
        f'[corpus]\nkind = "table"\npath = "{small_corpus}"\n[protocol]\nfolds = 40\n'.encode(),
        b'title = "\xff"',
    ):
        plan.write_bytes(content)
        one_sentence("experiment", plan, *out)
    assert failing("experiment", plan, "--label-column", "x").code == "not-a-table"
    assert failing("experiment", tmp_path / "absent.toml", *out).code == "missing-file"
    assert failing("experiment", "ellipsis", *out).code == "no-experiment"
    one_sentence("experiment", "gcdc", *out)
    assert failing("experiment", "gcdc", "--corpus", small_corpus, *out).code == "missing-file"
    assert failing("experiment", small_corpus, "--label-column", "grade", *out).code == "missing-column"
    assert "gnc" in str(failing("experiment", small_corpus, "--systems", "gnc", *out))
    assert failing("experiment", small_corpus, "--sections", "a", *out).code == "unknown-section"
    assert failing("experiment", small_corpus, "--set", "training.speed=1", *out).code == "no-setting"
    assert not (tmp_path / "out" / "results.jsonl").exists()
