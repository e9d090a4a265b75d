"""The charts of an experiment: accuracies, predicted levels, and how documents are built."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from cohegraph.plots.style import BASELINE, INK, METHOD, TRUE, WIDTH, figure, shortened

# Lower whisker, lower quartile, median, upper quartile, upper whisker, mean, as matplotlib names them.
BOX_PARTS = ("whislo", "q1", "med", "q3", "whishi", "mean")
_SHORT_NAMES = {"links.delta": "δ", "subgraphs.k": "k", "subgraphs.window": "w"}
_GRID: dict[str, Any] = {"color": TRUE, "alpha": 0.3, "linewidth": 0.7}
_ABOVE: dict[str, Any] = {"loc": "upper center", "bbox_to_anchor": (0.5, 1.16)}


def draw_systems(rows: Sequence[tuple[str, float, float, float]], method: str, unit: str) -> Figure:
    """One dot per system with its interval; ``rows`` are title, value, low and high, the first on top."""
    with figure(WIDTH, 0.5 + 0.34 * len(rows)) as drawing:
        plot = drawing.add_subplot()
        for height, (title, value, low, high) in enumerate(reversed(rows)):
            colour = METHOD if title == method else TRUE
            plot.plot([low, high], [height, height], color=colour, linewidth=2.4, solid_capstyle="round")
            plot.plot([value], [height], "o", color=colour, markersize=7)
            above: dict[str, Any] = {"xytext": (0, 6), "textcoords": "offset points", "ha": "center"}
            plot.annotate(f"{value:.1f}", (value, height), fontsize=8, **above)
        plot.set_yticks(range(len(rows)), [title for title, *_ in reversed(rows)])
        plot.set_ylim(-0.6, len(rows) - 0.2)
        plot.set_xlabel(unit)
        plot.grid(axis="x", **_GRID)
        plot.tick_params(axis="y", length=0)
        plot.spines["left"].set_visible(False)
    return drawing


def draw_level_distribution(levels: Sequence[str], shares: Mapping[str, Sequence[float]]) -> Figure:
    """Bars by level; ``shares`` are in per cent, in the order true levels, baseline, method."""
    with figure(WIDTH, 3.6) as drawing:
        plot = drawing.add_subplot()
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
        plot.legend(ncols=len(shares), **_ABOVE)
    return drawing


def draw_accuracy_by_length(bins: Sequence[str], curves: Mapping[str, Sequence[tuple[float, float, float]]]) -> Figure:
    """One curve per system over bins of length: accuracy, low and high in per cent. The last system is the method."""
    with figure(WIDTH, 3.6) as drawing:
        plot = drawing.add_subplot()
        places = np.arange(len(bins))
        colours = (BASELINE, METHOD)[-len(curves) :]
        for number, ((title, points), colour) in enumerate(zip(curves.items(), colours, strict=True)):
            value, low, high = (np.array(column) for column in zip(*points, strict=True))
            shifted = places + 0.06 * (number - 0.5)
            reach = np.maximum((value - low, high - value), 0)
            plot.errorbar(shifted, value, reach, color=colour, marker="o", capsize=3, label=title)
        plot.set_xticks(places, bins)
        plot.set_xlabel("words")
        plot.set_ylabel("accuracy, %")
        plot.grid(axis="y", **_GRID)
        plot.legend(ncols=len(curves), **_ABOVE)
    return drawing


def draw_structure_by_level(figures: Mapping[str, Mapping[str, Sequence[float]]]) -> Figure:
    """Box plots of the documents of every level, one chart per figure; a box has the values of `BOX_PARTS`."""
    with figure(max(WIDTH, 2.1 * len(figures)), 2.9) as drawing:
        for number, (name, by_level) in enumerate(figures.items(), start=1):
            plot = drawing.add_subplot(1, len(figures), number)
            longest = max(4, 22 // len(by_level))
            plot.bxp(
                [
                    {**dict(zip(BOX_PARTS, box, strict=True)), "label": shortened(level, longest)}
                    for level, box in by_level.items()
                ],
                showfliers=False,
                showmeans=True,
                widths=0.55,
                patch_artist=True,
                boxprops={"facecolor": METHOD + "55", "edgecolor": INK},
                medianprops={"color": INK},
                whiskerprops={"color": INK},
                capprops={"color": INK},
                meanprops={"marker": "o", "markerfacecolor": INK, "markeredgecolor": INK, "markersize": 4},
            )
            plot.set_title(name, fontweight="normal")
            plot.tick_params(axis="x", length=0)
    return drawing


def draw_sensitivity(
    curves: Mapping[str, Sequence[tuple[float, float, float, float]]], chosen: Mapping[str, float]
) -> Figure:
    """One curve per setting: value, accuracy, low and high; a line at the value that the experiment uses."""
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
            plot.set_xlabel(_SHORT_NAMES.get(setting, setting))
            plot.grid(axis="y", **_GRID)
        if first is not None:
            first.set_ylabel("accuracy, %")
    return drawing
