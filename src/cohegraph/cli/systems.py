"""``cohegraph systems``: what can be trained and compared."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any

import typer
from rich.table import Table

from cohegraph.cli.output import console, plain
from cohegraph.settings import Settings

_MATERIAL = {"states": "encoder states of tokens", "words": "word vectors of tokens", "grid": "entity grid"}


def systems(
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a system, one a line.")] = False,
) -> None:
    """List all systems: where they come from, what they need of a document, and their hyper-parameters."""
    from cohegraph.systems.registry import SYSTEMS

    made = [kind.of(Settings()) for kind in SYSTEMS.values()]
    if as_json:
        for one in made:
            about = {
                "name": one.name,
                "title": one.title,
                "citation": one.citation,
                "needs": sorted(one.needs),
                "hyper_parameters": one.hyper_parameters,
                "search": one.search,
            }
            print(json.dumps(about, ensure_ascii=False))
        return
    table = Table(box=None, header_style="bold", pad_edge=False)
    for title in ("name", "title", "citation", "needs", "hyper-parameters"):
        table.add_column(title, overflow="fold", no_wrap=title == "name")
    for one in made:
        needs = ", ".join(_MATERIAL.get(name, name) for name in sorted(one.needs))
        table.add_row(*plain(one.name, one.title, one.citation, needs, _shown(one.hyper_parameters)))
    screen = console()
    screen.print(table)
    for line in (
        "All systems are given the encoder's vector, pattern counts and surface figures of a document.",
        "corpus_graph.*, nodes.* and training.* are groups of settings.",
        "Train one with: cohegraph train CORPUS --system NAME --set HYPER-PARAMETER=VALUE --out FOLDER",
    ):
        screen.print(*plain(line), style="dim")


def _shown(hyper_parameters: Mapping[str, Any]) -> str:
    """Hyper-parameters with their values; those of a group of settings by the group's name."""
    shown = (
        f"{name.split('.')[0]}.*" if "." in name else f"{name}={json.dumps(value)}"
        for name, value in hyper_parameters.items()
    )
    return ", ".join(dict.fromkeys(shown))
