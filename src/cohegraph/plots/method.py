"""How a verdict is computed, drawn in five steps."""

from __future__ import annotations

from html import escape

from cohegraph.plots.ink import picture

_WIDTH, _HEIGHT, _GAP, _TOP = 150.0, 110.0, 34.0, 8.0
_STEPS = (
    ("Sentences and nouns", "sentences"),
    ("Links between sentences", "links"),
    ("Small groups, counted", "groups"),
    ("Graded texts that share them", "texts"),
    ("Level", "level"),
)
STYLE = (
    ".cg-method text{font:12px system-ui,sans-serif;fill:var(--cg-ink);text-anchor:middle}"
    ".cg-method .box{fill:none;stroke:var(--cg-soft);stroke-width:1;rx:8}"
    ".cg-method .line{stroke:var(--cg-soft);stroke-width:5;stroke-linecap:round}"
    ".cg-method .noun{stroke:var(--cg-link);stroke-width:5;stroke-linecap:round}"
    ".cg-method .arc{fill:none;stroke:var(--cg-link);stroke-width:2}"
    ".cg-method .dot{fill:var(--cg-link)}.cg-method .hollow{fill:var(--cg-ground);stroke:var(--cg-link);stroke-width:2}"
    ".cg-method .arrow{fill:none;stroke:var(--cg-ink);stroke-width:1.5}"
    ".cg-method .bar{fill:var(--cg-link)}"
)


def draw_method() -> str:
    """The way from a text to its level, for a page that has `STYLE`."""
    parts = []
    for number, (title, kind) in enumerate(_STEPS):
        x = number * (_WIDTH + _GAP)
        parts.append(f'<rect class="box" x="{x + 1:g}" y="{_TOP:g}" width="{_WIDTH:g}" height="{_HEIGHT:g}"/>')
        parts.append(f'<g transform="translate({x:g} {_TOP:g})">{_DRAWINGS[kind]()}</g>')
        parts.append(f'<text x="{x + _WIDTH / 2:g}" y="{_TOP + _HEIGHT + 20:g}">{number + 1}. {escape(title)}</text>')
        if number:
            middle = _TOP + _HEIGHT / 2
            parts.append(f'<path class="arrow" d="M{x - _GAP + 6:g} {middle:g}H{x - 7:g}m-6 -5l6 5l-6 5"/>')
    width = len(_STEPS) * _WIDTH + (len(_STEPS) - 1) * _GAP + 2
    words = "From the text to its level: " + ", then ".join(title.lower() for title, _ in _STEPS)
    attributes = f'class="cg-method" role="img" aria-label="{escape(words, quote=True)}"'
    return picture(width, _TOP + _HEIGHT + 30, "".join(parts), attributes=attributes)


def _sentences() -> str:
    rows = ((18, 30, 62, 84, 130), (18, 44, 70, 98, 118), (18, 26, 56, 78, 126), (18, 60, 92, 110, 124))
    parts = []
    for number, (start, before, noun, behind, end) in enumerate(rows):
        y = 24 + 21 * number
        parts.append(f'<path class="line" d="M{start} {y}H{before}M{behind} {y}H{end}"/>')
        parts.append(f'<path class="noun" d="M{before + 9} {y}H{max(noun, before + 12)}"/>')
    return "".join(parts)


def _dots(count: int, start: float, step: float, y: float, hollow: tuple[int, ...] = ()) -> str:
    return "".join(
        f'<circle class="{"hollow" if number in hollow else "dot"}" cx="{start + step * number:g}" cy="{y:g}" r="5"/>'
        for number in range(count)
    )


def _arcs(pairs: tuple[tuple[int, int], ...], start: float, step: float, y: float) -> str:
    return "".join(
        f'<path class="arc" d="M{start + step * first:g} {y - 5:g}A{step * (second - first) / 2:g} '
        f'{9 + 8 * (second - first):g} 0 0 1 {start + step * second:g} {y - 5:g}"/>'
        for first, second in pairs
    )


def _links() -> str:
    return _arcs(((0, 1), (0, 3), (2, 3)), 18, 28, 78) + _dots(5, 18, 28, 78, hollow=(4,))


def _groups() -> str:
    parts = []
    for number, pairs in enumerate((((0, 1),), ((0, 1), (1, 2)), ((0, 2),))):
        y = 32 + 32 * number
        parts.append(_arcs(pairs, 18, 24, y) + _dots(3, 18, 24, y))
        parts.append(f'<text x="118" y="{y + 4}">× {(5, 2, 4)[number]}</text>')
    return "".join(parts)


def _texts() -> str:
    parts = [
        f'<path class="arc" d="M44 {y}C80 {y} 84 {z} 112 {z}"/>' for y, z in ((26, 30), (55, 30), (55, 80), (84, 80))
    ]
    parts += [f'<rect class="hollow" x="28" y="{y - 10}" width="16" height="20"/>' for y in (26, 55, 84)]
    parts += [f'<circle class="dot" cx="118" cy="{z}" r="7"/>' for z in (30, 80)]
    return "".join(parts)


def _level() -> str:
    rows = (("high", 18), ("medium", 62), ("low", 10))
    return "".join(
        f'<text x="34" y="{34 + 26 * number}">{name}</text>'
        f'<rect class="bar" x="66" y="{24 + 26 * number}" width="{width}" height="12" rx="3"/>'
        for number, (name, width) in enumerate(rows)
    )


_DRAWINGS = {"sentences": _sentences, "links": _links, "groups": _groups, "texts": _texts, "level": _level}
