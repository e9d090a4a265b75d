"""Rebuilds the tables and figures of all experiments from the JSON files in this folder.

Run it from anywhere: ``python docs/results/rebuild.py``. Tables and figures go to build/results, a folder for
each experiment. In README.md, the tables between ``<!-- table EXPERIMENT/TABLE -->`` and ``<!-- end -->`` are replaced.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from cohegraph.experiments.figures import figures, write_figures
from cohegraph.experiments.summary import METHOD_PAIRS, Summary, read_summary
from cohegraph.experiments.table import write_tables

HERE = Path(__file__).parent
BUILD = HERE.parents[1] / "build" / "results"
PAGE = HERE / "README.md"
_MARKED = re.compile(r"(<!-- table ([\w-]+)/([\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def main() -> None:
    """Write the tables and figures of every experiment, and the page with its tables."""
    summaries = read_summaries()
    for name, summary in summaries.items():
        write_tables(summary.tables.values(), BUILD / name)
        write_figures(figures(summary), BUILD / name)
        print(BUILD / name)
    PAGE.write_text(with_tables(PAGE.read_text("utf-8"), summaries), "utf-8")


def read_summaries() -> dict[str, Summary]:
    """All experiments by name."""
    return {file.stem: read_summary(file) for file in sorted(HERE.glob("*.json"))}


def with_tables(page: str, summaries: Mapping[str, Summary]) -> str:
    """The page with the tables that its markers name."""

    def marked(found: re.Match[str]) -> str:
        begin, experiment, table, end = found.groups()
        summary = summaries[experiment]
        chosen = summary.method_pairs() if table == METHOD_PAIRS else summary.tables[table]
        return f"{begin}\n{chosen.markdown()}\n{end}"

    return _MARKED.sub(marked, page)


if __name__ == "__main__":
    main()
