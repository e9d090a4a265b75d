"""From a model and a text to an explanation.

Nothing here is estimated: shares are the terms of the closed form themselves, and what a change would do is found by
changing the text and scoring it again, from the first step to the last.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from cohegraph.assessment import Assessment
from cohegraph.errors import CohegraphError
from cohegraph.explain.changed_texts import moved, without
from cohegraph.explain.explanation import Explanation, Link, Move, Noun, SentenceView, Share, Shares, Verdict, WhatIf
from cohegraph.explain.neighbours import Neighbours
from cohegraph.features import Features, Featurizer, LinkedDocument, patterns_of
from cohegraph.graph.links import Linker, Links
from cohegraph.settings import Settings
from cohegraph.systems.system import ExplainsByShares, Fitted, PatternShares
from cohegraph.text.document import Document

Rescore = Callable[[Sequence[str]], Sequence[Assessment]]
_MOST_NEIGHBOURS = 5
# Sentences whose change is tried unless more is asked for: a person will hardly revise more at once.
MOST_SENTENCES = 12
# Places that are tried for one sentence; of more places, those where it is most firmly connected.
MOST_PLACES = 24
# Small enough for every two sentences that have anything to do with each other.
_ANY_STRENGTH = 1e-6


class Model(Protocol):
    """A trained model, as far as an explanation looks at it."""

    name_: str
    note_: str
    levels_: list[Any]
    settings_: Settings
    fitted_: Fitted
    neighbours_: Neighbours | None

    @property
    def featurizer(self) -> Featurizer:
        """What turns texts into features."""

    def assess(self, texts: Sequence[str]) -> list[Assessment]:
        """Verdicts on texts."""

    def assessed(self, texts: Sequence[LinkedDocument]) -> tuple[Features, list[Assessment]]:
        """Verdicts on linked documents, and the features they came from."""


def explain(
    model: Model,
    text: str,
    *,
    what_if: Collection[int] | int = MOST_SENTENCES,
    rescore: Rescore | None = None,
) -> Explanation:
    """Why the model gives a text its level.

    Args:
        model: Any trained model; shares of patterns are known where its system explains by shares.
        text: The text.
        what_if: The numbers of the sentences whose removal and move are tried, or how many of them, from the loosest.
        rescore: What scores changed texts; by default the model itself.
    """
    if not isinstance(text, str):
        raise CohegraphError(
            f"What is explained must be a text and is of type {type(text).__name__}.", code="not-a-text"
        )
    seen = look_at(model, parsed(model, text))
    wanted = seen.chosen(what_if)
    changes = [change for sentence in wanted for change in seen.changes(sentence)]
    verdicts = (rescore or model.assess)([change.text for change in changes])
    return seen.explained(wanted, changes, verdicts)


@dataclass(frozen=True)
class Change:
    """A changed text: without a sentence, or with it in another place; sentences and places are counted from 0."""

    sentence: int
    place: int | None
    text: str


@dataclass(frozen=True)
class Seen:
    """A text as a model sees it: an explanation without changes, and what is needed to try some."""

    explanation: Explanation
    document: Document
    linked: LinkedDocument
    linkers: tuple[Linker, ...]

    def chosen(self, what_if: Collection[int] | int) -> list[int]:
        """The sentences to try changes with, counted from 0."""
        count = len(self.document.sentences)
        if not isinstance(what_if, int) and not all(isinstance(number, int) for number in what_if):
            raise CohegraphError("what_if takes a number of sentences, or a list of their numbers.", code="bad-what-if")
        if isinstance(what_if, int):
            return sorted(number - 1 for number in self.explanation.loosest[: max(what_if, 0)])
        for number in what_if:
            if not 1 <= number <= count:
                raise CohegraphError(f"There is no sentence {number}: the text has {count}.", code="no-such-sentence")
        return sorted({number - 1 for number in what_if})

    def changes(self, sentence: int) -> list[Change]:
        """The text without a sentence, and with it in other places."""
        count = len(self.document.sentences)
        if count < 2:
            return []
        places = [place for place in range(count) if place != sentence]
        if len(places) > MOST_PLACES:
            connection = self._connections(sentence)
            places = sorted(sorted(places, key=lambda place: -connection[place])[:MOST_PLACES])
        return [
            Change(sentence, None, without(self.document, sentence)),
            *(Change(sentence, place, moved(self.document, sentence, place)) for place in places),
        ]

    def explained(
        self, wanted: Sequence[int], changes: Sequence[Change], verdicts: Sequence[Assessment]
    ) -> Explanation:
        """The explanation with what the changes have brought."""
        found: dict[int, dict[int | None, Assessment]] = {sentence: {} for sentence in wanted}
        for change, verdict in zip(changes, verdicts, strict=True):
            found[change.sentence][change.place] = verdict
        sentences = list(self.explanation.sentences)
        for sentence, tried in found.items():
            sentences[sentence] = sentences[sentence].model_copy(update={"what_if": self._what_if(tried)})
        return self.explanation.model_copy(update={"sentences": sentences})

    def _what_if(self, tried: dict[int | None, Assessment]) -> WhatIf:
        removed = tried.pop(None, None)
        place, best = max(tried.items(), key=lambda item: self._goodness(item[1]), default=(None, None))
        return WhatIf(
            removed=verdict_of(removed) if removed else None,
            moved=None
            if place is None or best is None
            else Move(to=place + 1, places=len(tried), verdict=verdict_of(best)),
        )

    def _goodness(self, found: Assessment) -> float:
        """What the best place is best in: the score or, where levels have no order, the level the text has now."""
        return found.probabilities.get(self.explanation.verdict.level, 0.0) if found.score is None else found.score

    def _connections(self, sentence: int) -> npt.NDArray[np.float64]:
        """How firmly a sentence would be connected to its neighbours in every place, the nearest counting most."""
        kept, others = self.linked.kept, len(self.document.sentences) - 1
        strength = np.zeros(others + 1)
        if sentence in kept:
            node = kept.index(sentence)
            found = [linker.related(self.document, kept, node) for linker in self.linkers]
            strength[list(kept)] = np.maximum.reduce(found)
        rest = np.delete(strength, sentence)
        near = 1 / np.arange(1, self.explanation.window)
        # In the place p it stands between the p-th and the next of the other sentences.
        before = np.convolve(rest, near)[:others]
        behind = np.convolve(rest[::-1], near)[:others][::-1]
        return np.asarray(np.concatenate([[0.0], before]) + np.concatenate([behind, [0.0]]))


def parsed(model: Model, text: str) -> Document:
    """A text as the model's parser reads it."""
    return next(iter(model.featurizer.parser.parse([text])))


