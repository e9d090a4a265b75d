"""Patterns drawn as they are read: sentences in a row from left to right, links as arcs above it."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from cohegraph.graph.catalogue import Pattern

_STEP, _MARGIN, _RADIUS = 22.0, 12.0, 4.5
_ARC_HEIGHT, _LABEL_HEIGHT, _GAP = 11.0, 16.0, 14.0
_STYLE = (
    "<style>.arc{fill:none;stroke:#1f4e79;stroke-width:1.6}.head{fill:#1f4e79}"
    ".node{fill:#fff;stroke:#333;stroke-width:1.4}.alone{fill:#f2c14e}"
    ".name{font:9px sans-serif;fill:#333}</style>"
)


def draw_pattern(pattern: Pattern) -> str:
    """One pattern as an SVG picture. Sentences without any link stand out."""
    width, height = _size(pattern)
    return _picture(width, height, _group(pattern, 0, 0))


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


def _group(pattern: Pattern, left: float, top: float) -> str:
    base = _MARGIN + (pattern.k - 1) * _ARC_HEIGHT
    linked = {node for edge in pattern.edges for node in edge}
    parts = [f'<g transform="translate({left:g} {top:g})"><title>{escape(pattern.name)}</title>']
    for first, second in pattern.edges:
        parts.append(_arc(first, second, base))
    for node in range(1, pattern.k + 1):
        kind = "node" if node in linked else "node alone"
        parts.append(f'<circle class="{kind}" cx="{_x(node):g}" cy="{base:g}" r="{_RADIUS:g}"/>')
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
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" '
        f'height="{height:g}" role="img">{_STYLE}{content}</svg>'
    )
