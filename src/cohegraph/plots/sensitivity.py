"""Accuracy against one setting at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from cohegraph.plots.style import METHOD, TRUE, WIDTH, figure

_NAMES = {"links.delta": "δ", "subgraphs.k": "k", "subgraphs.window": "w"}


def draw_sensitivity(
    curves: Mapping[str, Sequence[tuple[float, float, float, float]]], chosen: Mapping[str, float]
) -> Figure:
    """A curve a setting: value, accuracy, low and high; a line at the value that the experiment uses."""
    with figure(max(WIDTH, 2.8 * len(curves)), 2.9) as drawing:
        first = None
        for number, (setting, points) in enumerate(curves.items(), start=1):
            plot = drawing.add_subplot(1, len(curves), number, sharey=first)
            first = first or plot
            value, mean, low, high = (np.array(column) for column in zip(*sorted(points), strict=True))
            plot.fill_between(value, low, high, color=METHOD, alpha=0.18, linewidth=0)
            plot.plot(value, mean, "o-", color=METHOD)
            if setting in chosen:
                plot.axvline(chosen[setting], color=TRUE, linestyle=":", linewidth=1.2)
            plot.set_xticks(value)
            plot.set_xlabel(_NAMES.get(setting, setting))
            plot.grid(axis="y", color=TRUE, alpha=0.3, linewidth=0.7)
            if number == 1:
                plot.set_ylabel("accuracy, %")
    return drawing
