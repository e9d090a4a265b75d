"""What a model says about one document, and what a reader must know about how it came about."""

from dataclasses import dataclass
from typing import Any, Literal, Self

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
        level: The level; none where there is no sentence, or none that the system can read.
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
        found = self.probabilities[self.level] if (self.unlikeness or 0) <= 1 else 0
        return "sure" if found >= _SURE else "fairly sure" if found >= _FAIRLY_SURE else "unsure"

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
            "notice_codes": [notice.code for notice in self.notices],
        }
