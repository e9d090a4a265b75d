"""Corpora as their owners give them out, in small imitations written for these tests."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from cohegraph.corpora.registry import READERS, read_corpus
from cohegraph.errors import CohegraphError

TEXT = "The garden was quiet. A gate stood open. The gate led to the garden."
DATA = Path(__file__).parents[2] / "shared" / "data"


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
    with pytest.raises(CohegraphError, match=r"Yahoo_train.csv has 9 documents instead of 1,000.*5 more parts"):
        read_corpus("gcdc", gcdc)
    write(gcdc / "Yelp_test.csv", [gcdc_row(0, label=4)])
    with pytest.raises(CohegraphError, match=r"Yelp_test.csv: row 1 has the labelA '4', not 1, 2 or 3"):
        read_corpus("gcdc", gcdc, {"partial": True})
    write(gcdc / "Yelp_test.csv", [{"text": TEXT, "score": 1}])
    with pytest.raises(CohegraphError, match="not a file of GCDC as it is given out: it has no column 'text_id'"):
        read_corpus("gcdc", gcdc, {"partial": True})
    (gcdc / "Yelp_test.csv").unlink()
    with pytest.raises(CohegraphError, match=r"lacks Yelp_test.csv of GCDC: add them"):
        read_corpus("gcdc", gcdc)
    assert "Yelp" not in read_corpus("gcdc", gcdc, {"partial": True}).section_names
    with pytest.raises(CohegraphError, match="is it the right folder"):
        read_corpus("gcdc", gcdc.parent)


def test_one_domain_of_gcdc_needs_its_files_only(tmp_path):
    write(tmp_path / "Clinton_train.csv", [gcdc_row(n) for n in range(1000)])
    write(tmp_path / "Clinton_test.csv", [gcdc_row(n) for n in range(200)])
    assert read_corpus("gcdc", tmp_path, sections=("Clinton",)).section_names == ("Clinton",)
    with pytest.raises(CohegraphError, match=r"lacks Yelp_train.csv, Yelp_test.csv of GCDC: add them"):
        read_corpus("gcdc", tmp_path, sections=("Yelp", "Clinton"))
    with pytest.raises(CohegraphError, match="no section 'Paris': choose from Yahoo"):
        read_corpus("gcdc", tmp_path, sections=("Paris",))
    with pytest.raises(CohegraphError, match="has no option 'sections': it has label, partial"):
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
    with pytest.raises(CohegraphError, match="not the whole of TOEFL11: P1 has 6 documents instead of 1,656"):
        read_corpus("toefl", toefl)
    (next(toefl.rglob("5.txt"))).unlink()
    with pytest.raises(CohegraphError, match=r"1 essays of index.csv are not in .*\(the first: 5.txt\)"):
        read_corpus("toefl", toefl)
    assert len(read_corpus("toefl", toefl, {"partial": True})) == 47
    next(toefl.rglob("6.txt")).write_text(" \n")
    with pytest.raises(CohegraphError, match=r"6.txt: the essay has no text"):
        read_corpus("toefl", toefl, {"partial": True})
    next(toefl.rglob("index.csv")).unlink()
    with pytest.raises(CohegraphError, match=r"no index.csv"):
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
    with pytest.raises(CohegraphError, match="not the whole of ASAP"):
        read_corpus("asap", file)
    write(file, [asap_row(1, 3, 7)], "\t")
    with pytest.raises(CohegraphError, match=r"the score of row 1 \(set 3\) is '7', not a number from 0 to 3"):
        read_corpus("asap", file)


def test_a_damaged_asap_is_recognised(tmp_path):
    file = tmp_path / "asap.tsv"
    write(file, [asap_row(1, 1.5, 2)], "\t")
    with pytest.raises(CohegraphError, match=r"the set of row 1 is '1.5', not a whole number from 1 to 8"):
        read_corpus("asap", file, {"partial": True})
    head, *lines = [f"{n}\t3\t{text}\t1\t2" for n, text in enumerate(["head", "plain", '"open', "lost", '"shut"'])]
    head = "essay_id\tessay_set\tessay\trater1_domain1\tdomain1_score"
    for kept in (lines, lines[:3]):
        file.write_text("\n".join([head, *kept]) + "\n")
        with pytest.raises(CohegraphError, match=r"row 2 \(essay 2\) runs into the next: a quotation mark"):
            read_corpus("asap", file, {"partial": True})


def test_ellipse_official_and_json_lines(tmp_path):
    scores = [1.0, 2.5, 3.0, 3.5, 5.0]
    rows = [
        {"text_id_kaggle": f"k{n}", "full_text": TEXT, "Overall": 3.0, "Cohesion": score, "prompt": "Zoo"}
        for n, score in enumerate(scores)
    ]  # fmt: skip
    rows[4]["prompt"] = "Arts"
    file = write(tmp_path / "ELLIPSE_Final_github.csv", rows)
    with pytest.raises(CohegraphError, match="has 5 essays, and ELLIPSE has 6,482"):
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
    with pytest.raises(
        CohegraphError, match=r"has 2 essays, and ELLIPSE has 6,482 .* 1,084 to its eight largest prompts"
    ):
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
    with pytest.raises(CohegraphError, match="has 3 stories, and HANNA has 1,056 with three ratings each"):
        read_corpus("hanna", file)


def test_a_hanna_that_was_cut_is_recognised(tmp_path):
    rows = [
        {"Story ID": story, "Story": TEXT, "Model": "GPT", "Coherence": 3} for story in range(1056) for _ in range(3)
    ]
    assert len(read_corpus("hanna", write(tmp_path / "whole.csv", rows))) == 1056
    for kept, lacking in ((rows[:-2], "1"), (rows[::3], "1,056")):
        with pytest.raises(CohegraphError, match=f"1,056 stories, {lacking} of them without three ratings, and HANNA"):
            read_corpus("hanna", write(tmp_path / "cut.csv", kept))
    lines = tmp_path / "stories.jsonl"
    stories = [json.dumps({"id": n, "text": TEXT, "source": "GPT", "coherence": 3}) for n in range(1056)]
    lines.write_text("\n".join(stories))
    assert len(read_corpus("hanna", lines)) == 1056
    lines.write_text("\n".join(stories[:150]))
    with pytest.raises(CohegraphError, match="has 150 stories, and HANNA has 1,056: download it again"):
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
    with pytest.raises(CohegraphError, match="no section 'c': choose from a, b"):
        corpus.only(["c"])
    with pytest.raises(CohegraphError, match="no column 'grade'"):
        read_corpus("table", file, {"label_column": "grade"})
    with pytest.raises(CohegraphError, match="neither train nor test"):
        read_corpus("table", file, {"split_column": "part"})
    with pytest.raises(CohegraphError, match="has no option 'prompt'"):
        read_corpus("table", file, {"prompt": "x"})


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        ("ellipse", {"by_prompt": "false"}, "'by_prompt' of the corpus 'ellipse' is 'false': write true or false"),
        ("ellipse", {"score": 5}, 'is 5: write "cohesion" or "overall"'),
        ("ellipse", {"score": "vocabulary"}, 'write "cohesion" or "overall"'),
        ("gcdc", {"label": 5}, 'write "labelA" or "labelM"'),
        ("hanna", {"partial": "no"}, "write true or false"),
        ("table", {"levels": 5}, "write a list of words or numbers"),
        ("table", {"levels": "low"}, "write a list of words or numbers"),
        ("table", {"text_column": ["a"]}, "write a text in quotation marks"),
        ("table", {"group_column": 5}, "write a text in quotation marks"),
    ],
)
def test_options_of_a_wrong_type_are_refused(tmp_path, kind, options, message):
    with pytest.raises(CohegraphError, match=message):
        read_corpus(kind, tmp_path, options)


def test_labels_that_are_no_levels(tmp_path):
    rows = [{"text": TEXT, "label": label} for label in ("1", "2", "nan", "2")]
    file = write(tmp_path / "a.csv", rows)
    with pytest.raises(CohegraphError, match=r"1 rows have no label \(the first: row 3\)"):
        read_corpus("table", file)
    assert read_corpus("table", file, {"skip_unlabelled": True}).levels == ("1", "2")
    for labels in ('"1"', '"-inf"'), ("1", "Infinity"):
        lines = tmp_path / "a.jsonl"
        lines.write_text("\n".join(f'{{"text": "{TEXT}", "label": {label}}}' for label in labels))
        with pytest.raises(CohegraphError, match=r"label of document 2 is '-?inf', which is not a finite number"):
            read_corpus("table", lines)
    lines.write_text("\n".join(f'{{"text": "{TEXT}", "label": {label}}}' for label in (1, 10**30)))
    with pytest.raises(CohegraphError, match="too large a number for a level"):
        read_corpus("table", lines)


@pytest.mark.parametrize(("text", "kind"), [("5", "a number"), ('{"a": 1}', "an object"), ("true", "true or false")])
def test_texts_that_are_no_texts(tmp_path, text, kind):
    lines = tmp_path / "a.jsonl"
    lines.write_text(f'{{"text": "{TEXT}", "label": 1}}\n{{"text": {text}, "label": 2}}')
    with pytest.raises(CohegraphError, match=f"the text of row 2 is {kind}, not a text"):
        read_corpus("table", lines)


def test_fingerprint_changes_with_a_letter(tmp_path):
    rows = [{"text": TEXT, "label": "low"}, {"text": TEXT, "label": "high"}]
    before = read_corpus("table", write(tmp_path / "a.csv", rows)).fingerprint
    assert read_corpus("table", write(tmp_path / "a.csv", rows)).fingerprint == before
    rows[1]["text"] += "!"
    assert read_corpus("table", write(tmp_path / "a.csv", rows)).fingerprint != before


def test_unknown_kind_and_place(tmp_path):
    with pytest.raises(CohegraphError, match="no reader for 'gcd'"):
        read_corpus("gcd", tmp_path)
    with pytest.raises(CohegraphError, match="no file or folder"):
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
