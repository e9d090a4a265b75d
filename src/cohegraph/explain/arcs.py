"""A document at a glance: its sentences in reading order on a line, and above it an arc for every link.

The height of an arc follows the distance of its sentences, its weight the strength of the link. Loose sentences are
diamonds, all others circles. Where there are several kinds of links, all but the first are dashed.
"""

from html import escape

from cohegraph.explain.explanation import Explanation, Link, SentenceView
from cohegraph.plots.ink import attribute, picture, without_control

_MARGIN, _RADIUS = 26.0, 7.0
_NARROWEST, _WIDEST, _LINE = 18.0, 92.0, 860.0
_NEXT, _FARTHER = 22.0, 13.0  # how high an arc to the next sentence rises, and more for each farther one
_THINNEST, _THICKEST = 1.2, 4.2
_ROOM_BELOW = 46.0
_ROOM_FOR_WORD = 40.0  # below this distance there is no room for a word under each sentence
_DIGIT = 7.0  # how wide a digit is
_LONGEST_LABEL = 300
# Kinds of links differ by how their arcs are dashed, in the order of the model's linkers.
_DASHES = (
    "",
    *(
        f'stroke-dasharray="{dashes}" '
        for dashes in ("7 4", "2 4", "9 4 2 4", "14 4", "7 4 2 4 2 4", "4 2", "1 7", "14 4 2 4", "7 9", "2 4 2 9")
    ),
)

STYLE = (
    ".cg-arcs{font:12px system-ui,sans-serif}"
    ".cg-arcs .base{stroke:var(--cg-soft);stroke-width:1;opacity:.5}"
    ".cg-arcs .link{fill:none;stroke:var(--cg-link);opacity:.75}"
    ".cg-arcs .dot{fill:var(--cg-link);stroke:var(--cg-ground);stroke-width:1.5}"
    ".cg-arcs .loose .dot{fill:var(--cg-ground);stroke:var(--cg-loose);stroke-width:3}"
    ".cg-arcs .left-out .dot{fill:var(--cg-ground);stroke:var(--cg-soft);stroke-dasharray:2 2}"
    ".cg-arcs .number{fill:var(--cg-ink);text-anchor:middle}"
    ".cg-arcs .word{fill:var(--cg-loose);text-anchor:middle;font-size:11px;font-weight:600}"
    ".cg-arcs .sentence{cursor:pointer;outline:none}"
    ".cg-arcs .sentence:hover .number,.cg-arcs .sentence:focus-visible .number,.cg-arcs .sentence.on .number"
    "{font-weight:700;text-decoration:underline}"
    ".cg-arcs .ring{fill:none;stroke:none}"
    ".cg-arcs .hit{fill:none;pointer-events:all}"
    ".cg-arcs .sentence:focus-visible .ring,.cg-arcs .sentence.on .ring{stroke:var(--cg-ink);stroke-width:2}"
    ".cg-arcs .link:hover,.cg-arcs .link.on{opacity:1;stroke:var(--cg-ink)}"
    ".cg-arcs.chosen .link:not(.on){opacity:.25}"
)


def draw_arcs(explanation: Explanation, *, inside: bool = False) -> str:
    """The picture of a document; ``inside`` a page that has `STYLE` already, without it."""
    sentences, links = explanation.sentences, explanation.links
    step = min(_WIDEST, max(_NARROWEST, _LINE / max(len(sentences) - 1, 1)))
    width = 2 * _MARGIN + max(len(sentences) - 1, 0) * step
    base = _rise(max((link.target - link.source for link in links), default=0)) + 2 * _RADIUS + 4
    of_sentence = explanation.links_of()
    weakest = min((link.strength for link in links), default=0.0)
    title = _title(explanation)
    parts = [f"<title>{escape(title)}</title>"]
    if sentences:
        parts.append(f'<line class="base" x1="{_MARGIN:g}" y1="{base:g}" x2="{width - _MARGIN:g}" y2="{base:g}"/>')
    kinds = explanation.kinds
    parts.extend(_arc(link, base, step, weakest, _DASHES[kinds.index(link.kind) % len(_DASHES)]) for link in links)
    parts.append('<g role="list" aria-label="Sentences">')
    every = 1 if step >= _DIGIT * len(str(len(sentences))) + 3 else 5
    for sentence in sentences:
        numbered = sentence.number == 1 or sentence.number % every == 0
        parts.append(_sentence(sentence, of_sentence[sentence.number], base, step, len(sentences), numbered))
    parts.append("</g>")
    attributes = f'class="cg-arcs" role="group" aria-label="{attribute(title)}"'
    drawing = picture(width, base + _ROOM_BELOW, "".join(parts), style="" if inside else STYLE, attributes=attributes)
    return without_control(drawing)


