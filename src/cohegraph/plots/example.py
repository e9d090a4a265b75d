"""A document as the method sees it: its sentences, their nouns, and the links between sentences."""

import textwrap
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyArrowPatch, FancyBboxPatch

from cohegraph.features import LinkedDocument
from cohegraph.plots.style import BASELINE, INK, METHOD, TRUE, figure, shortened

_COLUMNS = 92
_MOST_LINES = 44
_LETTER, _LINE = 0.075, 0.19  # inches of a letter and of a line in the fixed-width font
_NUMBER = 0.32  # inches from a sentence's circle to its text, with its number between
_NEAREST, _FARTHER = 0.13, 0.075  # inches that an arc to the next sentence stands out, and more for each farther one
_LONGEST_TITLE = 110
_SIZE = 8.98  # a letter is then as wide as _LETTER


@dataclass(frozen=True)
class _Line:
    sentence: int
    start: int
    text: str


def draw_example(linked: LinkedDocument, title: str) -> Figure:
    """The graph on the left, one arc per link; on the right the text, boxes around words, filled if a link uses them.

    A long document is cut at a whole sentence; the title says so.
    """
    lines = list(_lines(linked))
    if len(lines) > _MOST_LINES:
        last = lines[_MOST_LINES].sentence
        lines = [line for line in lines[:_MOST_LINES] if line.sentence < last] or lines[:_MOST_LINES]
        title += f" (its first {lines[-1].sentence + 1} sentences of {len(linked.document.sentences)})"
    place: dict[int, float] = {}
    for number, line in enumerate(lines):
        place.setdefault(line.sentence, _y(number))
    links = [(i, j) for i, j in _pairs(linked) if linked.kept[i] in place and linked.kept[j] in place]
    left = _LETTER + _stands_out(max((target - source for source, target in links), default=0)) + 0.06 + _NUMBER
    width, height = left + _LETTER * (_COLUMNS + 2), _LINE * (len(lines) + 2.2)
    with figure(width, height) as drawing:
        plot = drawing.add_subplot()
        drawing.set_layout_engine("none")
        plot.set_position((0.0, 0.0, 1.0, 1.0))
        plot.set_xlim(0, width)
        plot.set_ylim(height, 0)
        plot.set_axis_off()
        plot.text(_LETTER, _LINE * 0.9, shortened(title, _LONGEST_TITLE), fontsize=10, fontweight="bold", va="center")
        _draw_words(plot, linked, lines, left)
        for number, line in enumerate(lines):
            plot.text(left, _y(number), line.text, family="DejaVu Sans Mono", fontsize=_SIZE, va="center")
        _draw_graph(plot, links, linked.kept, place, left)
    return drawing


def _y(line: int) -> float:
    return _LINE * (line + 2.2)


def _lines(linked: LinkedDocument) -> Iterator[_Line]:
    """The text of every sentence in lines; white space is shown as single blanks of the same length."""
    for number, sentence in enumerate(linked.document.sentences):
        flat = "".join(" " if letter.isspace() else letter for letter in sentence.text)
        place = 0
        for piece in textwrap.wrap(flat, _COLUMNS, break_long_words=True) or [""]:
            start = max(flat.find(piece, place), place)
            place = start + len(piece)
            yield _Line(number, sentence.start + start, flat[start:place])


def _marked(linked: LinkedDocument) -> dict[tuple[int, int], bool]:
    """The places of all words behind links and, where nouns make links, of all nouns, and whether a link uses them.

    A link names one pair of words; a reader expects a repeated noun to be marked every time.
    """
    text, sentences = linked.document.text, linked.document.sentences
    behind: dict[tuple[int, int], bool] = {}
    words: dict[int, set[str]] = defaultdict(set)
    for source, target, spans in zip(linked.links.source, linked.links.target, linked.links.evidence, strict=True):
        for node, (start, end) in ((int(source), spans[:2].tolist()), (int(target), spans[2:].tolist())):
            if start >= 0:
                behind[start, end] = True
                words[node].add(text[start:end].casefold())
    shown = "nouns" in linked.links.kinds
    nouns = {
        node: {(noun.start, noun.end): noun.text.casefold() for noun in sentences[sentence].nouns if shown}
        for node, sentence in enumerate(linked.kept)
    }
    for source, target in _pairs(linked):
        for node in (source, target):
            words[node] |= set(nouns[source].values()) & set(nouns[target].values())
    found = {place: word in words[node] for node, places in nouns.items() for place, word in places.items()}
    return found | behind


def _draw_words(plot: Axes, linked: LinkedDocument, lines: list[_Line], left: float) -> None:
    for (start, end), used in _marked(linked).items():
        colour = METHOD if used else TRUE
        for number, line in enumerate(lines):
            inside = start - line.start
            if 0 <= inside < len(line.text):
                corner = (left + inside * _LETTER, _y(number) - _LINE * 0.42)
                width = min(end - start, len(line.text) - inside) * _LETTER
                box = FancyBboxPatch(corner, width, _LINE * 0.84, boxstyle="round,pad=0.01,rounding_size=0.03")
                box.set(facecolor=colour + ("40" if used else "00"), edgecolor=colour, linewidth=0.8)
                plot.add_patch(box)


def _stands_out(span: int) -> float:
    """How far the arc of a link over so many sentences stands out to the left."""
    return _NEAREST + _FARTHER * max(0, span - 1)


def _draw_graph(
    plot: Axes, links: list[tuple[int, int]], kept: tuple[int, ...], place: dict[int, float], left: float
) -> None:
    x = left - _NUMBER
    for source, target in links:
        start, end = place[kept[source]], place[kept[target]]
        # An arc of this kind stands out by half its bend times the distance.
        ends, arc = ((x, start), (x, end)), f"arc3,rad={2 * _stands_out(target - source) / (end - start)}"
        arrow = FancyArrowPatch(*ends, connectionstyle=arc, arrowstyle="-|>", mutation_scale=6, shrinkA=4, shrinkB=4)
        arrow.set(color=METHOD, alpha=0.75, linewidth=0.9)
        plot.add_patch(arrow)
    linked = {kept[node] for link in links for node in link}
    for sentence, y in place.items():
        fill = INK if sentence in linked else BASELINE
        plot.add_patch(Circle((x, y), 0.05, facecolor=fill, edgecolor=INK, linewidth=0.8))
        plot.text(left - 0.07, y, str(sentence + 1), fontsize=6.5, va="center", ha="right")


def _pairs(linked: LinkedDocument) -> list[tuple[int, int]]:
    source, target = linked.links.pairs()
    return list(zip(source.tolist(), target.tolist(), strict=True))
