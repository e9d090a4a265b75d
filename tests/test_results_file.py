"""The results file: lines are appended and never changed, and the last line for a document counts."""

from __future__ import annotations

import json
import resource
import shlex
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cohegraph.assessment import Assessment, Notice
from cohegraph.corpora.stream import Entry
from cohegraph.errors import CohegraphError
from cohegraph.scale.engine import batches
from cohegraph.scale.results_file import results_file
from cohegraph.scale.scoring import Scored

MODEL = {"model": "é", "model_sha256": "a" * 64}
OTHER = {"model": "é", "model_sha256": "b" * 64}
NAMES = ("a.txt", "b.csv:1", "b.csv:2", 'c "quoted"\n.txt', "é")
TEXTS = st.sampled_from(["One.", "Two.", "Drei für é.", ""])


@st.composite
def inputs(draw, names=NAMES):
    """Some documents in any order; those without text are errors."""
    chosen = draw(st.lists(st.sampled_from(names), unique=True, max_size=len(names)))
    return [_entry(name, draw(TEXTS), draw(st.sampled_from([None, "1"])), draw(st.integers(0, 1))) for name in chosen]


def _entry(name, text, id_=None, reason=0):
    return Entry(name, text, id=id_) if text else Entry(name, error=CohegraphError(f"{name} is bad in way {reason}."))


def _scored(entry):
    result = Assessment(
        "high", 75.0, {"low": 0.25, "high": 0.75}, {"sentences": len(entry.text)}, (Notice("né", "odd"),)
    )
    return Scored(entry, None if entry.problem else result)


def assess(file, entries, *, model=MODEL, retry_errors=False, batches_written=None):
    """A run; what it reported. It may be stopped after so many batches."""
    reported = []
    with results_file(file, model) as opened:
        missing = opened.missing(entries, reported.append, retry_errors=retry_errors)
        for some in islice(batches(missing, 2), batches_written):
            reported.extend(entry.problem for entry in some if entry.problem)
            opened.append(map(_scored, some))
    return reported


def content(file):
    return file.read_bytes() if file.exists() else b""


def last_lines(file):
    found = {}
    for line in content(file).splitlines():
        found[json.loads(line)["document"]] = json.loads(line)
    return found


@contextmanager
def new_file():
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder) / "results.jsonl"


def fresh(entries):
    with new_file() as file:
        assess(file, entries)
        return content(file)


@settings(deadline=None)
@given(inputs(), st.booleans(), st.data())
def test_a_run_that_was_cut_anywhere_resumes_to_the_same_bytes(entries, retry_errors, data):
    whole = fresh(entries)
    assert [json.loads(line)["document"] for line in whole.splitlines()] == [entry.name for entry in entries]
    with new_file() as file:
        file.write_bytes(whole[: data.draw(st.integers(0, len(whole)))])
        reported = assess(file, entries, retry_errors=retry_errors)
        assert content(file) == whole
        assert sorted(reported) == sorted(entry.problem for entry in entries if entry.problem)


@settings(deadline=None)
@given(st.lists(inputs(), min_size=1, max_size=4))
def test_lines_are_only_appended_and_the_last_one_counts(runs):
    """Documents are added, moved, changed, changed back and removed; with retries, no old line ever hides a new one."""
    with new_file() as file:
        for entries in runs:
            before = content(file)
            assess(file, entries, retry_errors=True)
            assert content(file).startswith(before)
            expected = [json.loads(line) for line in fresh(entries).splitlines()]
            assert [last_lines(file)[line["document"]] for line in expected] == expected
            after = content(file)
            assess(file, entries, retry_errors=True)
            assess(file, entries)
            assert content(file) == after


@settings(deadline=None)
@given(st.lists(inputs(), min_size=2, max_size=3), st.integers(0, 2), st.booleans(), st.data())
def test_a_later_run_that_was_cut_resumes_to_the_same_bytes(runs, written, retry_errors, data):
    with new_file() as file:
        for entries in runs[:-1]:
            assess(file, entries)
        before = content(file)
        assess(file, runs[-1], retry_errors=retry_errors)
        whole = content(file)
        file.write_bytes(before)
        assess(file, runs[-1], retry_errors=retry_errors, batches_written=written)
        assert whole.startswith(content(file))
        stopped = content(file)
        file.write_bytes(whole[: data.draw(st.integers(len(stopped), len(whole)))])
        assess(file, runs[-1], retry_errors=retry_errors)
        assert content(file) == whole


