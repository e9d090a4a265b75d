"""What a model says of one document, and what a reader must know of how it came about."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Literal

# Above this share of unknown nouns the links mean little; below this number of nouns the share means nothing.
_UNKNOWN_SHARE = 0.5
_FEWEST_NOUNS = 4
_UNSEEN_SHARE = 0.1
# Of the probability of the most probable level.
_SURE, _FAIRLY_SURE = 0.8, 0.6
Sureness = Literal["sure", "fairly sure", "unsure"]
NOT_ENGLISH = "It does not look like English: a verdict on another language means nothing."


@dataclass(frozen=True)
class Assessment:
    """The level of a document, the probability of every level in their order, and counts of what went into it.

    ``counts`` are the tallies of `cohegraph.features` and, where the model compares patterns with those of the training
    documents, ``unseen_subgraphs``, those whose pattern no training document has; where it reads a text token by token,
    ``read_tokens``. ``unlikeness`` says how unlike the training documents it is: beyond 1, farther from them than 99 %
    of them are from the others.
    """

    level: Any
    probabilities: dict[Any, float]
    counts: dict[str, int]
    notices: tuple[str, ...]
    unlikeness: float | None = None

    @property
    def sureness(self) -> Sureness | None:
        """How sure the model is, in words, from the probability of its level; nothing where there is no level.

        Of a text unlike all that it learnt from it is never sure: its probabilities were not calibrated on such.
        """
        if self.level is None:
            return None
        most = max(self.probabilities.values()) if (self.unlikeness or 0) <= 1 else 0
        return "sure" if most >= _SURE else "fairly sure" if most >= _FAIRLY_SURE else "unsure"

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "level": self.level,
            "probabilities": {str(level): probability for level, probability in self.probabilities.items()},
            "sureness": self.sureness,
            "unlikeness": self.unlikeness,
            "counts": self.counts,
            "notices": list(self.notices),
        }


def notices(
    counts: dict[str, int], k: int | None = None, *, reads: Collection[str] = ("patterns", "vector")
) -> tuple[str, ...]:
    """What limits the verdict on a document with these counts, a sentence each.

    Args:
        counts: Those of an assessment.
        k: The size of the subgraphs that a model on the corpus graph compares; other models have none.
        reads: What the model reads of a document, as in `System.reads`: what it does not read cannot limit it.
    """
    found = []
    if not counts["sentences"]:
        verdict = "the probabilities mean nothing" if k is None else "every level is as likely as any other"
        found.append(f"There is no sentence: {verdict}.")
    elif k is not None and counts["sentences"] - counts["dropped_sentences"] < k:
        found.append(f"Fewer than {k} sentences: its wording alone decides, not how its sentences connect.")
    elif k is not None and not counts["nouns"]:
        found.append("There is no noun, so no sentence connects to another.")
    if counts["nouns"] >= _FEWEST_NOUNS and counts["unknown_nouns"] > _UNKNOWN_SHARE * counts["nouns"]:
        found.append("Most nouns are unknown to the word vectors: is the text English?")
    if counts.get("read_tokens") == 0 and counts["sentences"]:
        found.append("No token of it can be read by this system: the probabilities mean nothing.")
    if counts["cut_tokens"] and not {"vector", "states"}.isdisjoint(reads):
        found.append(f"{counts['cut_tokens']} of {counts['tokens']} tokens were cut at the encoder's limit.")
    if counts["dropped_sentences"] and "patterns" in reads:
        found.append(f"{counts['dropped_sentences']} short sentences were left out of the graph.")
    if k is not None and counts["unseen_subgraphs"] > _UNSEEN_SHARE * counts["subgraphs"]:
        found.append(
            f"{counts['unseen_subgraphs']} of {counts['subgraphs']} subgraphs have a pattern that no training document "
            "has."
        )
    return tuple(found)


def unlike_notices(unlikeness: float | None) -> tuple[str, ...]:
    """A notice where a document is unlike the training documents."""
    if unlikeness is None or unlikeness <= 1:
        return ()
    return (
        "It is unlike the texts that the model learnt from "
        f"(it differs from them {unlikeness:.1f} times as much as 99 % of them do from the others): the verdict may "
        "mean little.",
    )
