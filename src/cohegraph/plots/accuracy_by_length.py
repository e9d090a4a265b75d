"""Accuracy against the length of documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from cohegraph.plots.style import BASELINE, METHOD, TRUE, WIDTH, axes, figure


def draw_accuracy_by_length(bins: Sequence[str], curves: Mapping[str, Sequence[tuple[float, float, float]]]) -> Figure:
    """A curve a system over bins of length: accuracy, low and high in per cent. The last system is the method."""
    with figure(WIDTH, 3.6) as drawing:
        plot = axes(drawing)
        places = np.arange(len(bins))
        for number, ((title, points), colour) in enumerate(
            zip(curves.items(), (BASELINE, METHOD)[-len(curves) :], strict=True)
        ):
            value, low, high = (np.array(column) for column in zip(*points, strict=True))
            shifted = places + 0.06 * (number - 0.5)
            reach = np.maximum((value - low, high - value), 0)
            plot.errorbar(shifted, value, reach, color=colour, marker="o", capsize=3, label=title)
        plot.set_xticks(places, bins)
        plot.set_xlabel("words")
        plot.set_ylabel("accuracy, %")
        plot.grid(axis="y", color=TRUE, alpha=0.3, linewidth=0.7)
        plot.legend(loc="upper center", bbox_to_anchor=(0.5, 1.16), ncols=len(curves))
    return drawing
