"""Corpora as their owners give them out, in small imitations written for these tests."""

from __future__ import annotations

import csv
import json
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from cohegraph.corpora.registry import READERS, read_corpus
from cohegraph.errors import CohegraphError, DamagedFileError

TEXT = "The garden was quiet. A gate stood open. The gate led to the garden."
DATA = Path(__file__).parents[2] / "shared" / "data"


@contextmanager
def complaint(code, *facts, kind=CohegraphError):
    """What is done fails with an error of this code, whose message names these facts."""
    with pytest.raises(kind) as caught:
        yield
    assert caught.value.code == code
    for fact in facts:
        assert fact in str(caught.value)


def write(file: Path, rows: list[dict], delimiter=",", encoding="utf-8") -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w", newline="", encoding=encoding) as stream:
        writer = csv.DictWriter(stream, list(rows[0]), delimiter=delimiter)
        writer.writeheader()
        writer.writerows(rows)
    return file


def gcdc_row(number: int, label: object = None) -> dict:
    ratings = {f"ratingA{n}": 2 for n in (1, 2, 3)} | {f"ratingM{n}": 2 for n in range(1, 6)}
    text = {"text_id": f"t{number}", "subject": "Re: gate", "text": f"{TEXT} Number {number}."}
    return text | ratings | {"labelA": number % 3 + 1 if label is None else label, "labelM": 3}


@pytest.fixture
def gcdc(tmp_path):
    for domain in ("Clinton", "Enron", "Yahoo", "Yelp"):
        write(tmp_path / f"{domain}_train.csv", [gcdc_row(n) for n in range(9)])
        write(tmp_path / f"{domain}_test.csv", [gcdc_row(n) for n in range(3)])
    return tmp_path


def test_gcdc(gcdc):
    corpus = read_corpus("gcdc", gcdc, {"partial": True})
    assert corpus.section_names == ("Yahoo", "Clinton", "Enron", "Yelp")
    assert len(corpus) == 4 * 12
    assert sum(corpus.test) == 4 * 3
    first = corpus.ids.index("Enron/train/t0")
    assert corpus.labels[first : first + 3] == ("low", "medium", "high")
    assert not corpus.test[first]
    assert corpus.test[corpus.ids.index("Enron/test/t0")]
    assert set(read_corpus("gcdc", gcdc, {"partial": True, "label": "labelM"}).labels) == {"high"}


def test_a_whole_gcdc_needs_no_leave(tmp_path):
    for domain in ("Clinton", "Enron", "Yahoo", "Yelp"):
        write(tmp_path / f"{domain}_train.csv", [gcdc_row(n) for n in range(1000)])
        write(tmp_path / f"{domain}_test.csv", [gcdc_row(n) for n in range(200)])
    assert len(read_corpus("gcdc", tmp_path)) == 4800


def test_a_wrong_gcdc_is_recognised(gcdc):
    with complaint("incomplete-corpus", "Yahoo_train.csv has 9 ", "1,000", "5 more"):
        read_corpus("gcdc", gcdc)
    write(gcdc / "Yelp_test.csv", [gcdc_row(0, label=4)])
    with complaint("unknown-level", "Yelp_test.csv", "row 1", "labelA", "'4'"):
        read_corpus("gcdc", gcdc, {"partial": True})
    write(gcdc / "Yelp_test.csv", [{"text": TEXT, "score": 1}])
    with complaint("missing-column", "'text_id'", "text, score"):
        read_corpus("gcdc", gcdc, {"partial": True})
    (gcdc / "Yelp_test.csv").unlink()
    with complaint("incomplete-corpus", "Yelp_test.csv"):
        read_corpus("gcdc", gcdc)
    assert "Yelp" not in read_corpus("gcdc", gcdc, {"partial": True}).section_names
    with complaint("missing-file"):
        read_corpus("gcdc", gcdc.parent)


