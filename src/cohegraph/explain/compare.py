"""Two versions of a text side by side: which sentences and links are new, gone or kept, and what that did."""

from difflib import SequenceMatcher

from pydantic import BaseModel, ConfigDict, Field

from cohegraph.explain.explanation import Explanation, Level, Link

# Two sentences of which so much is the same, letter by letter, are versions of one sentence.
_SAME_SENTENCE = 0.6
# The comparison of all changed sentences with each other grows with the square of their number and of their length.
_MOST_COMPARED, _LONGEST_COMPARED = 60, 300


class Comparison(BaseModel):
    """What became of a text: sentences are numbered as in the version they stand in."""

    model_config = ConfigDict(frozen=True)

    level_before: Level | None
    level_after: Level | None
    score_change: float | None
    probability_changes: dict[str, float]
    kept: list[tuple[int, int]] = Field(description="Sentences that are the same, before and after.")
    reworded: list[tuple[int, int]] = Field(description="Sentences that were changed, before and after.")
    added: list[int]
    removed: list[int]
    new_links: list[Link] = Field(description="Links after the change that were not there before.")
    lost_links: list[Link] = Field(description="Links before the change that are not there any more.")
    loose_before: int
    loose_after: int

    def in_sentences(self) -> list[str]:
        """What changed, for people."""
        same = self.level_before == self.level_after
        level = f"stays {self.level_after}" if same else f"goes from {self.level_before} to {self.level_after}"
        score = "" if self.score_change is None else f"; the score changes by {self.score_change:+.1f} of 100"
        counts = {
            "sentences are new": len(self.added),
            "are gone": len(self.removed),
            "are reworded": len(self.reworded),
            "links are new": len(self.new_links),
            "are lost": len(self.lost_links),
        }
        return [
            f"Against the earlier version: the level {level}{score}.",
            f"{', '.join(f'{count} {what}' for what, count in counts.items())}; loose sentences: {self.loose_before} "
            f"before, {self.loose_after} after.",
        ]


def compare(before: Explanation, after: Explanation) -> Comparison:
    """What changed from one version of a text to the next, both explained by the same model."""
    pairs, reworded = _matched([one.text for one in before.sentences], [one.text for one in after.sentences])
    number = dict([*pairs, *reworded])
    back = {new: old for old, new in number.items()}
    old_links = {_moved(link, number) for link in before.links}
    new_links = {(link.source, link.target, link.kind) for link in after.links}
    scores = (before.verdict.score, after.verdict.score)
    return Comparison(
        level_before=before.verdict.level,
        level_after=after.verdict.level,
        score_change=None if scores[0] is None or scores[1] is None else scores[1] - scores[0],
        probability_changes={
            level: probability - before.verdict.probabilities.get(level, 0.0)
            for level, probability in after.verdict.probabilities.items()
        },
        kept=pairs,
        reworded=reworded,
        added=[one.number for one in after.sentences if one.number not in back],
        removed=[one.number for one in before.sentences if one.number not in number],
        new_links=[link for link in after.links if (link.source, link.target, link.kind) not in old_links],
        lost_links=[link for link in before.links if _moved(link, number) not in new_links],
        loose_before=sum(one.loose for one in before.sentences),
        loose_after=sum(one.loose for one in after.sentences),
    )


def _moved(link: Link, number: dict[int, int]) -> tuple[int, int, str]:
    """The ends of a link as they are numbered in the other version, whichever now comes first, and its kind."""
    first, last = sorted(number.get(end, 0) for end in (link.source, link.target))
    return first, last, link.kind


def _matched(before: list[str], after: list[str]) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Which sentence became which, counted from 1: those that are the same, wherever they stand, and those reworded."""
    waiting: dict[str, list[int]] = {}
    for new, text in enumerate(after, start=1):
        waiting.setdefault(_plain(text), []).append(new)
    same, rest = [], []
    for old, text in enumerate(before, start=1):
        found = waiting.get(_plain(text))
        if found:
            same.append((old, found.pop(0)))
        else:
            rest.append(old)
    left = sorted(new for numbers in waiting.values() for new in numbers)
    reworded = []
    for old in rest[:_MOST_COMPARED]:
        alike = [(_alike(before[old - 1], after[new - 1]), -new) for new in left[:_MOST_COMPARED]]
        best, place = max(alike, default=(0.0, 0))
        if best >= _SAME_SENTENCE:
            reworded.append((old, -place))
            left.remove(-place)
    return same, reworded


def _alike(first: str, second: str) -> float:
    """How much of two sentences is the same, from 0 to 1; 0 where it is certainly not enough."""
    found = SequenceMatcher(None, first[:_LONGEST_COMPARED], second[:_LONGEST_COMPARED], autojunk=False)
    if found.real_quick_ratio() < _SAME_SENTENCE or found.quick_ratio() < _SAME_SENTENCE:
        return 0.0
    return found.ratio()


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()
