"""What all figures share: colours that read on light and dark ground, and files that are the same every time."""

import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from cohegraph.files import write_atomically
from cohegraph.plots.ink import without_control

# Everything that must follow the ground it stands on is drawn in this colour; a page replaces it by its own.
INK = "#1b1f24"
METHOD, BASELINE, TRUE = "#2f81c7", "#e08a1e", "#8a93a0"
_DOTS_AN_INCH = 160
# Inches across: a figure that fills the text of a page, with letters about as large as the page's.
WIDTH = 8.4
_RC: Any = {
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "figure.constrained_layout.use": True,
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9.5,
    "legend.frameon": False,
    "svg.fonttype": "none",
    # Names inside an SVG file come from this instead of from chance.
    "svg.hashsalt": "cohegraph",
    "text.color": INK,
    # Levels, ids and titles are people's own words: a dollar sign in them is a dollar sign.
    "text.parse_math": False,
    "xtick.color": INK,
    "ytick.color": INK,
}


@contextmanager
def _style() -> Iterator[None]:
    with mpl.rc_context(_RC), warnings.catch_warnings():
        # People's words may be in any script: the SVG keeps them all, and a PNG shows boxes for what its font lacks.
        warnings.filterwarnings("ignore", "Glyph .* missing from")
        yield


@contextmanager
def figure(width: float, height: float) -> Iterator[Figure]:
    """A new figure of so many inches, in the style of all."""
    with _style():
        yield Figure(figsize=(width, height))


def shortened(text: str, longest: int = 24) -> str:
    """A level or title that fits beside others: the end of a long one is left out."""
    return text if len(text) <= longest else text[: longest - 1] + "…"


def svg(drawing: Figure, ground: str = "none") -> str:
    """A figure as SVG, without date or version, so that equal figures are equal files."""
    content = io.StringIO()
    with _style():
        for plot in drawing.axes:
            plot.patch.set_alpha(0)
        drawing.savefig(content, format="svg", facecolor=ground, metadata={"Date": None, "Creator": None})
    return without_control(content.getvalue())


def for_page(svg_text: str) -> str:
    """An SVG figure that takes the page's ink, to stand inside HTML."""
    return svg_text[svg_text.index("<svg") :].replace(INK, "currentColor")


def save(drawing: Figure, folder: Path, name: str) -> str:
    """Write a figure as SVG and as PNG on white; the SVG on no ground is given back, for a page."""
    write_atomically(folder / f"{name}.svg", svg(drawing, "white"))
    content = io.BytesIO()
    with _style():
        drawing.savefig(content, format="png", dpi=_DOTS_AN_INCH, facecolor="white", metadata={"Software": None})
    write_atomically(folder / f"{name}.png", content.getvalue())
    return svg(drawing)
