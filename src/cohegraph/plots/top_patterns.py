"""The patterns that go most with each level, drawn with r and p as in the paper."""

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyArrowPatch

from cohegraph.graph.catalogue import Pattern
from cohegraph.plots.style import BASELINE, INK, METHOD, TRUE, WIDTH, figure, shortened

_RADIUS = 0.16
_BEND = 0.42  # of an arc; half of it times its length is its height
_BELOW = 0.52  # for the caption
_LARGEST = 0.8  # inches from a sentence to the next


def draw_top_patterns(patterns: Mapping[str, Sequence[tuple[Pattern, str, bool]]]) -> Figure:
    """One row per level; each pattern has a caption, and is grey where it is not significant."""
    columns = max([1, *(len(row) for row in patterns.values())])
    shown = [pattern for row in patterns.values() for pattern, *_ in row]
    longest = max((pattern.k for pattern in shown), default=4)
    scale = min(_LARGEST, (WIDTH - 1) / columns / (longest + 0.4))
    # A row is as high as its highest arc needs.
    above = [_above([pattern for pattern, *_ in row]) for row in patterns.values()] or [0.5]
    heights = [_BELOW + height for height in above]
    with figure(WIDTH, scale * sum(heights) + 0.12 * len(heights)) as drawing:
        grid = drawing.add_gridspec(len(heights), columns, height_ratios=heights)
        for row, (level, chosen) in enumerate(patterns.items()):
            for column in range(columns):
                plot = drawing.add_subplot(grid[row, column])
                plot.set_axis_off()
                plot.set_ylim(-_BELOW, above[row])
                if column == 0:
                    across = plot.get_yaxis_transform()
                    plot.text(-0.04, 0, shortened(level), transform=across, va="center", ha="right", fontweight="bold")
                if column < len(chosen):
                    pattern, caption, significant = chosen[column]
                    draw_pattern_on(plot, pattern, grey=not significant)
                    below, colour = ((1 + pattern.k) / 2, -_RADIUS - 0.1), INK if significant else TRUE
                    plot.text(*below, caption, ha="center", va="top", fontsize=8.5, color=colour)
    return drawing


def _above(patterns: Sequence[Pattern]) -> float:
    reach = max((second - first for pattern in patterns for first, second in pattern.edges), default=1)
    return max(_RADIUS, _BEND / 2 * reach if reach > 1 else 0.0) + 0.12


def draw_pattern_on(plot: Axes, pattern: Pattern, *, grey: bool = False) -> None:
    """Sentences in reading order from left to right, links as arcs above; sentences without links stand out."""
    link, ink, alone = (TRUE, TRUE, TRUE) if grey else (METHOD, INK, BASELINE)
    linked = {node for edge in pattern.edges for node in edge}
    for first, second in pattern.edges:
        straight = second - first == 1
        # From the edge of one circle to that of the other; an arc leaves and arrives from above.
        aside, up = (_RADIUS, 0.0) if straight else (0.7 * _RADIUS, 0.7 * _RADIUS)
        ends, arc = ((first + aside, up), (second - aside, up)), f"arc3,rad={0.0 if straight else -_BEND}"
        arrow = FancyArrowPatch(*ends, connectionstyle=arc, arrowstyle="-|>", mutation_scale=9, shrinkA=1, shrinkB=1)
        arrow.set(color=link, linewidth=1.4)
        plot.add_patch(arrow)
    for node in range(1, pattern.k + 1):
        fill = "none" if node in linked else alone
        plot.add_patch(Circle((node, 0), _RADIUS, facecolor=fill, edgecolor=ink, linewidth=1.2))
    plot.set_xlim(0.7, pattern.k + 0.3)
    plot.set_aspect("equal")