def test_one_domain_of_gcdc_needs_its_files_only(tmp_path):
    write(tmp_path / "Clinton_train.csv", [gcdc_row(n) for n in range(1000)])
    write(tmp_path / "Clinton_test.csv", [gcdc_row(n) for n in range(200)])
    assert read_corpus("gcdc", tmp_path, sections=("Clinton",)).section_names == ("Clinton",)
    with complaint("incomplete-corpus", "Yelp_train.csv, Yelp_test.csv"):
        read_corpus("gcdc", tmp_path, sections=("Yelp", "Clinton"))
    with complaint("unknown-section", "'Paris'", "Yahoo"):
        read_corpus("gcdc", tmp_path, sections=("Paris",))
    with complaint("unknown-option", "'sections'", "label, partial"):
        read_corpus("gcdc", tmp_path, {"sections": ["Clinton"]})


@pytest.fixture
def toefl(tmp_path):
    place = tmp_path / "ETS_Corpus" / "data" / "text"
    rows = [
        {"Filename": f"{n}.txt", "Prompt": f"P{n % 8 + 1}", "Language": "ARA", "Score Level": level}
        for n, level in enumerate(["low", "medium", "high"] * 16)
    ]
    write(place / "index.csv", rows)
    (place / "responses" / "original").mkdir(parents=True)
    for row in rows:
        (place / "responses" / "original" / row["Filename"]).write_text(TEXT)
    return tmp_path


def test_toefl(toefl):
    corpus = read_corpus("toefl", toefl, {"partial": True})
    assert corpus.section_names == tuple(f"P{n}" for n in range(1, 9))
    assert len(corpus) == 48
    assert corpus.levels == ("low", "medium", "high")
    assert corpus.labels[corpus.ids.index("1")] == "medium"
    assert corpus.sections[corpus.ids.index("1")] == "P2"


def test_a_wrong_toefl_is_recognised(toefl):
    with complaint("incomplete-corpus", "P1 has 6 ", "1,656"):
        read_corpus("toefl", toefl)
    (next(toefl.rglob("5.txt"))).unlink()
    with complaint("incomplete-corpus", "1 essays", "5.txt"):
        read_corpus("toefl", toefl)
    assert len(read_corpus("toefl", toefl, {"partial": True})) == 47
    next(toefl.rglob("6.txt")).write_text(" \n")
    with complaint("missing-text", "6.txt"):
        read_corpus("toefl", toefl, {"partial": True})
    next(toefl.rglob("index.csv")).unlink()
    with complaint("missing-file", "index.csv"):
        read_corpus("toefl", toefl)


def asap_row(number: int, essay_set: int, score: object) -> dict:
    text = 'He said "no" to the café — and left.'
    return {"essay_id": number, "essay_set": essay_set, "essay": text, "rater1_domain1": 1, "domain1_score": score}


def test_asap_levels_are_thirds_of_the_range(tmp_path):
    scores = [
        (1, 2),
        (1, 5),
        (1, 6),
        (1, 8),
        (1, 9),
        (1, 12),
        (3, 0),
        (3, 1),
        (3, 2),
        (3, 3),
        (8, 20),
        (8, 40),
        (2, ""),
    ]
    rows = [asap_row(n, essay_set, score) for n, (essay_set, score) in enumerate(scores)]
    file = write(tmp_path / "training_set_rel3.tsv", rows, "\t", "cp1252")
    corpus = read_corpus("asap", tmp_path, {"partial": True})
    assert corpus.labels == (
        "low", "low", "medium", "medium", "high", "high", "low", "medium", "high", "high", "medium", "high",
    )  # fmt: skip
    assert corpus.scores[:2] == (2.0, 5.0)
    assert len(corpus) == 12
    assert corpus.texts[0] == 'He said "no" to the café — and left.'
    with complaint("incomplete-corpus"):
        read_corpus("asap", file)
    write(file, [asap_row(1, 3, 7)], "\t")
    with complaint("not-a-number", "score", "row 1 (set 3)", "'7'", "0 to 3"):
        read_corpus("asap", file)


def test_a_damaged_asap_is_recognised(tmp_path):
    file = tmp_path / "asap.tsv"
    write(file, [asap_row(1, 1.5, 2)], "\t")
    with complaint("not-a-number", "set", "row 1", "'1.5'", "whole", "1 to 8"):
        read_corpus("asap", file, {"partial": True})
    head, *lines = [f"{n}\t3\t{text}\t1\t2" for n, text in enumerate(["head", "plain", '"open', "lost", '"shut"'])]
    head = "essay_id\tessay_set\tessay\trater1_domain1\tdomain1_score"
    for kept in (lines, lines[:3]):
        file.write_text("\n".join([head, *kept]) + "\n")
        with complaint("open-quotation", "row 2 (essay 2)", kind=DamagedFileError):
            read_corpus("asap", file, {"partial": True})