def in_words(sentence: SentenceView, links: list[Link], count: int) -> str:
    """A sentence and its links for those who cannot see them."""
    text = sentence.text if len(sentence.text) <= _LONGEST_LABEL else sentence.text[: _LONGEST_LABEL - 1] + "…"
    if sentence.left_out:
        state = "Too short to take part."
    elif sentence.loose:
        state = "Hangs loose: no link to a sentence near it."
    else:
        others = [f"{link.other(sentence.number)} ({link.in_words()})" for link in links]
        state = f"Linked with {'sentence' if len(others) == 1 else 'sentences'} {', '.join(others)}."
    return f"Sentence {sentence.number} of {count}. {state} {text}"


def _title(explanation: Explanation) -> str:
    sentences, links = len(explanation.sentences), len(explanation.links)
    loose = sum(sentence.loose for sentence in explanation.sentences)
    return (
        f"{sentences} sentence{'' if sentences == 1 else 's'}, {links} link{'' if links == 1 else 's'}, "
        f"{loose or 'no'} loose sentence{'' if loose == 1 else 's'}"
    )


def _rise(distance: int) -> float:
    return _NEXT + _FARTHER * (distance - 1) if distance else 0.0


def _x(number: int, step: float) -> float:
    return _MARGIN + (number - 1) * step


def _arc(link: Link, base: float, step: float, weakest: float, dashes: str) -> str:
    start, end = _x(link.source, step), _x(link.target, step)
    strength = (link.strength - weakest) / (1 - weakest) if weakest < 1 else 1.0
    thickness = _THINNEST + (_THICKEST - _THINNEST) * min(max(strength, 0.0), 1.0)
    top = base - _RADIUS
    kind = f"{link.kind} {link.strength:.2f}"
    title = f"{link.source} to {link.target}: {f'{link.words} ({kind})' if link.words else kind}"
    return (
        f'<path class="link" data-kind="{attribute(link.kind)}" data-source="{link.source}" '
        f'data-target="{link.target}" stroke-width="{thickness:.2f}" {dashes}'
        f'd="M{start:g} {top:g}A{(end - start) / 2:g} {_rise(link.target - link.source):g} 0 0 1 {end:g} {top:g}">'
        f"<title>{escape(title)}</title></path>"
    )


def _sentence(sentence: SentenceView, links: list[Link], base: float, step: float, count: int, numbered: bool) -> str:
    x = _x(sentence.number, step)
    kind = "left-out" if sentence.left_out else "loose" if sentence.loose else "linked"
    if sentence.loose:
        far = _RADIUS + 1
        dot = f'<path class="dot" d="M{x:g} {base - far:g}l{far:g} {far:g}l{-far:g} {far:g}l{-far:g} {-far:g}z"/>'
    else:
        dot = f'<circle class="dot" cx="{x:g}" cy="{base:g}" r="{_RADIUS:g}"/>'
    # All around a dot and down to its number can be pointed at, without gaps: a dot alone is a small thing to hit.
    top = base - _RADIUS - 5
    hit = (
        f'<rect class="hit" x="{x - min(step, 2 * _MARGIN) / 2:g}" y="{top:g}" width="{min(step, 2 * _MARGIN):g}" '
        f'height="{base + _ROOM_BELOW - top:g}"/>'
    )
    ring = f'<circle class="ring" cx="{x:g}" cy="{base:g}" r="{_RADIUS + 4:g}"/>'
    number = f'<text class="number" x="{x:g}" y="{base + 24:g}">{sentence.number}</text>' if numbered else ""
    word = ""
    if sentence.loose and step >= _ROOM_FOR_WORD:
        word = f'<text class="word" x="{x:g}" y="{base + 39:g}">loose</text>'
    label = in_words(sentence, links, count)
    return (
        f'<g class="sentence {kind}" role="listitem" tabindex="0" data-sentence="{sentence.number}" '
        f'aria-label="{attribute(label)}"><title>{escape(label)}</title>{hit}{ring}{dot}{number}{word}</g>'
    )
