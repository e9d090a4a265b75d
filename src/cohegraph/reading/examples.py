"""Examples to learn from: originals and corrupted versions of texts, with what a reader and an encoder found in them.

Reading them takes hours, so they are written to files as they come, some texts in each, and are never read twice.
States are half precision and mapped into memory: there may be more of them than memory holds.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import accumulate, islice
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from cohegraph.corpora.corruptions import Corruption, DonorPool, Piece, Version, corrupt
from cohegraph.files import new_folder
from cohegraph.progress import track
from cohegraph.text.document import Document, Sentence
from cohegraph.text.encoder import Encoder
from cohegraph.text.heads import Sentences
from cohegraph.text.reader import Reader, State
from cohegraph.text.threads import side_by_side

ORIGINAL = "original"
_EXAMPLES = "examples.json"
# What is kept of sentences, and how precisely.
_ARRAYS = {"states": np.float16, "figures": np.float32, "vectors": np.float16}
# Texts in a folder.
_TEXTS_AT_ONCE = 32


@dataclass(frozen=True)
class Example:
    """A version of a text.

    Args:
        text: The id of the text.
        source: Where the text comes from.
        kind: The kind of corruption with its donor, or ``original``.
        start: Its first row among those of its file.
        sentences: How many rows, one per sentence, it has.
        breaks: The boundaries that do not hold.
        origins: For each sentence 0 if it is from the text itself, and a number for each other text.
        repeated: Sentences that stand earlier, too.
    """

    text: str
    source: str
    kind: str
    start: int
    sentences: int
    breaks: Sequence[int] = ()
    origins: Sequence[int] = ()
    repeated: Sequence[int] = ()

    @classmethod
    def of(cls, piece: Piece, start: int, corruption: Corruption | None = None) -> Example:
        """The example of an original or a corrupted version."""
        if corruption is None:
            return cls(piece.id, piece.source, ORIGINAL, start, len(piece), (), (0,) * len(piece))
        corrupted = corruption.corrupted
        number = {piece.id: 0}
        origins = tuple(number.setdefault(origin.text, len(number)) for origin in corrupted.origins)
        kind = f"{corruption.kind}:{corruption.donor}" if corruption.donor else corruption.kind
        return cls(piece.id, piece.source, kind, start, len(corrupted), corrupted.breaks, origins, corrupted.repeated)

    def first(self, sentences: int) -> Example:
        """An original up to some sentence."""
        return replace(self, sentences=sentences, origins=self.origins[:sentences])

    @property
    def strangers(self) -> list[int]:
        """The sentences that do not belong: from another text, or said before."""
        return sorted({number for number, origin in enumerate(self.origins) if origin} | set(self.repeated))


class ExampleFolder:
    """Some texts with their versions, of each text the original first."""

    def __init__(self, folder: Path) -> None:
        rows: list[dict[str, Any]] = json.loads((folder / _EXAMPLES).read_text("utf-8"))
        self.examples = [Example(**row) for row in rows]
        self._arrays = {name: np.load(folder / f"{name}.npy", mmap_mode="r") for name in _ARRAYS}

    def sentences(self, example: Example) -> Sentences:
        """What heads take of an example."""
        rows = slice(example.start, example.start + example.sentences)
        return Sentences(**{name: array[rows] for name, array in self._arrays.items()})

    def texts(self) -> list[list[Example]]:
        """The versions of every text."""
        found: list[list[Example]] = []
        for example in self.examples:
            if example.kind == ORIGINAL:
                found.append([])
            found[-1].append(example)
        return found

    @staticmethod
    def write(folder: Path, examples: Sequence[Example], sentences: Sequence[Sentences]) -> None:
        """Write examples, and what heads take of each, to a folder that is complete or not there."""
        with new_folder(folder) as work:
            for name, kind in _ARRAYS.items():
                rows = np.concatenate([getattr(one, name) for one in sentences]).astype(kind)
                np.save(work / f"{name}.npy", rows)
            (work / _EXAMPLES).write_text(json.dumps([asdict(example) for example in examples]), "utf-8")


@dataclass(frozen=True)
class Making:
    """What makes examples of texts.

    Args:
        pool: Where foreign sentences come from.
        reader: Reads versions.
        encoder: Encodes sentences.
        states: The reader's states to keep.
        kinds: Kinds of corruptions, and how often each is drawn.
        versions: How many corrupted versions of a text are made.
        seed: The seed of all random choices.
    """

    pool: DonorPool
    reader: Reader
    encoder: Encoder
    states: Sequence[State]
    kinds: Mapping[str, float]
    versions: int
    seed: int = 0

    def examples(self, piece: Piece) -> tuple[list[Example], list[Sentences]]:
        """The original and corrupted versions of a text, and what heads take of each."""
        made = [None, *self._corruptions(piece)]
        originals = Version(piece.id, tuple(piece.placed()), piece.gaps)
        documents = [as_document(originals if one is None else one.corrupted) for one in made]
        readings = self.reader.read_versions(documents, self.states)
        texts = list(dict.fromkeys(sentence.text for document in documents for sentence in document.sentences))
        vectors = dict(zip(texts, self.encoder.encode(texts).vectors, strict=True))
        sentences = [
            Sentences.of(reading, np.stack([vectors[sentence.text] for sentence in document.sentences]))
            for document, reading in zip(documents, readings, strict=True)
        ]
        starts = accumulate(map(len, sentences), initial=0)
        return [Example.of(piece, start, one) for start, one in zip(starts, made, strict=False)], sentences

    def _corruptions(self, piece: Piece) -> Iterator[Corruption]:
        """So many corrupted versions, of different kinds, as the text allows."""
        random = Random(f"{self.seed} {piece.id}")
        # Drawn without putting back: the kind with the largest power of a random number comes first.
        order = sorted(self.kinds, key=lambda kind: -(random.random() ** (1 / self.kinds[kind])))
        found = (corrupt(piece, kind, self.pool, seed=self.seed) for kind in order)
        return islice((one for one in found if one is not None), self.versions)

    def fingerprint(self, pieces: Sequence[Piece]) -> str:
        """What the examples of some texts depend on, except for the other texts of the pool."""
        about = [self.reader.identity, self.encoder.identity, self.states, self.kinds, self.versions, self.seed]
        texts = [(piece.id, piece.sentences, piece.gaps) for piece in pieces]
        return hashlib.sha256(json.dumps([about, texts]).encode()).hexdigest()[:32]


def as_document(version: Version) -> Document:
    """A version as a parser would give it, with the sentences that are known."""
    spans = zip(version.sentences, version.spans, strict=True)
    return Document(version.text, tuple(Sentence(text, start, end, 0, ()) for text, (start, end) in spans))


def made_examples(
    pieces: Sequence[Piece], making: Making, folder: Path, *, show_progress: bool = False
) -> list[ExampleFolder]:
    """The examples of texts, some texts in each folder; those that are there already are not made again."""
    folder.mkdir(parents=True, exist_ok=True)
    parts = [pieces[start : start + _TEXTS_AT_ONCE] for start in range(0, len(pieces), _TEXTS_AT_ONCE)]
    places = [folder / making.fingerprint(part) for part in parts]
    missing = [(part, place) for part, place in zip(parts, places, strict=True) if not place.is_dir()]
    done = len(pieces) - sum(len(part) for part, _ in missing)
    tracked = track(missing, "reading", len(pieces), done=done, size=lambda one: len(one[0]), show=show_progress)
    for part, place in tracked:
        examples, sentences = list[Example](), list[Sentences]()
        for of_text, found in side_by_side(making.examples, part):
            rows = sum(map(len, sentences))
            examples += [replace(example, start=example.start + rows) for example in of_text]
            sentences += found
        ExampleFolder.write(place, examples, sentences)
    return [ExampleFolder(place) for place in places]
