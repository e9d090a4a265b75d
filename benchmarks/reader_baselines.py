"""What the heads of a reader are compared with, on the same dev pairs; part of reader_study.py.

The mean loss of the reader, the cosine of neighbouring sentences and the number of words need no training. The entity
grid and the model of Moon et al. (2019) learn to rank originals above corrupted versions of training pieces.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, NamedTuple

import torch
from torch import Tensor

from cohegraph import CoherenceModel
from cohegraph.corpora.corruptions import Piece
from cohegraph.features.cache import FeatureCache
from cohegraph.files import write_atomically
from cohegraph.progress import remark, track
from cohegraph.reading.examples import Example
from cohegraph.settings import Settings
from cohegraph.text.encoder import TransformerEncoder
from cohegraph.text.heads_network import Outputs, Texts
from cohegraph.text.reader import FIGURES

LOSS = FIGURES.index("loss")


class Pair(NamedTuple):
    """An original and a corrupted version of the same number of sentences."""

    text: str
    kind: str
    sentences: int
    original: str
    corrupted: str


class MeanLoss(torch.nn.Module):
    """Judges texts by the mean loss of their tokens, and sentences by theirs: the lower, the better."""

    def forward(self, texts: Texts) -> Outputs:
        """As heads do; it says nothing of two sentences."""
        losses = texts.figures[..., LOSS]
        related = torch.zeros(*losses.shape, losses.shape[1])
        return Outputs(-losses[:, 1:], -losses, related, -texts.document[:, 0])


class Cosine(torch.nn.Module):
    """Judges texts by the mean cosine of neighbouring sentences, sentences by that to all others."""

    def forward(self, texts: Texts) -> Outputs:
        """As heads do."""
        vectors, real = texts.vectors.float(), texts.real
        cosines = vectors @ vectors.transpose(1, 2)
        others = real[:, None] & ~torch.eye(real.shape[1], dtype=torch.bool)
        return Outputs(
            neighbours := torch.diagonal(cosines, offset=1, dim1=1, dim2=2),
            _mean(cosines, others),
            cosines,
            _mean(neighbours, real[:, 1:]),
        )


def _mean(values: Tensor, where: Tensor) -> Tensor:
    return (values * where).sum(dim=-1) / where.sum(dim=-1).clamp(min=1)


def baselines(study: Any, measure: Callable[..., Any]) -> None:
    """Measure all baselines, and keep the results."""
    portions = study.read("dev")
    dev = {"dev": [one.about()["folder"] for one in portions]}
    groups = study.groups(portions)
    for name, network in (("mean-loss", MeanLoss()), ("cosine", Cosine())):
        if not study.is_done(name, dev):
            study.keep_result(name, dev, **measure(study, network, groups)[1])
    pairs = _pairs(study, "dev", [piece for one in portions for piece in one.pieces])
    training = _pairs(study, "train", study.chosen("train")[: study.options.baseline_pieces])
    if not study.is_done("length", dev):
        words = {text: float(len(text.split())) for pair in pairs for text in (pair.original, pair.corrupted)}
        study.keep_result("length", dev, right=_right(pairs, words))
    texts = sorted({pair.text for pair in pairs})
    Random(study.seed).shuffle(texts)
    judged = set(texts[: study.options.baseline_dev])
    pairs = [pair for pair in pairs if pair.text in judged]
    for name, changes in (("entity-grid", {}), ("moon-2019", {"epochs": study.options.baseline_epochs})):
        about = dev | {"training": _digest([*map(str, training)]), "judged": len(judged), "changes": changes}
        if not study.is_done(name, about):
            scores, seconds = _ranked(study, name, changes, training, pairs)
            pieces = len({pair.text for pair in training})
            right = _right(pairs, scores)
            found = {
                "pairs": len(training),
                "pieces": pieces,
                "judged": len(judged),
                "seconds": seconds,
                "right": right,
            }
            study.keep_result(name, about, **found)
            remark(f"{name}: trained on {len(training)} pairs of {pieces} pieces in {seconds:.0f} seconds")


def _pairs(study: Any, split: str, pieces: Sequence[Piece]) -> list[Pair]:
    """The pairs that heads see, made again; kept, because those with similar sentences take minutes."""
    folder = study.work / "pairs"
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{split}-{_digest([study.seed, *((piece.id, piece.sentences) for piece in pieces)])}.json"
    if file.is_file():
        return [Pair(*row) for row in json.loads(file.read_text("utf-8"))]
    making = study.making(split, None, TransformerEncoder(precision="auto", device="cpu"))
    study.find_similar(making)
    found = list[Pair]()
    for piece in track(pieces, f"corrupting {split} pieces", len(pieces)):
        for one in making._corruptions(piece):
            kind = Example.of(piece, 0, one).kind
            found.append(Pair(piece.id, kind, len(one.original), one.original.text, one.corrupted.text))
    write_atomically(file, json.dumps(found))
    return found


def _digest(values: Sequence[Any]) -> str:
    return hashlib.sha256(json.dumps(values).encode()).hexdigest()[:16]


def _ranked(
    study: Any, name: str, changes: dict[str, Any], training: Sequence[Pair], pairs: Sequence[Pair]
) -> tuple[dict[str, float], float]:
    """The scores of dev texts by a system that has learnt to rank training texts, and the seconds of its training."""
    model = CoherenceModel(name, Settings().replaced({"objective.kind": "ranking"}), hyper_parameters=changes)
    cache = FeatureCache(study.work / "features")

    def features(texts: Sequence[str]) -> Any:
        return cache.features(texts, model.featurizer, needs=model.needs, show_progress=True)

    # Only versions of one text with the same number of sentences are compared.
    ratings = dict[tuple[str, int, str], float]()
    for pair in training:
        ratings[pair.text, pair.sentences, pair.corrupted] = 0.0
        ratings[pair.text, pair.sentences, pair.original] = 1.0
    graded = features([text for _, _, text in ratings])
    begin = time.process_time()
    model.fit(graded, list(ratings.values()), groups=[f"{id} {size}" for id, size, _ in ratings], bare=True)
    seconds = time.process_time() - begin
    texts = list(dict.fromkeys(text for pair in pairs for text in (pair.original, pair.corrupted)))
    return dict(zip(texts, model.predictions(features(texts))[:, 0].tolist(), strict=True)), seconds


def _right(pairs: Sequence[Pair], scores: dict[str, float]) -> dict[str, dict[str, float]]:
    """Of every pair, whether the original has the higher score; a tie is half right."""
    right = defaultdict[str, dict[str, float]](dict)
    for pair in pairs:
        better, worse = scores[pair.original], scores[pair.corrupted]
        right[pair.kind][pair.text] = (better > worse) + 0.5 * (better == worse)
    return right
