"""Patterns drawn as they are read: sentences in a row from left to right, links as arcs above it."""

from collections.abc import Sequence
from html import escape

from cohegraph.graph.catalogue import Pattern
from cohegraph.plots.ink import attribute, picture

_STEP, _MARGIN, _RADIUS = 22.0, 12.0, 4.5
_ARC_HEIGHT, _LABEL_HEIGHT, _GAP = 11.0, 16.0, 14.0
_ORDINALS = ("1st", "2nd", "3rd", "4th", "5th", "6th")
STYLE = (
    ".cg-pattern .arc{fill:none;stroke:var(--cg-link);stroke-width:1.6}.cg-pattern .head{fill:var(--cg-link)}"
    ".cg-pattern .node{fill:var(--cg-ground);stroke:var(--cg-ink);stroke-width:1.4}"
    ".cg-pattern .alone{stroke:var(--cg-loose);stroke-dasharray:2.2 1.6}"
    ".cg-pattern .name{font:9px sans-serif;fill:var(--cg-ink)}"
)


def draw_pattern(pattern: Pattern, *, inside: bool = False) -> str:
    """One pattern as an SVG picture. Sentences without any link stand out.

    ``inside`` a page that has `STYLE` already, the picture has neither style nor name.
    """
    width, height = _size(pattern)
    if inside:
        attributes = f'class="cg-pattern" role="img" aria-label="{attribute(in_words(pattern))}"'
        # No higher than its highest arc.
        spare = (pattern.k - max((second - first for first, second in pattern.edges), default=1)) * _ARC_HEIGHT
        drawing = _group(pattern, 0, -spare, named=False)
        return picture(width, height - _LABEL_HEIGHT + 4 - spare, drawing, attributes=attributes)
    return _picture(width, height, _group(pattern, 0, 0))


def in_words(pattern: Pattern) -> str:
    """A pattern for those who cannot see it."""
    if not pattern.edges:
        return f"{pattern.k} sentences without any link"
    # Ordinals: plain numbers would be taken for the numbers of the text's sentences.
    links = ", ".join(f"{_ORDINALS[first - 1]} to {_ORDINALS[second - 1]}" for first, second in pattern.edges)
    return f"{pattern.k} sentences linked {links}"


def draw_catalogue(patterns: Sequence[Pattern], columns: int = 8) -> str:
    """Many patterns in rows, each with its name below it."""
    if not patterns:
        return _picture(0, 0, "")
    width, height = (max(side) for side in zip(*map(_size, patterns), strict=True))
    width = max(width, *(5.2 * len(pattern.name) for pattern in patterns)) + _GAP
    height += _GAP
    groups = [
        _group(pattern, (index % columns + 0.5) * width - _size(pattern)[0] / 2, (index // columns) * height)
        for index, pattern in enumerate(patterns)
    ]
    rows = -(-len(patterns) // columns)
    return _picture(min(columns, len(patterns)) * width, rows * height, "".join(groups))


def _size(pattern: Pattern) -> tuple[float, float]:
    return 2 * _MARGIN + (pattern.k - 1) * _STEP, _MARGIN + (pattern.k - 1) * _ARC_HEIGHT + _RADIUS + _LABEL_HEIGHT


def _group(pattern: Pattern, left: float, top: float, *, named: bool = True) -> str:
    base = _MARGIN + (pattern.k - 1) * _ARC_HEIGHT
    linked = {node for edge in pattern.edges for node in edge}
    parts = [f'<g transform="translate({left:g} {top:g})"><title>{escape(pattern.name)}</title>']
    for first, second in pattern.edges:
        parts.append(_arc(first, second, base))
    for node in range(1, pattern.k + 1):
        kind = "node" if node in linked else "node alone"
        parts.append(f'<circle class="{kind}" cx="{_x(node):g}" cy="{base:g}" r="{_RADIUS:g}"/>')
    if not named:
        return "".join((*parts, "</g>"))
    middle = _MARGIN + (pattern.k - 1) * _STEP / 2
    place = f'x="{middle:g}" y="{base + _LABEL_HEIGHT:g}"'
    parts.append(f'<text class="name" {place} text-anchor="middle">{escape(pattern.name)}</text></g>')
    return "".join(parts)


def _arc(first: int, second: int, base: float) -> str:
    """A link to the next sentence runs straight; a farther one rises with its distance."""
    start, end = _x(first), _x(second)
    if second - first == 1:
        line = f"M{start + _RADIUS:g} {base:g}H{end - _RADIUS - 4:g}"
        tip = f"{end - _RADIUS:g},{base:g} {end - _RADIUS - 5:g},{base - 2.6:g} {end - _RADIUS - 5:g},{base + 2.6:g}"
    else:
        rise = 2 * (second - first - 1) * _ARC_HEIGHT
        line = f"M{start:g} {base - _RADIUS:g}Q{(start + end) / 2:g} {base - rise:g} {end - 1:g} {base - _RADIUS - 3:g}"
        tip = f"{end:g},{base - _RADIUS:g} {end - 4.6:g},{base - _RADIUS - 3:g} {end - 0.6:g},{base - _RADIUS - 6:g}"
    return f'<path class="arc" d="{line}"/><polygon class="head" points="{tip}"/>'


def _x(node: int) -> float:
    return _MARGIN + (node - 1) * _STEP


def _picture(width: float, height: float, content: str) -> str:
    return picture(width, height, content, style=STYLE, attributes='class="cg-pattern" role="img"')
