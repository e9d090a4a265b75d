"""The accuracy of every system with its interval, one under the other."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from cohegraph.plots.style import METHOD, TRUE, WIDTH, axes, figure


def draw_systems(rows: Sequence[tuple[str, float, float, float]], method: str, unit: str) -> Figure:
    """A dot a system with its interval; ``rows`` are title, value, low and high, the first on top."""
    with figure(WIDTH, 0.5 + 0.34 * len(rows)) as drawing:
        plot = axes(drawing)
        for height, (title, value, low, high) in enumerate(reversed(rows)):
            colour = METHOD if title == method else TRUE
            plot.plot([low, high], [height, height], color=colour, linewidth=2.4, solid_capstyle="round")
            plot.plot([value], [height], "o", color=colour, markersize=7)
            plot.annotate(f"{value:.1f}", (value, height), xytext=(0, 6), textcoords="offset points", ha="center",
                          fontsize=8)  # fmt: skip
        plot.set_yticks(range(len(rows)), [title for title, *_ in reversed(rows)])
        plot.set_ylim(-0.6, len(rows) - 0.2)
        plot.set_xlabel(unit)
        plot.grid(axis="x", color=TRUE, alpha=0.3, linewidth=0.7)
        plot.tick_params(axis="y", length=0)
        plot.spines["left"].set_visible(False)
    return drawing
