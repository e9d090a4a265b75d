"""``cohegraph systems``: what can be trained and compared."""

import json
from collections.abc import Mapping
from dataclasses import fields
from typing import Annotated, Any

from typer import Option

from cohegraph.cli.output import console, new_table, plain, print_json, show
from cohegraph.settings import Settings

_MATERIAL = {"states": "states of tokens", "words": "word vectors", "grid": "roles of entities"}


def systems(
    as_json: Annotated[bool, Option("--json", help="One JSON object per line, one for each system.")] = False,
) -> None:
    """List all systems: where they come from, what they need of a document, and their hyper-parameters."""
    from cohegraph.systems.neural import SequenceModel
    from cohegraph.systems.registry import SYSTEMS

    made = [kind.of(Settings()) for kind in SYSTEMS.values()]
    if as_json:
        for one in made:
            about = {
                "name": one.name,
                "title": one.title,
                "description": _in_a_line(one),
                "citation": one.citation,
                "needs": sorted(one.needs),
                "hyper_parameters": one.hyper_parameters,
                "search": one.search,
            }
            print_json(about)
        return
    shared = {item.name for item in fields(SequenceModel)}
    table = new_table("name", "what it is", "citation", "needs", "hyper-parameters")
    table.columns[0].no_wrap = True
    for one in made:
        needs = ", ".join(_MATERIAL.get(name, name) for name in sorted(one.needs))
        on_tokens = isinstance(one, SequenceModel)
        own = {name: value for name, value in one.hyper_parameters.items() if not (on_tokens and name in shared)}
        common = "as all on tokens; " if on_tokens else ""
        table.add_row(*plain(one.name, _in_a_line(one), one.citation, needs, f"{common}{_shown(own)}".rstrip("; ")))
    console().print(table)
    example = next(one for one in made if isinstance(one, SequenceModel))
    common = _shown({name: value for name, value in example.hyper_parameters.items() if name in shared})
    show(
        f"All that read tokens have {common} (tokens: states or words).",
        "All systems are given the encoder's vector, pattern counts and surface figures of a document.",
        "corpus_graph.*, nodes.* and training.* are groups of settings.",
        "Train one with: cohegraph train CORPUS --system NAME --set HYPER-PARAMETER=VALUE --out FOLDER",
        style="dim",
    )


def _in_a_line(system: object) -> str:
    """The first line of what its class says."""
    return (type(system).__doc__ or "").split("\n")[0].rstrip(".")


def _shown(hyper_parameters: Mapping[str, Any]) -> str:
    """Hyper-parameters with their values; those of a group of settings by the group's name."""
    shown = (
        f"{name.split('.')[0]}.*" if "." in name else f"{name}={json.dumps(value)}"
        for name, value in hyper_parameters.items()
    )
    return ", ".join(dict.fromkeys(shown))
