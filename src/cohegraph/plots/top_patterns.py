"""The patterns that go most with each level, drawn with r and p as in the paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyArrowPatch

from cohegraph.graph.catalogue import Pattern
from cohegraph.plots.style import BASELINE, INK, METHOD, figure

_RADIUS = 0.16


def draw_top_patterns(patterns: Mapping[str, Sequence[tuple[Pattern, str]]]) -> Figure:
    """A row a level; each pattern has a caption."""
    columns = max([1, *(len(row) for row in patterns.values())])
    with figure(2.5 * columns + 0.7, 1.55 * max(1, len(patterns))) as drawing:
        for row, (level, chosen) in enumerate(patterns.items()):
            for column in range(columns):
                plot = drawing.add_subplot(max(1, len(patterns)), columns, row * columns + column + 1)
                plot.set_axis_off()
                if column == 0:
                    plot.text(-0.04, 0.5, level, transform=plot.transAxes, rotation=90, va="center", ha="right",
                              fontweight="bold")  # fmt: skip
                if column < len(chosen):
                    pattern, caption = chosen[column]
                    draw_pattern_on(plot, pattern)
                    plot.text(0.5, 0.0, caption, transform=plot.transAxes, ha="center", va="bottom", fontsize=8)
    return drawing


def draw_pattern_on(plot: Axes, pattern: Pattern) -> None:
    """Sentences in reading order from left to right, links as arcs above; sentences without links stand out."""
    linked = {node for edge in pattern.edges for node in edge}
    for first, second in pattern.edges:
        reach = second - first
        bend = 0.0 if reach == 1 else -0.42
        plot.add_patch(
            FancyArrowPatch(
                (first, 0),
                (second, 0),
                connectionstyle=f"arc3,rad={bend}",
                arrowstyle="-|>",
                mutation_scale=9,
                shrinkA=6,
                shrinkB=6,
                color=METHOD,
                linewidth=1.4,
            )
        )
    for node in range(1, pattern.k + 1):
        fill = "none" if node in linked else BASELINE
        plot.add_patch(Circle((node, 0), _RADIUS, facecolor=fill, edgecolor=INK, linewidth=1.2))
    plot.set_xlim(0.5, pattern.k + 0.5)
    plot.set_ylim(-1.0, 0.3 + 0.24 * pattern.k)
    plot.set_aspect("equal")
