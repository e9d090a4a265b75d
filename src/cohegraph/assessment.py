"""What a model says about one document, and what a reader must know about how it came about."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Literal, Self

# Above this share of unknown nouns the links mean little; below this number of nouns the share means nothing.
_UNKNOWN_SHARE = 0.5
_FEWEST_NOUNS = 4
_UNSEEN_SHARE = 0.1
# Of the probability of the most probable level.
_SURE, _FAIRLY_SURE = 0.8, 0.6
Sureness = Literal["sure", "fairly sure", "unsure"]


class Notice(str):
    """A sentence about what limits a verdict; ``code`` stays the same when the sentence is reworded."""

    code: str

    def __new__(cls, sentence: str, code: str) -> Self:
        """The sentence, with its code."""
        made = super().__new__(cls, sentence)
        made.code = code
        return made

    def __reduce__(self) -> tuple[type[Self], tuple[str, str]]:
        return type(self), (str(self), self.code)


@dataclass(frozen=True)
class Assessment:
    """The verdict on a document, and counts of what went into it.

    Args:
        level: The level; none where there is no sentence.
        score: From 0, the lowest, to 100, the highest; none where the order of the levels is not known.
        probabilities: Of every level, from the lowest to the highest. A model that learnt ratings has them only if it
            was tried on held-out documents; one that learnt to rank has none.
        counts: The tallies of `cohegraph.features` and, where the model compares patterns with those of the training
            documents, ``unseen_subgraphs``, those whose pattern no training document has; where it reads a text token
            by token, ``read_tokens``.
        notices: What limits the verdict, a sentence each.
        unlikeness: How unlike the training documents it is: beyond 1, farther from them than 99 % of them are from the
            others.
    """

    level: Any
    score: float | None
    probabilities: dict[Any, float]
    counts: dict[str, int]
    notices: tuple[Notice, ...]
    unlikeness: float | None = None

    @property
    def sureness(self) -> Sureness | None:
        """How sure the model is, in words, from the probability of its level; none where that is not known.

        It is never sure about a text unlike all that it learnt from: its probabilities were not calibrated on such.
        """
        if self.level is None or not self.probabilities:
            return None
        most = max(self.probabilities.values()) if (self.unlikeness or 0) <= 1 else 0
        return "sure" if most >= _SURE else "fairly sure" if most >= _FAIRLY_SURE else "unsure"

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "level": self.level,
            "score": self.score,
            "probabilities": {str(level): probability for level, probability in self.probabilities.items()},
            "sureness": self.sureness,
            "unlikeness": self.unlikeness,
            "counts": self.counts,
            "notices": list(self.notices),
        }


def notices_of(
    counts: dict[str, int],
    *,
    k: int | None = None,
    fewest_sentences: int = 1,
    most_sentences: int | None = None,
    reads: Collection[str] = (),
    unlikeness: float | None = None,
    looks_english: bool = True,
    linkers: Collection[str] = ("nouns",),
) -> tuple[Notice, ...]:
    """What limits the verdict on a document with these counts.

    Args:
        counts: Those of an assessment.
        k: The size of the subgraphs that a model compares with those of the training documents; other models have none.
        fewest_sentences: How many sentences the system needs.
        most_sentences: How many sentences it reads, if it does not read all of them.
        reads: What the system reads of a document, as in `System.reads`: what it does not read cannot limit it.
        unlikeness: That of an assessment.
        looks_english: Whether the text is in the language that is expected.
        linkers: What links its sentences.
    """
    sentences, nouns, unseen = counts["sentences"], counts["nouns"], counts.get("unseen_subgraphs", 0)
    in_graph = sentences - counts["dropped_sentences"]
    verdict = "the probabilities mean nothing" if k is None else "every level is as likely as any other"
    unlike = 0.0 if unlikeness is None else unlikeness
    rules = (
        (not sentences, "no-sentence", f"There is no sentence: {verdict}."),
        (
            k is not None and sentences and in_graph < k,
            "few-sentences",
            f"Fewer than {k} sentences: its wording alone decides, not how its sentences connect.",
        ),
        (
            k is None and 0 < sentences < fewest_sentences,
            "few-sentences",
            f"Fewer than {fewest_sentences} sentences: this system sees hardly anything in it.",
        ),
        (
            k is not None and in_graph >= k and not nouns and [*linkers] == ["nouns"],
            "no-noun",
            "There is no noun, so no sentence connects to another.",
        ),
        (
            "nouns" in linkers and nouns >= _FEWEST_NOUNS and counts["unknown_nouns"] > _UNKNOWN_SHARE * nouns,
            "unknown-nouns",
            "Most nouns are unknown to the word vectors: is the text English?",
        ),
        (
            sentences and counts.get("read_tokens") == 0,
            "no-token",
            "No token of it can be read by this system: the probabilities mean nothing.",
        ),
        (
            most_sentences is not None and sentences > most_sentences,
            "unread-sentences",
            f"Of {sentences} sentences the first {most_sentences} were read.",
        ),
        (
            counts["cut_tokens"] and not {"vector", "states"}.isdisjoint(reads),
            "cut",
            f"{counts['cut_tokens']} of {counts['tokens']} tokens were cut at the encoder's limit.",
        ),
        (
            counts["dropped_sentences"] and "patterns" in reads,
            "dropped-sentences",
            f"{counts['dropped_sentences']} short sentences were left out of the graph.",
        ),
        (
            unseen > _UNSEEN_SHARE * counts["subgraphs"],
            "unseen-patterns",
            f"{unseen} of {counts['subgraphs']} subgraphs have a pattern that no training document has.",
        ),
        (
            sentences and unlike > 1,
            "unlike",
            f"It is unlike the texts that the model learnt from (it differs from them {unlike:.1f} times as much as "
            "99 % of them do from the others): the verdict may mean little.",
        ),
        (
            not looks_english,
            "not-english",
            "It does not look like English: a verdict on another language means nothing.",
        ),
    )
    return tuple(Notice(sentence, code) for applies, code, sentence in rules if applies)
