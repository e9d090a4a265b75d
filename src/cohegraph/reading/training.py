"""How heads learn: which boundaries are broken, which sentences are foreign, and which of two versions is the original.

Cross-entropy for boundaries, sentences and pairs of sentences, where the rare answer counts as much as the frequent
one, and a logistic loss on the difference between the scores of an original and its corrupted version.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional

from cohegraph.errors import CohegraphError
from cohegraph.progress import track
from cohegraph.reading.examples import Example, ExampleFolder
from cohegraph.text.heads_network import HeadsNetwork, HeadsShape, Outputs, Sentences, Texts
from cohegraph.text.threads import one_thread

Numbers = npt.NDArray[np.int64]

# How much faster the parameters learn that weigh parts of the score.
_FASTER = 30
# Steps whose texts are sorted by length together.
_SORTED = 16
# Sentences that are further apart are not compared.
REACH = 8
# Kinds with sentences of other texts, from which the relation of two sentences is learnt.
_MIXED = ("replace-one", "replace-two", "insert", "join", "interleave")
# No text is cut to fewer sentences.
_SHORTEST = 3
_SAMPLE = 20_000
_LEAST = 1e-3


@dataclass(frozen=True)
class Schedule:
    """How heads are trained: AdamW with a learning rate that rises and falls once.

    ``cut`` is the share of corrupted versions that are cut, each time they are used, at a random sentence after their
    first break. What a reader finds in a sentence does not depend on what follows, so this costs no reading.
    """

    epochs: int = 6
    texts_at_once: int = 24
    learning_rate: float = 2e-3
    weight_decay: float = 1e-2
    dropout: float = 0.3
    clip: float = 1.0
    related: float = 1.0
    cut: float = 0.5
    seed: int = 0


@dataclass(frozen=True)
class Group:
    """The versions of one text, the original first, and where they are."""

    folder: ExampleFolder
    versions: Sequence[Example]

    @property
    def longest(self) -> int:
        """The number of sentences of the longest version."""
        return max(version.sentences for version in self.versions)

    def cut(self, share: float, random: np.random.Generator) -> Group:
        """The same with a share of the corrupted versions cut at a random sentence after their first break."""
        original, *corrupted = self.versions
        found = [original]
        for version in corrupted:
            least = max(min(version.breaks, default=version.sentences) + 2, _SHORTEST)
            is_cut = random.random() < share and least < version.sentences
            found.append(version.first(int(random.integers(least, version.sentences))) if is_cut else version)
        return replace(self, versions=found)

    def compared(self) -> tuple[list[Example], list[tuple[int, int]]]:
        """Versions, and the numbers of those that are compared: an original and a corrupted version of its length."""
        original, *corrupted = self.versions
        lengths = list(dict.fromkeys(one.sentences for one in corrupted))
        pairs = [(lengths.index(one.sentences), len(lengths) + number) for number, one in enumerate(corrupted)]
        return [*map(original.first, lengths), *corrupted], pairs


def groups_of(folders: Sequence[ExampleFolder]) -> list[Group]:
    """All texts with a corrupted version."""
    return [Group(folder, versions) for folder in folders for versions in folder.texts() if len(versions) > 1]


@dataclass(frozen=True)
class Targets:
    """What heads should say; see `Outputs`. What is not asked is not a number."""

    boundaries: Tensor
    belonging: Tensor
    related: Tensor

    @classmethod
    def of(cls, examples: Sequence[Example], size: int) -> Targets:
        """The targets of examples, filled up to a number of sentences."""
        holds, belongs = (np.full((len(examples), length), np.nan, np.float32) for length in (size - 1, size))
        origins, asked = np.zeros((len(examples), size), np.int64), np.zeros((len(examples), size), bool)
        for row, example in enumerate(examples):
            number = example.sentences
            holds[row, : number - 1], belongs[row, :number] = 1, 1
            holds[row, list(example.breaks)] = 0
            belongs[row, example.strangers] = 0
            origins[row, :number] = example.origins
            asked[row, :number] = example.kind.partition(":")[0] in _MIXED
        place = np.arange(size)
        near = (place > place[:, None]) & (place - place[:, None] < REACH)
        same = (origins[:, :, None] == origins[:, None]).astype(np.float32)
        same[~(near & asked[:, :, None] & asked[:, None])] = np.nan
        return cls(*map(torch.from_numpy, (holds, belongs, same)))


def train(
    groups: Sequence[Group],
    shape: HeadsShape,
    schedule: Schedule,
    on_epoch: Callable[[int, HeadsNetwork], None] | None = None,
    *,
    show_progress: bool = False,
) -> HeadsNetwork:
    """Heads that have learnt from groups, those of the last epoch.

    They are trained with one thread: the same groups, shape and schedule give the same weights.

    Args:
        groups: Texts with their versions.
        shape: The figures of the heads.
        schedule: How to train them.
        on_epoch: Called after every epoch with its number and the network.
        show_progress: Whether to show the time left.
    """
    if not groups:
        raise CohegraphError("There is no text to learn from.", code="no-texts")
    with one_thread(), torch.random.fork_rng([]):
        torch.manual_seed(schedule.seed)
        random = np.random.default_rng(schedule.seed)
        network = HeadsNetwork(shape, schedule.dropout)
        _standardise(network, groups, random)
        batches = _batches([group.longest for group in groups], schedule, random)
        optimizer = _optimizer(network, schedule)
        rate = torch.optim.lr_scheduler.OneCycleLR(
            optimizer,
            [schedule.learning_rate, _FASTER * schedule.learning_rate],
            total_steps=len(batches) + 1,
            pct_start=0.1,
        )
        for epoch, numbers, is_last in track(batches, "training", len(batches), show=show_progress):
            network.train()
            optimizer.zero_grad()
            loss = _loss(network, [groups[number].cut(schedule.cut, random) for number in numbers], schedule)
            if not torch.isfinite(loss):
                raise CohegraphError("Training diverged: choose a lower learning rate.", code="diverged")
            loss.backward()
            torch.nn.utils.clip_grad_norm_(network.parameters(), schedule.clip)
            optimizer.step()
            rate.step()
            if is_last and on_epoch is not None:
                on_epoch(epoch, network.eval())
    return network.eval()


def _optimizer(network: HeadsNetwork, schedule: Schedule) -> torch.optim.Optimizer:
    """AdamW for two groups: those that weigh parts of the score are single numbers, which must move further."""
    weighing = network.weighing()
    others = [one for one in network.parameters() if all(one is not other for other in weighing)]
    groups = [{"params": others, "weight_decay": schedule.weight_decay}, {"params": weighing, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups)


def _batches(
    lengths: Sequence[int], schedule: Schedule, random: np.random.Generator
) -> list[tuple[int, Numbers, bool]]:
    """For every step the number of the epoch, the texts, and whether it is the last step of the epoch.

    Texts of similar length come together, because all are filled up to the longest.
    """
    found, size = list[tuple[int, Numbers, bool]](), schedule.texts_at_once
    sentences = np.array(lengths)
    for epoch in range(1, schedule.epochs + 1):
        order = random.permutation(len(lengths))
        steps = list[Numbers]()
        for start in range(0, len(order), _SORTED * size):
            part = order[start : start + _SORTED * size]
            part = part[np.argsort(sentences[part], kind="stable")]
            steps += [part[begin : begin + size] for begin in range(0, len(part), size)]
        last = len(steps) - 1
        found += [(epoch, steps[step], place == last) for place, step in enumerate(random.permutation(len(steps)))]
    return found


def judged(network: HeadsNetwork, groups: Sequence[Group]) -> tuple[Outputs, list[Example], list[tuple[int, int]]]:
    """What heads say of the versions of texts, the versions, and the numbers of those that are compared."""
    examples, sentences, pairs = list[Example](), list[Sentences](), list[tuple[int, int]]()
    for group in groups:
        versions, compared = group.compared()
        pairs += [(len(examples) + original, len(examples) + corrupted) for original, corrupted in compared]
        examples += versions
        sentences += group.folder.sentences(versions)
    found: Outputs = network(Texts.of(sentences))
    return found, examples, pairs


def _loss(network: HeadsNetwork, groups: Sequence[Group], schedule: Schedule) -> Tensor:
    found, examples, pairs = judged(network, groups)
    targets = Targets.of(examples, found.belonging.shape[1])
    originals, corrupted = (found.scores[list(numbers)] for numbers in zip(*pairs, strict=True))
    return (
        functional.softplus(corrupted - originals).mean()
        + _balanced(found.boundaries, targets.boundaries)
        + _balanced(found.belonging, targets.belonging)
        + schedule.related * _balanced(found.related, targets.related)
    )


def _balanced(logits: Tensor, targets: Tensor) -> Tensor:
    """The cross-entropy of what is asked, in which both answers have the same weight."""
    asked = ~targets.isnan()
    wanted = targets[asked]
    share = wanted.mean().clamp(_LEAST, 1 - _LEAST) if len(wanted) else torch.tensor(0.5)
    weight = torch.where(wanted > 0, 0.5 / share, 0.5 / (1 - share))
    return functional.binary_cross_entropy_with_logits(logits[asked], wanted, weight, reduction="sum") / max(
        len(wanted), 1
    )


def _standardise(network: HeadsNetwork, groups: Sequence[Group], random: np.random.Generator) -> None:
    """Set mean and scale of the inputs from a sample of the texts."""
    chosen = random.permutation(len(groups))
    sample, rows = list[Sentences](), 0
    for number in chosen:
        sample += (found := groups[number].folder.sentences(groups[number].versions))
        rows += sum(map(len, found))
        if rows > _SAMPLE:
            break
    parts = [
        np.concatenate([np.asarray(one.states, dtype=np.float32) for one in sample]),
        np.concatenate([one.figures for one in sample]),
        np.stack([one.document for one in sample]),
    ]
    network.mean.copy_(torch.from_numpy(np.concatenate([part.mean(axis=0) for part in parts])))
    network.scale.copy_(torch.from_numpy(np.concatenate([part.std(axis=0) + _LEAST for part in parts])))
