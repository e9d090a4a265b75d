"""Prose as pieces: parsed, with similar sentences to draw from, and stretches of long texts."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from cohegraph.corpora.corruptions import DonorPool, Piece, SimilarSentences
from cohegraph.corpora.prose import ProseText
from cohegraph.files import new_file
from cohegraph.progress import track

if TYPE_CHECKING:
    from cohegraph.corpora.corruptions.donors import Vectors
    from cohegraph.text.encoder import Encoder

# Sentences that similar ones are looked for among: encoding them takes minutes.
_CANDIDATES = 20_000
_BATCH = 256
# How many sentences of a long text are used, and how often the whole text is not.
SHORTEST, _LONGEST, _IN_PART = 5, 12, 0.65
# Of longer texts the beginning is used: the memory of heads grows with the square of the sentences.
MOST_SENTENCES = 128


def parsed_pieces(texts: Sequence[ProseText], *, show_progress: bool = True) -> Iterator[Piece]:
    """The pieces of texts."""
    from cohegraph.text.spacy_parser import SpacyParser

    parsed = SpacyParser().parse(text.text for text in texts)
    tracked = track(parsed, "parsing", len(texts), show=show_progress)
    for text, document in zip(texts, tracked, strict=True):
        yield Piece.of(document, text.id, work=text.work, source=text.source)


def similar_sentences(
    pool: DonorPool, encoder: Encoder, seed: int, *, folder: Path | None = None, show_progress: bool = True
) -> SimilarSentences:
    """Finds similar sentences among a sample of those of a pool.

    Args:
        pool: Where the sentences come from.
        encoder: Encodes them.
        seed: The seed of the sample.
        folder: Keeps the vectors of the sample, so that the same call does not encode it again.
        show_progress: Whether to show how far the encoding is.
    """
    import numpy as np

    from cohegraph.text.threads import side_by_side

    def encode(sentences: Sequence[str]) -> Vectors:
        vectors = encoder.encode(sentences).vectors
        lengths = np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), np.finfo(np.float32).tiny)
        return np.asarray(vectors / lengths, dtype=np.float32)

    candidates = pool.sample(_CANDIDATES, seed)
    kept: Path | None = None
    if folder is not None:
        about = f"{encoder.identity} {pool.digest} {_CANDIDATES} {seed}"
        kept = folder / f"similar-{hashlib.sha256(about.encode()).hexdigest()[:32]}.npy"
    if kept is not None and kept.is_file():
        return SimilarSentences(candidates, np.load(kept, allow_pickle=False), encode)
    batches = [candidates[start : start + _BATCH] for start in range(0, len(candidates), _BATCH)]
    tracked = track(batches, "encoding", len(candidates), size=len, show=show_progress)
    found = [np.zeros((0, encoder.dimensions), np.float32)]
    for batch in tracked:
        # One sentence for each thread, so that no digit depends on how many threads there are.
        found += side_by_side(encode, [[one.text] for one in batch])
    vectors = np.concatenate(found)
    if kept is not None:
        with new_file(kept) as stream:
            np.save(stream, vectors)
    return SimilarSentences(candidates, vectors, encode)


def stretches(pieces: Iterable[Piece], seed: int) -> list[Piece]:
    """The pieces, of most long ones a few sentences only: short texts give more examples per hour.

    Which ones depends on the id of a text and the seed.
    """
    return [_stretch(piece, Random(f"{seed} stretch {piece.id}")) for piece in pieces]


def _stretch(piece: Piece, random: Random) -> Piece:
    if len(piece) <= _LONGEST or random.random() >= _IN_PART:
        return piece
    size = random.randint(SHORTEST, _LONGEST)
    start = 0 if random.random() < 0.5 else random.randint(0, len(piece) - size)
    return _part(piece, start, size)


def beginning(piece: Piece) -> Piece:
    """A piece, of a very long one the first sentences."""
    return piece if len(piece) <= MOST_SENTENCES else _part(piece, 0, MOST_SENTENCES)


def _part(piece: Piece, start: int, size: int) -> Piece:
    part = slice(start, start + size)
    return replace(
        piece,
        sentences=piece.sentences[part],
        gaps=piece.gaps[start : start + size - 1],
        names=piece.names[part],
        changes=piece.changes[part],
        whole=piece.whole[part],
    )
