"""Gains: how much easier a sentence is to foresee after an earlier one. They are read in some texts, and learnt.

Reading every pair takes seconds per text, so gains are written to files as they come, and are never read twice. They
are learnt last, on top of heads that stay as they are.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from scipy.stats import spearmanr
from torch.nn import functional

from cohegraph.corpora.corruptions import Piece, Version
from cohegraph.errors import CohegraphError
from cohegraph.files import new_file
from cohegraph.progress import track
from cohegraph.reading.examples import as_document
from cohegraph.reading.training import REACH, Group
from cohegraph.text.heads_network import Floats, HeadsNetwork, Sentences, Texts
from cohegraph.text.reader import Reader, exact_gains
from cohegraph.text.threads import one_thread, side_by_side

# Texts in a file, and how many sentences of a text are read at most.
_TEXTS_AT_ONCE, _LONGEST = 16, 12
# The name of a file of gains, or of one that was not completed.
_FILE = re.compile(r"gains-[0-9a-f]{32}\.npy|\.gains-[0-9a-f]{32}\.npy\..*")
# Changes with the gains that the same texts give.
_FORMAT = 1
_LEAST = 1e-3


def chosen_for_gains(pieces: Sequence[Piece], number: int, seed: int) -> list[Piece]:
    """So many texts, chosen by their ids and the seed: of more texts, these are the first ones."""
    return sorted(pieces, key=lambda piece: hashlib.sha256(f"{seed} {piece.id}".encode()).digest())[:number]


def made_gains(
    pieces: Sequence[Piece], reader: Reader, folder: Path, *, show_progress: bool = False
) -> dict[str, Floats]:
    """The exact gains of the first sentences of texts, by their ids; those in the folder are not computed again.

    Pairs of sentences that are too far apart, and those of a sentence and an earlier one, are not a number. No other
    process may work in the folder.
    """
    folder.mkdir(parents=True, exist_ok=True)
    parts = [pieces[start : start + _TEXTS_AT_ONCE] for start in range(0, len(pieces), _TEXTS_AT_ONCE)]
    files = [folder / f"gains-{_fingerprint(part, reader)}.npy" for part in parts]
    found = {file: _opened(file, part) for file, part in zip(files, parts, strict=True)}
    missing = [(file, part) for file, part in zip(files, parts, strict=True) if found[file] is None]
    done = len(pieces) - sum(len(part) for _, part in missing)
    tracked = track(missing, "reading pairs", len(pieces), done=done, size=lambda one: len(one[1]), show=show_progress)
    for file, part in tracked:
        found[file] = of_part = _each_on_one_thread(part, reader)
        with new_file(file) as stream:
            np.save(stream, np.concatenate([gains.ravel() for gains in of_part]))
    return {
        piece.id: gains
        for file, part in zip(files, parts, strict=True)
        for piece, gains in zip(part, found[file] or (), strict=True)
    }


def _each_on_one_thread(pieces: Sequence[Piece], reader: Reader) -> list[Floats]:
    def gains(piece: Piece) -> Floats:
        size = _size(piece)
        document = as_document(Version(piece.id, tuple(piece.placed(0, size)), piece.gaps[: size - 1]))
        near = [(u, v) for u in range(size) for v in range(u + 1, min(u + REACH, size))]
        return exact_gains(reader, document, near)

    if len(pieces) > 1:
        return side_by_side(gains, pieces)
    with one_thread():
        return list(map(gains, pieces))


def _size(piece: Piece) -> int:
    return min(len(piece), _LONGEST)


def _fingerprint(pieces: Sequence[Piece], reader: Reader) -> str:
    """What the gains of some texts depend on."""
    texts = [(piece.id, piece.sentences[:_LONGEST], piece.gaps[: _LONGEST - 1]) for piece in pieces]
    about = json.dumps([_FORMAT, reader.identity, REACH, texts])
    return hashlib.sha256(about.encode()).hexdigest()[:32]


def _opened(file: Path, pieces: Sequence[Piece]) -> list[Floats] | None:
    """The gains in a file; None where there are none, or damaged ones."""
    sizes = [_size(piece) for piece in pieces]
    try:
        values = np.load(file, allow_pickle=False)
    except (OSError, EOFError, ValueError):
        return None
    if values.dtype != np.float32 or values.shape != (sum(size**2 for size in sizes),):
        return None
    parts = np.split(values, np.cumsum([size**2 for size in sizes])[:-1])
    return [part.reshape(size, size) for part, size in zip(parts, sizes, strict=True)]


def remove_gains(folder: Path) -> None:
    """Remove all gains in a folder, and nothing else."""
    for file in folder.iterdir():
        if _FILE.fullmatch(file.name):
            file.unlink()


@dataclass(frozen=True)
class KnownGains:
    """A text with the exact gains of its first sentences; those that are not known are not a number."""

    sentences: Sentences
    gains: Floats

    def filled(self, size: int) -> Floats:
        """The gains of so many sentences, (size, size)."""
        found = np.full((size, size), np.nan, dtype=np.float32)
        known = len(self.gains)
        found[:known, :known] = self.gains
        return found


def known_gains(groups: Sequence[Group], gains: Mapping[str, Floats]) -> list[KnownGains]:
    """The texts of groups whose gains are known."""
    originals = [(group.folder, group.versions[0]) for group in groups if group.versions[0].text in gains]
    return [KnownGains(folder.sentences([one])[0], gains[one.text]) for folder, one in originals]


@dataclass(frozen=True)
class GainsSchedule:
    """How gains are learnt: AdamW with a learning rate that rises and falls once, and Huber's loss."""

    epochs: int = 15
    texts_at_once: int = 8
    learning_rate: float = 1e-3
    weight_decay: float = 0.1
    numbers: int = 64