def look_at(model: Model, document: Document) -> Seen:
    """All of an explanation but what would change: it costs what one verdict costs."""
    featurizer, fitted, kept = model.featurizer, model.fitted_, model.neighbours_
    linked = featurizer.link_document(document)
    features, (assessment,) = model.assessed([linked])
    window = model.settings_.subgraphs.window
    views = _sentences(linked, featurizer.linkers, window)
    explanation = Explanation(
        model=model.name_,
        note=model.note_,
        verdict=verdict_of(assessment),
        sureness=assessment.sureness,
        levels=list(model.levels_),
        notices=list(assessment.notices),
        notice_codes=[notice.code for notice in assessment.notices],
        unlikeness=assessment.unlikeness,
        counts=assessment.counts,
        window=window,
        kinds=list(linked.links.kinds),
        text=document.text,
        sentences=views,
        links=_links(linked),
        loosest=[view.number for view in sorted(views, key=lambda view: (view.left_out, view.links, view.connection))],
        shares=_shares(model, fitted.shares(features), features) if isinstance(fitted, ExplainsByShares) else None,
        neighbours=None if kept is None else kept.nearest(features.counts, model.levels_, _MOST_NEIGHBOURS),
    )
    return Seen(explanation, document, linked, featurizer.linkers)


def verdict_of(found: Assessment) -> Verdict:
    """A verdict as an explanation holds it."""
    probabilities = {str(level): one for level, one in found.probabilities.items()}
    return Verdict(level=found.level, probabilities=probabilities, score=found.score)


