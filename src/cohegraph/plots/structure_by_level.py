"""How the documents of each level are built: sentences, density, connectedness."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure

from cohegraph.plots.style import INK, METHOD, WIDTH, figure, shortened


def draw_structure_by_level(figures: Mapping[str, Mapping[str, npt.NDArray[np.float64]]]) -> Figure:
    """A box plot of the documents of every level for each figure."""
    with figure(max(WIDTH, 2.1 * len(figures)), 2.9) as drawing:
        for number, (name, by_level) in enumerate(figures.items(), start=1):
            plot = drawing.add_subplot(1, len(figures), number)
            shown = {level: values for level, values in by_level.items() if len(values)}
            plot.boxplot(
                list(shown.values()),
                tick_labels=[shortened(level, max(4, 22 // len(shown))) for level in shown],
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
