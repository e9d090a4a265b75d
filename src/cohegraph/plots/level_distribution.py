"""Which levels systems predict, beside the true shares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from cohegraph.plots.style import BASELINE, METHOD, TRUE, WIDTH, axes, figure, shortened


def draw_level_distribution(levels: Sequence[str], shares: Mapping[str, Sequence[float]]) -> Figure:
    """Bars by level; ``shares`` are in per cent, in the order true levels, baseline, method."""
    with figure(WIDTH, 3.6) as drawing:
        plot = axes(drawing)
        width = 0.8 / len(shares)
        places = np.arange(len(levels))
        colours = (TRUE, *(BASELINE, METHOD)[-(len(shares) - 1) :])
        for number, ((title, values), colour) in enumerate(zip(shares.items(), colours, strict=False)):
            left = places + (number - (len(shares) - 1) / 2) * width
            bars = plot.bar(left, values, width * 0.92, label=title, color=colour)
            plot.bar_label(bars, fmt="%.0f", padding=2, fontsize=8)
        plot.set_xticks(places, [shortened(level, max(4, 80 // len(levels))) for level in levels])
        plot.set_ylabel("documents, %")
        plot.tick_params(axis="x", length=0)
        plot.legend(loc="upper center", bbox_to_anchor=(0.5, 1.16), ncols=len(shares))
    return drawing