def with_gains(
    network: HeadsNetwork,
    texts: Sequence[KnownGains],
    schedule: GainsSchedule,
    seed: int,
    *,
    show_progress: bool = False,
) -> HeadsNetwork:
    """The same network with one more head, which has learnt gains; nothing else in it changes.

    Args:
        network: Trained heads.
        texts: The texts to learn from.
        schedule: How to train.
        seed: The seed of all random choices.
        show_progress: Whether to show the time left.
    """
    if not texts:
        raise CohegraphError("There is no text with gains to learn from.", code="too-short")
    known = np.concatenate([one.gains[~np.isnan(one.gains)] for one in texts])
    with one_thread(), torch.random.fork_rng([]):
        torch.manual_seed(seed)
        found = HeadsNetwork(replace(network.shape, gains=schedule.numbers)).eval()
        found.load_state_dict(network.state_dict(), strict=False)
        head = found.gains
        assert head is not None
        found.requires_grad_(False)
        head.requires_grad_(True)
        head.mean.fill_(float(known.mean()))
        head.scale.fill_(float(known.std()) + _LEAST)
        random, size = np.random.default_rng(seed), schedule.texts_at_once
        orders = [random.permutation(len(texts)) for _ in range(schedule.epochs)]
        batches = [order[start : start + size] for order in orders for start in range(0, len(texts), size)]
        optimizer = torch.optim.AdamW(head.parameters(), weight_decay=schedule.weight_decay)
        rate = torch.optim.lr_scheduler.OneCycleLR(
            optimizer, schedule.learning_rate, total_steps=len(batches) + 1, pct_start=0.1
        )
        head.train()
        for numbers in track(batches, "learning gains", len(batches), show=show_progress):
            optimizer.zero_grad()
            predicted, exact = _predicted(found, [texts[number] for number in numbers])
            functional.smooth_l1_loss(predicted / head.scale, exact / head.scale).backward()
            torch.nn.utils.clip_grad_norm_(head.parameters(), 1.0)
            optimizer.step()
            rate.step()
    return found.requires_grad_(True).eval()


def _predicted(network: HeadsNetwork, texts: Sequence[KnownGains]) -> tuple[torch.Tensor, torch.Tensor]:
    """The gains that are predicted and those that are known, of all pairs."""
    gains = network(Texts.of([one.sentences for one in texts])).gains
    exact = torch.from_numpy(np.stack([one.filled(gains.shape[1]) for one in texts]))
    known = ~exact.isnan()
    return gains[known], exact[known]


def correlations(network: HeadsNetwork, texts: Sequence[KnownGains]) -> tuple[float, float] | None:
    """Pearson's and Spearman's correlation of predicted and exact gains; None where there is nothing to compare."""
    with torch.inference_mode():
        pairs = [[part.numpy() for part in _predicted(network, [one])] for one in texts]
    if not pairs:
        return None
    predicted, exact = (np.concatenate(part) for part in zip(*pairs, strict=True))
    if not (np.ptp(predicted) and np.ptp(exact)):
        return None
    return float(np.corrcoef(predicted, exact)[0, 1]), float(spearmanr(predicted, exact).statistic)