def _shares(model: Model, found: PatternShares, features: Features) -> Shares:
    patterns = patterns_of(model.settings_)
    shares = []
    counts = dict(zip(features.counts.indices.tolist(), features.counts.data.tolist(), strict=True))
    for number, weight, logits in zip(found.patterns.tolist(), found.weights.tolist(), found.of_patterns, strict=True):
        # The released code gives documents without any subgraph one pattern in common, beyond the catalogue.
        known = patterns[number] if number < len(patterns) else None
        shares.append(
            Share(
                pattern="too short" if known is None else known.name,
                edges=[] if known is None else list(known.edges),
                k=model.settings_.subgraphs.k,
                links="" if known is None else known.links,
                count=counts.get(number, 0),
                weight=weight,
                logits=_by_level(model, logits),
            )
        )
    return Shares(
        logits=_by_level(model, found.of_patterns.sum(axis=0) + found.of_text),
        text=_by_level(model, found.of_text),
        patterns=sorted(shares, key=lambda share: -_weight(share)),
    )


def _weight(share: Share) -> float:
    """How much a share decides: how far it sets levels apart or, of a single output, how much it adds to it."""
    values = share.logits.values()
    return max(values) - min(values) if len(values) > 1 else max(map(abs, values))


def _by_level(model: Model, values: npt.NDArray[np.floating]) -> dict[str, float]:
    """Figures of outputs by level; a model that learnt ratings has a single output, the score."""
    ranked = model.settings_.objective.kind == "ranking"
    names = model.levels_ if len(values) > 1 else ["rank score"] if ranked else ["score"]
    return {str(name): value for name, value in zip(names, values.tolist(), strict=True)}


def _sentences(linked: LinkedDocument, linkers: Sequence[Linker], window: int) -> list[SentenceView]:
    sentences = linked.document.sentences
    place = np.array(linked.kept, dtype=np.int64)
    links, connection = np.zeros(len(sentences), dtype=np.int64), np.zeros(len(sentences))
    for ends in linked.links.pairs():
        np.add.at(links, place[ends], 1)
    source, target, strength = _strongest(linked, linkers, window)
    for ends in (source, target):
        np.add.at(connection, place[ends], strength)
    number = np.arange(len(sentences))
    near = np.minimum(number, window - 1) + np.minimum(number[::-1], window - 1)
    kept = set(linked.kept)
    return [
        SentenceView(
            number=i + 1,
            start=sentence.start,
            end=sentence.end,
            text=sentence.text,
            nouns=[Noun(text=noun.text, start=noun.start, end=noun.end) for noun in sentence.nouns],
            links=int(links[i]),
            loose=i in kept and not links[i] and len(sentences) > 1,
            left_out=i not in kept,
            connection=float(connection[i] / max(near[i], 1)),
        )
        for i, sentence in enumerate(sentences)
    ]


def _strongest(
    linked: LinkedDocument, linkers: Sequence[Linker], window: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.float32]]:
    """Every two sentences within a window that are related at all, and how strongly, by the linker that says most."""
    found = [linker.link(linked.document, linked.kept, reach=window, threshold=_ANY_STRENGTH) for linker in linkers]
    if len(found) == 1:
        return found[0].source, found[0].target, found[0].strength
    every = Links.together(len(linked.kept), found)
    source, target = every.pairs()
    strength = np.zeros(len(source), dtype=np.float32)
    pair = np.searchsorted(source * every.size + target, every.source * every.size + every.target)
    np.maximum.at(strength, pair, every.strength)
    return source, target, strength


def _links(linked: LinkedDocument) -> list[Link]:
    links, kept, text = linked.links, linked.kept, linked.document.text
    columns = (links.source, links.target, links.kind, links.strength, links.evidence)
    return [
        Link(
            source=kept[source] + 1,
            target=kept[target] + 1,
            kind=links.kinds[kind],
            strength=strength,
            source_words=text[max(spans[0], 0) : max(spans[1], 0)],
            target_words=text[max(spans[2], 0) : max(spans[3], 0)],
        )
        for source, target, kind, strength, spans in zip(*(column.tolist() for column in columns), strict=True)
    ]