def test_ellipse_official_and_json_lines(tmp_path):
    scores = [1.0, 2.5, 3.0, 3.5, 5.0]
    rows = [
        {"text_id_kaggle": f"k{n}", "full_text": TEXT, "Overall": 3.0, "Cohesion": score, "prompt": "Zoo"}
        for n, score in enumerate(scores)
    ]  # fmt: skip
    rows[4]["prompt"] = "Arts"
    file = write(tmp_path / "ELLIPSE_Final_github.csv", rows)
    with complaint("incomplete-corpus", "5 essays", "6,482"):
        read_corpus("ellipse", file)
    corpus = read_corpus("ellipse", file, {"partial": True})
    assert corpus.labels == ("low", "low", "medium", "high", "high")
    assert corpus.section_names == ("all",)
    assert corpus.groups[4] == "Arts"
    by_prompt = read_corpus("ellipse", file, {"partial": True, "by_prompt": True, "score": "overall"})
    assert by_prompt.section_names == ("Arts", "Zoo")
    assert set(by_prompt.labels) == {"medium"}
    lines = tmp_path / "essays.jsonl"
    lines.write_text(
        "\n".join(json.dumps({"id": n, "text": TEXT, "prompt": "p", "overall": 3, "cohesion": 2}) for n in (1, 2))
    )
    assert read_corpus("ellipse", lines, {"partial": True}).labels == ("low", "low")
    with complaint("incomplete-corpus", "2 essays", "6,482", "1,084"):
        read_corpus("ellipse", lines)


def test_hanna_ratings_are_averaged(tmp_path):
    rows = [
        {"Story ID": story, "Prompt": "p", "Human": "h", "Story": TEXT, "Model": "GPT", "Coherence": rating}
        for story, ratings in ((7, (2, 3, 3)), (8, (3, 3, 4)), (9, (4, 4, 3)))
        for rating in ratings
    ]
    file = write(tmp_path / "hanna_stories_annotations.csv", rows)
    corpus = read_corpus("hanna", file, {"partial": True})
    assert corpus.labels == ("low", "medium", "high")
    assert corpus.ids == ("7", "8", "9")
    assert np.allclose(corpus.scores, (8 / 3, 10 / 3, 11 / 3))
    with complaint("incomplete-corpus", "3 stories", "1,056 with three ratings"):
        read_corpus("hanna", file)


def test_a_hanna_that_was_cut_is_recognised(tmp_path):
    rows = [
        {"Story ID": story, "Story": TEXT, "Model": "GPT", "Coherence": 3} for story in range(1056) for _ in range(3)
    ]
    assert len(read_corpus("hanna", write(tmp_path / "whole.csv", rows))) == 1056
    for kept, lacking in ((rows[:-2], "1"), (rows[::3], "1,056")):
        with complaint("incomplete-corpus", "1,056 stories", f" {lacking} of them"):
            read_corpus("hanna", write(tmp_path / "cut.csv", kept))
    lines = tmp_path / "stories.jsonl"
    stories = [json.dumps({"id": n, "text": TEXT, "source": "GPT", "coherence": 3}) for n in range(1056)]
    lines.write_text("\n".join(stories))
    assert len(read_corpus("hanna", lines)) == 1056
    lines.write_text("\n".join(stories[:150]))
    with complaint("incomplete-corpus", "150 stories", "1,056"):
        read_corpus("hanna", lines)


def test_own_table(tmp_path):
    rows = [
        {"text": f"{TEXT} {n}", "label": n % 2 + 1, "part": "ab"[n % 2], "split": "test" if n > 7 else "train"}
        for n in range(10)
    ]
    file = write(tmp_path / "mine.csv", rows)
    corpus = read_corpus("table", file, {"section_column": "part", "split_column": "split", "score_column": "label"})
    assert corpus.levels == ("1", "2")
    assert corpus.section_names == ("a", "b")
    assert corpus.test == (False,) * 8 + (True,) * 2
    assert corpus.scores[1] == 2.0
    assert corpus.only(["b"]).ids == ("2", "4", "6", "8", "10")
    with complaint("unknown-section", "'c'", "a, b"):
        corpus.only(["c"])
    with complaint("missing-column", "'grade'"):
        read_corpus("table", file, {"label_column": "grade"})
    with complaint("unknown-split", "mine.csv:1", "'a'"):
        read_corpus("table", file, {"split_column": "part"})
    with complaint("unknown-option", "'prompt'"):
        read_corpus("table", file, {"prompt": "x"})


