"""An explanation as HTML: a fragment for the page, or a file by itself. Words are for writers, not for modellers."""

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from cohegraph.explain.arcs import STYLE as ARCS_STYLE
from cohegraph.explain.arcs import draw_arcs
from cohegraph.explain.compare import compare
from cohegraph.explain.explanation import Explanation, Link, SentenceView, Verdict
from cohegraph.graph.catalogue import Pattern
from cohegraph.plots.ink import COLOURS, without_control
from cohegraph.plots.patterns import STYLE as PATTERNS_STYLE
from cohegraph.plots.patterns import draw_pattern
from cohegraph.plots.patterns import in_words as pattern_in_words

_MOST_PATTERNS = 4
# What adds less than this to a level would be shown as 0.00.
_NO_SHARE = 0.005
# Beyond this a table of all patterns helps nobody who looks at it; the data hold them all.
_MOST_ROWS = 60
# A change of less than this many points of a hundred is none.
_NO_CHANGE = 0.5


def report(explanation: Explanation, title: str = "", *, earlier: Explanation | None = None) -> str:
    """A whole page in one file, which needs nothing but itself; with what changed from an earlier version."""
    return _rendered(
        "report.html.jinja",
        title=title or "How well does this text hang together?",
        content=Markup(fragment(explanation) if earlier is None else comparison_fragment(earlier, explanation)),
        style=Markup(style()),
        script=Markup(part("view.js")),
    )


def fragment(explanation: Explanation) -> str:
    """The same, to stand inside the page that `cohegraph serve` shows."""
    return _rendered("fragment.html.jinja", about=_about(explanation))


def comparison_fragment(before: Explanation, after: Explanation) -> str:
    """What changed between two versions, and both of them side by side, to stand inside the page."""
    found = compare(before, after)
    return _rendered(
        "comparison.html.jinja",
        found=found,
        texts={"before": before.sentences, "after": after.sentences},
        change=_points(found.score_change),
        versions=[("before", "Earlier version", _about(before)), ("after", "Your text", _about(after))],
    )


def style() -> str:
    """All rules that a page with explanations needs."""
    return COLOURS + ARCS_STYLE + PATTERNS_STYLE + part("view.css")


@cache
def part(name: str) -> str:
    """A file of the page."""
    return files("cohegraph").joinpath("data", "page", name).read_text("utf-8")