@settings(deadline=None)
@given(inputs(), inputs())
def test_errors_are_skipped_and_reported_until_they_are_retried(first, second):
    with new_file() as file:
        assess(file, first)
        before, failed = content(file), {entry.name for entry in first if entry.problem}
        reported = assess(file, second)
        appended = {json.loads(line)["document"] for line in content(file)[len(before) :].splitlines()}
        assert not appended & failed
        assert len(reported) == sum(entry.name in failed or bool(entry.problem) for entry in second)
        assess(file, second, retry_errors=True)
        assert sorted(assess(file, second)) == sorted(entry.problem for entry in second if entry.problem)


@settings(deadline=None)
@given(inputs().filter(bool), st.data())
def test_a_disk_that_is_full_at_any_byte(entries, data):
    whole = fresh(entries)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    with new_file() as file:
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (data.draw(st.integers(0, len(whole) - 1)), limits[1]))
            with pytest.raises(CohegraphError):
                assess(file, entries)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert whole.startswith(content(file))
        assess(file, entries)
        assert content(file) == whole


def of_other_model(entries, cut):
    with new_file() as file:
        assess(file, entries, model=OTHER)
        # A first line that is cut before it names the model could be of any.
        named = content(file).index(b"bbb") + 1
        return content(file)[: max(named, len(content(file)) - cut)]


def cannot_be_cut(content):
    """Whether it cannot be the beginning of a line of results, which is all that is left of a line that was cut."""
    return not content.startswith(BEGINNING) and not BEGINNING.startswith(content)


BEGINNING = b'{"document": "'
FOREIGN = st.one_of(
    st.binary(min_size=1).filter(cannot_be_cut),
    st.text(min_size=1).map(str.encode).filter(cannot_be_cut),
    st.recursive(
        st.none() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["document", "text_sha256", "a"]), inner),
    ).map(lambda value: json.dumps(value).encode()),
    st.builds(of_other_model, inputs().filter(bool), st.integers(0, 2_000)),
)


@settings(deadline=None)
@example([], b'{"document": "my own notes"}', b"", [])
@example([], b'{"document": "my own', b"\n", [])
@given(inputs(), FOREIGN, st.sampled_from([b"", b"\n"]), inputs())
def test_what_is_not_results_of_this_model_is_refused_and_never_touched(entries, foreign, end, others):
    with new_file() as file:
        # After results of this model, too.
        for before in (b"", fresh(others)):
            file.write_bytes(before + foreign + end)
            with pytest.raises(CohegraphError):
                assess(file, entries)
            assert content(file) == before + foreign + end


@settings(deadline=None)
@given(inputs())
def test_lines_that_another_tool_has_written_count_as_well(entries):
    """Other order and spacing of the fields: a file from which old lines were removed can be used further."""
    with new_file() as file:
        lines = [dict(reversed(json.loads(line).items())) for line in fresh(entries).splitlines()]
        before = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines).encode()
        file.write_bytes(before)
        assess(file, entries, retry_errors=True)
        assert content(file) == before


def test_a_file_that_gets_no_line_is_not_left_behind(tmp_path):
    new, empty = tmp_path / "new.jsonl", tmp_path / "empty.jsonl"
    empty.touch()
    for file in (new, empty):
        assess(file, [])
    assert (new.exists(), empty.exists()) == (False, True)


def test_one_process_per_file(tmp_path):
    file = tmp_path / "results.jsonl"
    with results_file(file, MODEL), pytest.raises(CohegraphError), results_file(file, MODEL):
        pass


def test_a_line_that_is_too_long_is_not_taken_for_one_that_was_cut(tmp_path):
    file = tmp_path / "results.jsonl"
    longest = 1 << 24
    before = BEGINNING.ljust(longest, b"a") + fresh([_entry("a", "One.")])
    file.write_bytes(before)
    with pytest.raises(CohegraphError):
        assess(file, [])
    assert content(file) == before


def test_a_file_without_line_ends_is_not_read_whole(tmp_path):
    file = tmp_path / "results.jsonl"
    with file.open("wb") as stream:
        stream.write(BEGINNING)
        stream.truncate(1 << 34)
    with pytest.raises(CohegraphError):
        assess(file, [])
    assert file.stat().st_size == 1 << 34


def test_the_command_of_the_docs_keeps_the_last_lines(tmp_path):
    file = tmp_path / "results.jsonl"
    assess(file, [_entry("a", ""), _entry("b", "One."), _entry("é", "One.")])
    assess(file, [_entry("b", "Two."), _entry("a", "Three.")], retry_errors=True)
    page = (Path(__file__).parents[1] / "docs" / "scale.md").read_text("utf-8")
    [command] = [line for line in page.splitlines() if line.endswith("< results.jsonl > last.jsonl")]
    command = command.replace("python ", f"{shlex.quote(sys.executable)} ", 1)
    subprocess.run(command, shell=True, check=True, cwd=tmp_path)
    assert last_lines(tmp_path / "last.jsonl") == last_lines(file)
    assert len(content(tmp_path / "last.jsonl").splitlines()) == 3
