"""A document as the method sees it: its sentences, their nouns, and the links between sentences."""

from __future__ import annotations

import textwrap
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyArrowPatch, FancyBboxPatch

from cohegraph.features import LinkedDocument
from cohegraph.plots.style import BASELINE, INK, METHOD, TRUE, axes, figure, shortened

_COLUMNS = 92
_MOST_LINES = 44
_LETTER, _LINE = 0.075, 0.19  # inches of a letter and of a line in the fixed-width fount
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
    """The graph on the left, an arc a link; on the right the text, boxes around nouns, filled where a link uses them.

    A long document is cut at a whole sentence; the title says so.
    """
    lines = list(_lines(linked))
    if len(lines) > _MOST_LINES:
        last = lines[_MOST_LINES].sentence
        lines = [line for line in lines[:_MOST_LINES] if line.sentence < last] or lines[:_MOST_LINES]
        title += f" (its first {lines[-1].sentence + 1} sentences of {len(linked.document.sentences)})"
    height = _LINE * (len(lines) + 2.2)
    seen = set(_seen(lines))
    nodes = {node: sentence for node, sentence in enumerate(linked.kept) if sentence in seen}
    spans = [target - source for source, target in _pairs(linked) if source in nodes and target in nodes]
    left = _LETTER + _stands_out(max(spans, default=0)) + 0.06 + _NUMBER
    width = left + _LETTER * (_COLUMNS + 2)
    with figure(width, height) as drawing:
        plot = axes(drawing)
        drawing.set_layout_engine("none")
        plot.set_position((0.0, 0.0, 1.0, 1.0))
        plot.set_xlim(0, width)
        plot.set_ylim(height, 0)
        plot.set_axis_off()
        plot.text(_LETTER, _LINE * 0.9, shortened(title, _LONGEST_TITLE), fontsize=10, fontweight="bold", va="center")
        rows = {sentence: [i for i, line in enumerate(lines) if line.sentence == sentence] for sentence in _seen(lines)}
        _draw_words(plot, linked, lines, left)
        for number, line in enumerate(lines):
            plot.text(left, _y(number), line.text, family="DejaVu Sans Mono", fontsize=_SIZE, va="center")
        _draw_graph(plot, linked, {sentence: _y(found[0]) for sentence, found in rows.items()}, left)
    return drawing


def _y(line: float) -> float:
    return _LINE * (line + 2.2)


def _seen(lines: list[_Line]) -> list[int]:
    return list(dict.fromkeys(line.sentence for line in lines))


def _lines(linked: LinkedDocument) -> Iterator[_Line]:
    """The text of every sentence in lines; white space is shown as single blanks of the same length."""
    for number, sentence in enumerate(linked.document.sentences):
        flat = "".join(" " if letter.isspace() else letter for letter in sentence.text)
        place = 0
        for piece in textwrap.wrap(flat, _COLUMNS, break_long_words=True) or [""]:
            start = flat.find(piece, place) if piece in flat[place:] else place
            shown = flat[start : start + len(piece)]
            yield _Line(number, sentence.start + start, shown)
            place = start + len(piece)


def _marked(linked: LinkedDocument) -> dict[tuple[int, int], bool]:
    """The places of all nouns and of all words behind links, and whether a link uses them.

    A link names one pair of words; a reader expects a repeated noun to be marked every time.
    """
    text, sentences = linked.document.text, linked.document.sentences
    behind: dict[int, set[tuple[int, int]]] = defaultdict(set)
    words: dict[int, set[str]] = defaultdict(set)
    for source, target, spans in zip(linked.links.source, linked.links.target, linked.links.evidence, strict=True):
        for node, (start, end) in ((int(source), spans[:2].tolist()), (int(target), spans[2:].tolist())):
            if start >= 0:
                behind[node].add((start, end))
                words[node].add(text[start:end].casefold())
    nouns = {
        node: {(noun.start, noun.end): noun.text.casefold() for noun in sentences[sentence].nouns}
        for node, sentence in enumerate(linked.kept)
    }
    for source, target in _pairs(linked):
        for node in (source, target):
            words[node] |= set(nouns[source].values()) & set(nouns[target].values())
    found = {place: word in words[node] for node, places in nouns.items() for place, word in places.items()}
    return found | {place: True for places in behind.values() for place in places}


def _draw_words(plot: Axes, linked: LinkedDocument, lines: list[_Line], left: float) -> None:
    for (start, end), used in _marked(linked).items():
        for number, line in enumerate(lines):
            inside = start - line.start
            if 0 <= inside < len(line.text):
                long = min(end - start, len(line.text) - inside)
                colour = METHOD if used else TRUE
                plot.add_patch(
                    FancyBboxPatch(
                        (left + inside * _LETTER, _y(number) - _LINE * 0.42),
                        long * _LETTER,
                        _LINE * 0.84,
                        boxstyle="round,pad=0.01,rounding_size=0.03",
                        facecolor=colour + ("40" if used else "00"),
                        edgecolor=colour,
                        linewidth=0.8,
                    )
                )


def _stands_out(span: int) -> float:
    """How far the arc of a link over so many sentences stands out to the left."""
    return _NEAREST + _FARTHER * max(0, span - 1)


def _draw_graph(plot: Axes, linked: LinkedDocument, place: dict[int, float], left: float) -> None:
    x = left - _NUMBER
    nodes = {node: sentence for node, sentence in enumerate(linked.kept) if sentence in place}
    linked_nodes = set()
    for source, target in _pairs(linked):
        if source in nodes and target in nodes:
            linked_nodes |= {source, target}
            # An arc of this kind stands out by half its bend times the distance.
            bend = 2 * _stands_out(target - source) / (place[nodes[target]] - place[nodes[source]])
            plot.add_patch(
                FancyArrowPatch(
                    (x, place[nodes[source]]),
                    (x, place[nodes[target]]),
                    connectionstyle=f"arc3,rad={bend}",
                    arrowstyle="-|>",
                    mutation_scale=6,
                    shrinkA=4,
                    shrinkB=4,
                    color=METHOD,
                    alpha=0.75,
                    linewidth=0.9,
                )
            )
    for sentence, y in place.items():
        lonely = sentence not in {nodes[node] for node in linked_nodes}
        plot.add_patch(Circle((x, y), 0.05, facecolor=BASELINE if lonely else INK, edgecolor=INK, linewidth=0.8))
        plot.text(left - 0.07, y, str(sentence + 1), fontsize=6.5, va="center", ha="right")


def _pairs(linked: LinkedDocument) -> list[tuple[int, int]]:
    source, target = linked.links.pairs()
    return list(zip(source.tolist(), target.tolist(), strict=True))
