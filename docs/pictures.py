"""Draws the pictures of the documentation: ``python docs/pictures.py`` from the project's root."""

from __future__ import annotations

from pathlib import Path

from cohegraph import load
from cohegraph.graph.catalogue import Pattern, catalogue
from cohegraph.plots.patterns import draw_catalogue

DOCS = Path(__file__).parent
EXAMPLES = ("connected", "drifting", "disjointed")


def example_graphs() -> list[Pattern]:
    """The sentence graphs of the example texts, drawn like patterns, with the level that the shipped model gives."""
    model = load()
    texts = [(DOCS.parent / "examples" / f"{name}.txt").read_text("utf-8") for name in EXAMPLES]
    graphs = []
    for name, linked, result in zip(EXAMPLES, model.featurizer.link(texts), model.assess(texts), strict=True):
        source, target = linked.links.pairs()
        edges = zip((source + 1).tolist(), (target + 1).tolist(), strict=True)
        title = f"{name}.txt: {result.level} ({100 * result.probabilities[result.level]:.0f} %)"
        graphs.append(Pattern(title, linked.links.size, tuple(edges), connected=False))
    return graphs


def main() -> None:
    """Write the pictures beside this file."""
    (DOCS / "patterns-4.svg").write_text(draw_catalogue(catalogue(4).patterns), "utf-8")
    (DOCS / "examples.svg").write_text(draw_catalogue(example_graphs(), columns=3), "utf-8")


if __name__ == "__main__":
    main()
