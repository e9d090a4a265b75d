"""How the documents of each level are built: sentences, density, connectedness."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.figure import Figure

from cohegraph.plots.style import INK, METHOD, WIDTH, figure, shortened

# Lower whisker, lower quartile, median, upper quartile, upper whisker, mean.
Box = tuple[float, float, float, float, float, float]


def draw_structure_by_level(figures: Mapping[str, Mapping[str, Box]]) -> Figure:
    """A box plot of the documents of every level for each figure."""
    with figure(max(WIDTH, 2.1 * len(figures)), 2.9) as drawing:
        for number, (name, by_level) in enumerate(figures.items(), start=1):
            plot = drawing.add_subplot(1, len(figures), number)
            longest = max(4, 22 // len(by_level))
            plot.bxp(
                [_drawn(box, shortened(level, longest)) for level, box in by_level.items()],
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


def _drawn(box: Box, label: str) -> dict[str, float | str]:
    """A box under the names that matplotlib has for its parts."""
    low, lower, median, upper, high, mean = box
    return {"whislo": low, "q1": lower, "med": median, "q3": upper, "whishi": high, "mean": mean, "label": label}
