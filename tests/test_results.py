"""The published results: what is shown is what their files hold."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

from cohegraph.experiments.figures import figures
from cohegraph.experiments.summary import read_summary

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "docs" / "results"
FILES = sorted(RESULTS.glob("*.json"))
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def test_the_page_shows_the_tables_of_the_files():
    rebuild = runpy.run_path(str(RESULTS / "rebuild.py"))
    page = (RESULTS / "README.md").read_text("utf-8")
    assert {file.stem for file in FILES} == set(re.findall(r"<!-- table ([\w-]+)/", page))
    assert page.count("<!-- table ") == page.count("<!-- end -->")
    assert rebuild["with_tables"](page, rebuild["read_summaries"]()) == page
    without = re.sub(r"(?m)^\|.*\n", "", page)
    assert without != page
    assert rebuild["with_tables"](without, rebuild["read_summaries"]()) == page


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_file_is_what_reading_and_writing_gives(file, tmp_path):
    read_summary(file).write(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == file.read_bytes()


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_figure_can_be_drawn(file):
    summary = read_summary(file)
    drawn = {one.name: one.draw() for one in figures(summary)}
    assert {"systems", "level-distribution", "accuracy-by-length", "structure-by-level"} <= set(drawn)
    assert ("sensitivity" in drawn) == bool(summary.about["plan"]["sensitivity"])
    sections = {section for (section,) in summary.tables["statistics"].under("section")}
    assert len([name for name in drawn if name.startswith("top-patterns")]) == len(sections)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_pages_link_to_files_that_are_there(page):
    links = re.findall(r"\]\(([^)\s#]+)", page.read_text("utf-8"))
    assert not [link for link in links if ":" not in link and not (page.parent / link).exists()]
