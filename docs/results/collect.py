"""Copies what experiments found from build/results into this folder: tables and figures, never a document's text.

Run it from anywhere: ``python docs/results/collect.py``. It writes README.md from the text in about.md and the tables.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

HERE = Path(__file__).parent
BUILD = HERE.parents[1] / "build" / "results"
DATA = {"hanna": "hanna/stories.jsonl", "ellipse": "ellipse/essays.jsonl"}
# The tables that the page shows of each experiment; the others are beside it. Parts have plans of their own, here.
MAIN = ("measures", "accuracy", "ablation", "variants")
EXPERIMENTS = {
    "hanna": MAIN,
    "ellipse-cohesion": MAIN,
    "ellipse-overall": MAIN,
    "hanna-parts": ("variants",),
    "ellipse-cohesion-parts": ("variants",),
    "ellipse-overall-parts": ("variants",),
    "hanna-systems": ("overview", "shuffle-test"),
    "ellipse-cohesion-systems": ("overview", "shuffle-test"),
    "ellipse-overall-systems": ("overview",),
}
FIGURES = ("systems", "level-distribution", "accuracy-by-length", "top-patterns", "sensitivity")


def main() -> None:
    """Copy every finished experiment, and write the page that shows them."""
    page = [(HERE / "about.md").read_text("utf-8")]
    for name in EXPERIMENTS:
        if (BUILD / name / "report.html").exists():
            copy(BUILD / name, HERE / name)
        if (HERE / name).exists():
            page.append(section(name))
    (HERE / "README.md").write_text("\n".join(page), "utf-8")


def copy(folder: Path, place: Path) -> None:
    """Tables and figures of one experiment."""
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    shutil.copy(folder / "experiment.json", place)
    for table in sorted((folder / "tables").glob("*.md")):
        shutil.copy(table, place)
    for figure in sorted((folder / "figures").glob("*.svg")):
        # Examples show texts, which stay where they are.
        if not figure.stem.startswith("example-"):
            shutil.copy(figure, place)


def section(name: str) -> str:
    """The part of the page that shows one experiment."""
    place = HERE / name
    plan = json.loads((place / "experiment.json").read_text("utf-8"))["plan"]
    one_seed = len(plan["protocol"]["seeds"]) == 1
    shown = [
        table for table in EXPERIMENTS[name] if (place / f"{table}.md").exists() and (table != "accuracy" or one_seed)
    ]
    is_main = EXPERIMENTS[name] is MAIN
    file = f"docs/results/{name}.toml" if (HERE / f"{name}.toml").exists() else name
    data = DATA[name.split("-")[0]]
    figures = FIGURES if is_main else FIGURES[:1]
    parts = [
        f"## {plan['title']}",
        "",
        f"`cohegraph experiment {file} --corpus ../shared/data/{data} --out build/results/{name} --cores 2`",
        "",
        *((place / f"{table}.md").read_text("utf-8") for table in shown),
        *([method_rows((place / "comparisons.md").read_text("utf-8"))] if is_main else []),
        *(f"![{figure}]({name}/{figure}.svg)\n" for figure in figures if (place / f"{figure}.svg").exists()),
        "All tables: " + ", ".join(f"[{file.stem}]({name}/{file.name})" for file in sorted(place.glob("*.md"))) + ".\n",
    ]
    return "\n".join(parts)


def method_rows(table: str) -> str:
    """Of the table of comparisons, the rows of the method."""
    lines = table.splitlines()
    method = lines[4].split("|")[1]
    return (
        "\n".join(line for line in lines if not line.startswith("| ") or line.split("|")[1] in (method, " system "))
        + "\n"
    )


if __name__ == "__main__":
    main()