def test_scores_and_ids_of_an_own_table(tmp_path):
    file = write(tmp_path / "a.csv", [{"text": TEXT, "label": n % 2, "name": n // 2, "mean": "4"} for n in range(4)])
    assert read_corpus("table", file, {"score_column": "mean"}).scores == (4.0,) * 4
    with complaint("same-ids", "'0'"):
        read_corpus("table", file, {"id_column": "name"})
    for mean in ("four", "inf"):
        write(file, [{"text": TEXT, "label": n, "mean": mean if n else 1} for n in range(2)])
        with complaint("not-a-number", "a.csv:2", mean):
            read_corpus("table", file, {"score_column": "mean"})


@pytest.mark.parametrize(
    ("kind", "options", "wanted"),
    [
        ("ellipse", {"by_prompt": "false"}, "true or false"),
        ("ellipse", {"score": 5}, "'cohesion' or 'overall'"),
        ("ellipse", {"score": "vocabulary"}, "'cohesion' or 'overall'"),
        ("gcdc", {"label": 5}, "'labelA' or 'labelM'"),
        ("hanna", {"partial": "no"}, "true or false"),
        ("table", {"levels": 5}, "a list"),
        ("table", {"levels": "low"}, "a list"),
        ("table", {"text_column": ["a"]}, "a text"),
        ("table", {"group_column": 5}, "a text"),
    ],
)
def test_options_of_a_wrong_type_are_refused(tmp_path, kind, options, wanted):
    with complaint("bad-option", f"'{next(iter(options))}'", f"'{kind}'", wanted):
        read_corpus(kind, tmp_path, options)


def test_labels_that_are_no_levels(tmp_path):
    rows = [{"text": TEXT, "label": label} for label in ("1", "2", "nan", "2")]
    file = write(tmp_path / "a.csv", rows)
    with complaint("missing-label", "a.csv:3"):
        read_corpus("table", file)
    assert read_corpus("table", file, {"skip_unlabelled": True}).levels == ("1", "2")
    with complaint("unknown-level", "2, 1, 0"):
        read_corpus("table", file, {"skip_unlabelled": True, "levels": [2, 1, 0]})


def test_fingerprint_changes_with_a_letter(tmp_path):
    rows = [{"text": TEXT, "label": "low"}, {"text": TEXT, "label": "high"}]
    before = read_corpus("table", write(tmp_path / "a.csv", rows)).fingerprint
    assert read_corpus("table", write(tmp_path / "a.csv", rows)).fingerprint == before
    rows[1]["text"] += "!"
    assert read_corpus("table", write(tmp_path / "a.csv", rows)).fingerprint != before


def test_unknown_kind_and_place(tmp_path):
    with complaint("unknown-corpus", "'gcd'"):
        read_corpus("gcd", tmp_path)
    with complaint("missing-file", "nothing.csv"):
        read_corpus("hanna", tmp_path / "nothing.csv")
    assert set(READERS) == {"gcdc", "toefl", "asap", "ellipse", "hanna", "table"}


@pytest.mark.skipif(not DATA.exists(), reason="the real labelled documents are not on this machine")
def test_real_labels_agree_with_those_in_the_files():
    for kind, place, options, column in (
        ("hanna", "hanna/stories.jsonl", {}, "label"),
        ("ellipse", "ellipse/essays.jsonl", {"score": "cohesion"}, "cohesion_label"),
        ("ellipse", "ellipse/essays.jsonl", {"score": "overall"}, "overall_label"),
    ):
        rows = [json.loads(line) for line in (DATA / place).read_text("utf-8").splitlines()]
        corpus = read_corpus(kind, DATA / place, options)
        assert corpus.labels == tuple(row[column] for row in rows)