@cache
def environment(folder: str = "page") -> Environment:
    """The templates of the page, or of another folder of data."""
    return Environment(
        loader=PackageLoader("cohegraph", f"data/{folder}"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _rendered(template: str, **values: Any) -> str:
    return without_control(environment().get_template(template).render(**values))


@dataclass(frozen=True)
class _Bar:
    """A pattern, the text itself or all the rest, and how much it speaks for the level."""

    picture: Markup
    words: str
    value: float
    is_pattern: bool = True


def _about(explanation: Explanation) -> dict[str, Any]:
    verdict = explanation.verdict
    links_of = explanation.links_of()
    bars = _bars(explanation)
    rows = [] if explanation.shares is None else explanation.shares.patterns
    speaks_for = _strongest([bar for bar in bars if bar.value > 0])
    speaks_against = _strongest([bar for bar in bars if bar.value < 0])
    return {
        "model": explanation.model,
        "note": explanation.note,
        "level": verdict.level,
        "score": None if verdict.score is None else round(verdict.score),
        "sureness": explanation.sureness,
        "probabilities": [
            (level, 100 * probability, level == str(verdict.level))
            for level, probability in reversed(verdict.probabilities.items())
        ],
        "notices": explanation.notices,
        "summary": _summary(explanation),
        "links": len(explanation.links),
        "kinds": [kind for kind in explanation.kinds if kind in {link.kind for link in explanation.links}],
        "by_nouns_only": explanation.by_nouns_only,
        "loose": [one.number for one in explanation.sentences if one.loose],
        "picture": Markup(draw_arcs(explanation, inside=True)),
        "pieces": list(_pieces(explanation)),
        "sentences": [_sentence(one, links_of[one.number], verdict) for one in explanation.sentences],
        "sides": {"Speaks for it": speaks_for, "Speaks against it": speaks_against},
        "longest_bar": max((abs(bar.value) for bar in (*speaks_for, *speaks_against)), default=1.0),
        "shares": explanation.shares,
        "share_rows": rows[:_MOST_ROWS],
        "more_rows": max(0, len(rows) - _MOST_ROWS),
        "neighbours": explanation.neighbours,
        "window": explanation.window,
    }


def _summary(explanation: Explanation) -> str:
    sentences = len(explanation.sentences)
    if not sentences:
        return "There is no sentence yet."
    if sentences == 1:
        return "1 sentence: there is no other that it could be linked with."
    loose = [one.number for one in explanation.sentences if one.loose]
    text = f"{_number(sentences, 'sentence')}, {_number(len(explanation.links), 'link')} between them."
    if not loose:
        return f"{text} No sentence hangs loose."
    if len(loose) == sentences:
        why = "none shares a noun with" if explanation.by_nouns_only else "none is linked to"
        return f"{text} Every sentence hangs loose: {why} a sentence near it."
    return f"{text} {_number(len(loose), 'sentence')} {'hangs' if len(loose) == 1 else 'hang'} loose: {_listed(loose)}."


def _number(count: int, word: str) -> str:
    return f"{count or 'no'} {word}{'' if count == 1 else 's'}"


def _listed(numbers: list[int], most: int = 12) -> str:
    shown = ", ".join(map(str, numbers[:most]))
    return shown if len(numbers) <= most else f"{shown} and {len(numbers) - most} more"


def _bars(explanation: Explanation) -> list[_Bar]:
    """What speaks for and against the level, the strongest first: what it adds beyond what it adds to all levels."""
    shares, level = explanation.shares, str(explanation.verdict.level)
    if shares is None or explanation.verdict.level is None:
        return []

    def beyond(logits: dict[str, float]) -> float:
        # A model that learnt ratings has a single output, and every share speaks for a higher score or a lower one.
        return logits[level] - sum(logits.values()) / len(logits) if level in logits else sum(logits.values())

    bars = [_Bar(_glyph("Aa"), "the wording of the text", beyond(shares.text), is_pattern=False)]
    for share in shares.patterns:
        pattern = Pattern(share.pattern, share.k, tuple(share.edges), connected=False)
        kind = f"{share.links}: " if share.links else ""
        words = f"{kind}{pattern_in_words(pattern)}, {_number(share.count, 'time')}"
        bars.append(_Bar(Markup(draw_pattern(pattern, inside=True)), words, beyond(share.logits)))
    return sorted(bars, key=lambda bar: -abs(bar.value))


def _strongest(bars: list[_Bar]) -> list[_Bar]:
    """The strongest patterns of one side, the wording where it is on this side, and all other patterns in one bar."""
    patterns = [bar for bar in bars if bar.is_pattern]
    shown = [bar for bar in bars if not bar.is_pattern or bar in patterns[:_MOST_PATTERNS]]
    rest = patterns[_MOST_PATTERNS:]
    if rest:
        shown.append(_Bar(_glyph("…"), _number(len(rest), "more pattern"), sum(bar.value for bar in rest)))
    return [bar for bar in shown if abs(bar.value) >= _NO_SHARE]


def _glyph(letters: str) -> Markup:
    return Markup('<span class="wording" aria-hidden="true">{}</span>').format(letters)


def _pieces(explanation: Explanation) -> Any:
    """The text in pieces: gaps, and sentences with their nouns, where nouns make links."""
    text, end, shown = explanation.text, 0, "nouns" in explanation.kinds
    for sentence in explanation.sentences:
        yield {"gap": text[end : sentence.start]}
        inside, parts = sentence.start, []
        for noun in sorted(sentence.nouns if shown else (), key=lambda noun: noun.start):
            if noun.start >= inside:
                parts += [(text[inside : noun.start], False), (text[noun.start : noun.end], True)]
                inside = noun.end
        parts.append((text[inside : sentence.end], False))
        yield {"sentence": sentence, "parts": [(words, noun) for words, noun in parts if words]}
        end = sentence.end
    yield {"gap": text[end:]}


def _sentence(sentence: SentenceView, links: list[Link], verdict: Verdict) -> dict[str, Any]:
    tried = sentence.what_if
    what_if = []
    if tried is not None and tried.removed is not None:
        words = f"Without it: {_change(verdict, tried.removed)}"
        what_if.append({"kind": "removed", "score": tried.removed.score, "words": words})
    if tried is not None and tried.moved is not None:
        places = _number(tried.moved.places, "place")
        words = (
            f"Moved to be sentence {tried.moved.to}, the best of {places} tried: "
            f"{_change(verdict, tried.moved.verdict)}"
        )
        what_if.append({"kind": "moved", "score": tried.moved.verdict.score, "words": words})
    return {
        "view": sentence,
        "links": [
            {
                "to": link.other(sentence.number),
                "forward": link.source == sentence.number,
                "own": link.source_words if link.source == sentence.number else link.target_words,
                "theirs": link.target_words if link.source == sentence.number else link.source_words,
                "kind": link.kind,
                "strength": link.strength,
            }
            for link in links
        ],
        "what_if": what_if,
        "tried": tried is not None,
    }


def _change(before: Verdict, after: Verdict) -> str:
    level = f"the level stays {after.level}" if before.level == after.level else f"the level becomes {after.level}"
    if before.score is None or after.score is None:
        return f"{level}."
    return f"{_points(after.score - before.score)}; {level}."


def _points(change: float | None) -> str:
    if change is None:
        return ""
    if abs(change) < _NO_CHANGE:
        return "the score stays the same"
    return f"the score {'rises' if change > 0 else 'falls'} by {abs(change):.0f} of 100"
