"""How good heads are on texts that they have not seen."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from sklearn.metrics import roc_auc_score

from cohegraph.reading.training import Group, Targets, judged
from cohegraph.text.heads_network import HeadsNetwork

_GROUPS_AT_ONCE = 8


@dataclass(frozen=True)
class Accuracy:
    """How good heads are.

    Args:
        pairs: For every kind of corruption, how often the original has the higher score, and the number of pairs.
        boundaries: Area under the ROC curve: broken boundaries against others, in corrupted versions.
        belonging: The same of foreign or repeated sentences against others.
        related: The same of two sentences from one text against two from different ones, at equal distance, in joined
            texts.
        found: For every kind with one break or one foreign sentence, how often it is the one that heads find least
            likely to hold or to belong, and how often chance would.
        gains: Pearson's and Spearman's correlation of predicted and exact gains; None where gains were not learnt.
    """

    pairs: dict[str, tuple[float, int]]
    boundaries: float
    belonging: float
    related: float
    found: dict[str, tuple[float, float]]
    gains: tuple[float, float] | None = None

    @property
    def mean(self) -> float:
        """The mean accuracy over kinds."""
        return float(np.mean([share for share, _ in self.pairs.values()])) if self.pairs else 0.0

    def in_words(self) -> str:
        """The figures that matter most, in one line."""
        return (
            f"{share_in_words(self.to_dict())}; area under the ROC curve for boundaries {self.boundaries:.3f}, "
            f"sentences {self.belonging:.3f}, pairs {self.related:.3f}."
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values, with the mean."""
        return {"mean": self.mean, **asdict(self)}


def share_in_words(figures: Mapping[str, Any]) -> str:
    """How often originals score higher, by the values of an `Accuracy`."""
    pairs = sum(number for _, number in figures["pairs"].values())
    share, kinds = f"{100 * figures['mean']:.1f} %", len(figures["pairs"])
    of_kinds = "" if kinds == 1 else f", on average over {kinds} kinds"
    return f"The original scores higher than its corrupted version in {share} of {pairs} pairs{of_kinds}"


def accuracy(network: HeadsNetwork, groups: Sequence[Group]) -> Accuracy:
    """How good heads are on the texts of groups."""
    right, found = defaultdict[str, list[float]](list), defaultdict[str, list[tuple[float, float]]](list)
    boundaries, belonging = list[tuple[float, bool]](), list[tuple[float, bool]]()
    related = defaultdict[int, list[tuple[float, bool]]](list)
    network.eval()
    for begin in range(0, len(groups), _GROUPS_AT_ONCE):
        with torch.inference_mode():
            outputs, examples, pairs = judged(network, groups[begin : begin + _GROUPS_AT_ONCE])
        targets = Targets.of(examples, outputs.belonging.shape[1])
        for original, number in pairs:
            example = examples[number]
            kind, size = example.kind.partition(":")[0], example.sentences
            better, worse = float(outputs.scores[original]), float(outputs.scores[number])
            right[example.kind].append(float(better > worse) + 0.5 * (better == worse))
            holds, belongs = outputs.boundaries[number, : size - 1].numpy(), outputs.belonging[number, :size].numpy()
            boundaries += zip(holds, targets.boundaries[number, : size - 1].bool().tolist(), strict=True)
            belonging += zip(belongs, targets.belonging[number, :size].bool().tolist(), strict=True)
            if kind == "join":
                found[example.kind].append((float(holds.argmin() in example.breaks), 1 / (size - 1)))
                same = targets.related[number].numpy()
                first, second = np.nonzero(~np.isnan(same))
                values = outputs.related[number].numpy()[first, second]
                for distance, value, is_same in zip(second - first, values, same[first, second] > 0, strict=True):
                    related[int(distance)].append((float(value), bool(is_same)))
            elif kind in ("replace-one", "insert"):
                found[example.kind].append((float(belongs.argmin() in example.strangers), 1 / size))
    return Accuracy(
        pairs={kind: (float(np.mean(shares)), len(shares)) for kind, shares in sorted(right.items())},
        boundaries=area(boundaries),
        belonging=area(belonging),
        related=area_at_equal_distance(related),
        found={
            kind: (float(share), float(chance))
            for kind, rows in sorted(found.items())
            for share, chance in [np.mean(rows, axis=0)]
        },
    )


def area(answers: Sequence[tuple[float, bool]]) -> float:
    """The area under the ROC curve; one half where there is only one class."""
    if len({is_true for _, is_true in answers}) < 2:
        return 0.5
    values, classes = zip(*answers, strict=True)
    return float(roc_auc_score(classes, values))


def area_at_equal_distance(answers: dict[int, list[tuple[float, bool]]]) -> float:
    """The mean area over distances, each weighted by its pairs from different texts."""
    weights = {distance: sum(not same for _, same in pairs) for distance, pairs in answers.items()}
    total = sum(weights.values())
    return sum(area(pairs) * weights[distance] for distance, pairs in answers.items()) / total if total else 0.5
