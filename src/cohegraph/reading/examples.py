"""Examples to learn from: originals and corrupted versions of texts, with what a reader and an encoder found in them.

Reading them takes hours, so they are written to folders as they come, some texts in each, and are never read twice.
States are half precision and stay on disk: there may be more of them than memory holds.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import accumulate, islice
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt

from cohegraph.corpora.corruptions import Corruption, DonorPool, Piece, Version, corrupt, is_similar
from cohegraph.files import new_file, new_folder, remove_leftovers, write_atomically
from cohegraph.progress import track
from cohegraph.reading.pieces import similar_sentences
from cohegraph.text.document import Document, Sentence
from cohegraph.text.encoder import Encoder
from cohegraph.text.heads_network import Sentences
from cohegraph.text.packaged import sha256_of
from cohegraph.text.reader import Reader, State
from cohegraph.text.threads import one_thread, side_by_side

ORIGINAL = "original"
_EXAMPLES, _SEAL = "examples.json", "sha256.json"
# What is kept of sentences, and how precisely.
_ARRAYS: dict[str, type[np.floating]] = {"states": np.float16, "figures": np.float32, "vectors": np.float16}
# Texts in a folder.
_TEXTS_AT_ONCE = 32
# Changes with the examples that the same texts and settings give.
_FORMAT = 1
# The name of a folder of examples, or of one that was not completed.
_PART = re.compile(r"[0-9a-f]{32}|\.[0-9a-f]{32}\.[0-9a-f]{12}")
# Kinds of corruptions, and how often each is drawn.
MIX = {
    "shuffle": 0.33,
    "blocks": 0.67,
    "swap": 0.9,
    "move": 0.6,
    "replace-one:source": 0.25,
    "replace-one:work": 0.12,
    "replace-one:similar": 0.12,
    "replace-one:elsewhere": 0.12,
    "insert:source": 0.12,
    "insert:similar": 0.1,
    "insert:work": 0.1,
    "replace-two:source": 0.1,
    "replace-two:elsewhere": 0.1,
    "join:source": 0.45,
    "join:elsewhere": 0.15,
    "interleave:source": 0.1,
    "drop": 0.1,
    "names": 0.1,
    "connective": 0.1,
    "repeat": 0.1,
}


@dataclass(frozen=True)
class Example:
    """A version of a text.

    Args:
        text: The id of the text.
        source: Where the text comes from.
        kind: The kind of corruption with its donor, or ``original``.
        start: Its first row among those of its folder.
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
        """The same up to some sentence."""
        return replace(
            self,
            sentences=sentences,
            breaks=tuple(boundary for boundary in self.breaks if boundary < sentences - 1),
            origins=self.origins[:sentences],
            repeated=tuple(number for number in self.repeated if number < sentences),
        )

    @property
    def strangers(self) -> list[int]:
        """The sentences that do not belong: from another text, or said before."""
        return sorted({number for number, origin in enumerate(self.origins) if origin} | set(self.repeated))


class ExampleFolder:
    """Some texts with their versions, of each text the original first.

    No file stays open: there may be more folders than a process may open files.
    """

    def __init__(self, folder: Path) -> None:
        rows: list[dict[str, Any]] = json.loads((folder / _EXAMPLES).read_text("utf-8"))
        self._folder = folder
        self.examples = [Example(**{name: _fixed(value) for name, value in row.items()}) for row in rows]
        number = sum(example.sentences for example in self.examples)
        self._layout = {name: _layout(folder / f"{name}.npy", number, kind) for name, kind in _ARRAYS.items()}

    def sentences(self, examples: Sequence[Example]) -> list[Sentences]:
        """What heads take of the versions of one text."""
        begin = min(example.start for example in examples)
        end = max(example.start + example.sentences for example in examples)
        rows = {name: self._rows(name, begin, end) for name in _ARRAYS}
        own = [slice(example.start - begin, example.start - begin + example.sentences) for example in examples]
        return [Sentences(**{name: array[part] for name, array in rows.items()}) for part in own]

    def texts(self) -> list[list[Example]]:
        """The versions of every text."""
        found: list[list[Example]] = []
        for example in self.examples:
            if example.kind == ORIGINAL:
                found.append([])
            found[-1].append(example)
        return found

    def _rows(self, name: str, begin: int, end: int) -> npt.NDArray[Any]:
        kind, (offset, width) = np.dtype(_ARRAYS[name]), self._layout[name]
        place = offset + begin * width * kind.itemsize
        values = np.fromfile(self._folder / f"{name}.npy", kind, (end - begin) * width, offset=place)
        return values.reshape(end - begin, width)

    @staticmethod
    def write(folder: Path, examples: Sequence[Example], sentences: Sequence[Sentences]) -> None:
        """Write examples, and what heads take of each, to a folder that is complete or not there."""
        with new_folder(folder) as work:
            for name, kind in _ARRAYS.items():
                rows = np.concatenate([getattr(one, name) for one in sentences]).astype(kind)
                with new_file(work / f"{name}.npy") as stream:
                    np.save(stream, np.ascontiguousarray(rows))
            write_atomically(work / _EXAMPLES, json.dumps([asdict(example) for example in examples]))
            write_atomically(work / _SEAL, json.dumps(_digests(work)))


def _digests(folder: Path) -> dict[str, str]:
    return {name: sha256_of(folder / name) for name in (_EXAMPLES, *(f"{array}.npy" for array in _ARRAYS))}


def _layout(file: Path, rows: int, kind: type[np.floating]) -> tuple[int, int]:
    """Where the rows of a file begin, and their width; an error where they are not what they should be."""
    array = np.load(file, mmap_mode="r", allow_pickle=False)
    if array.ndim != 2 or len(array) != rows or array.dtype != kind or not array.flags.c_contiguous:
        raise ValueError(f"{file} does not have the rows that it should have")
    return array.offset, array.shape[1]


def _fixed(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


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

    @cached_property
    def _about(self) -> str:
        """What all examples depend on."""
        parts = [self.reader.identity, self.encoder.identity, self.states, list(self.kinds.items())]
        return json.dumps([_FORMAT, *parts, self.versions, self.seed, self.pool.digest])

    def fingerprint(self, pieces: Sequence[Piece]) -> str:
        """What the examples of some texts depend on."""
        texts = json.dumps([(piece.id, piece.sentences, piece.gaps) for piece in pieces])
        return hashlib.sha256(f"{self._about}\n{texts}".encode()).hexdigest()[:32]


def as_document(version: Version) -> Document:
    """A version as a parser would give it, with the sentences that are known."""
    spans = zip(version.sentences, version.spans, strict=True)
    return Document(version.text, tuple(Sentence(text, start, end, 0, ()) for text, (start, end) in spans))


def made_examples(
    pieces: Sequence[Piece], making: Making, folder: Path, *, show_progress: bool = False
) -> list[ExampleFolder]:
    """The examples of texts, some texts in each folder; those that are there already are not made again.

    No other process may work in the folder.
    """
    folder.mkdir(parents=True, exist_ok=True)
    parts = [pieces[start : start + _TEXTS_AT_ONCE] for start in range(0, len(pieces), _TEXTS_AT_ONCE)]
    places = [folder / making.fingerprint(part) for part in parts]
    found = {place: _opened(place) for place in places}
    missing = [(part, place) for part, place in zip(parts, places, strict=True) if found[place] is None]
    if missing and any(map(is_similar, making.kinds)) and making.pool.similar is None:
        making.pool.similar = similar_sentences(making.pool, making.encoder, making.seed, show_progress=show_progress)
    done = len(pieces) - sum(len(part) for part, _ in missing)
    tracked = track(missing, "reading", len(pieces), done=done, size=lambda one: len(one[0]), show=show_progress)
    for part, place in tracked:
        remove_leftovers(place)
        examples, sentences, rows = list[Example](), list[Sentences](), 0
        for of_text, states in _each_on_one_thread(making, part):
            examples += [replace(example, start=example.start + rows) for example in of_text]
            sentences += states
            rows += sum(map(len, states))
        ExampleFolder.write(place, examples, sentences)
    return [found[place] or ExampleFolder(place) for place in places]


def _each_on_one_thread(making: Making, pieces: Sequence[Piece]) -> list[tuple[list[Example], list[Sentences]]]:
    # The longest first: nobody waits for it at the end.
    order = sorted(range(len(pieces)), key=lambda number: -sum(map(len, pieces[number].sentences)))
    with one_thread() if len(pieces) == 1 else nullcontext():
        found = dict(zip(order, side_by_side(lambda number: making.examples(pieces[number]), order), strict=True))
    return [found[number] for number in range(len(pieces))]


def _opened(folder: Path) -> ExampleFolder | None:
    """The examples in a folder; None where there are none, or damaged ones."""
    try:
        sealed = json.loads((folder / _SEAL).read_text("utf-8"))
        return ExampleFolder(folder) if sealed == _digests(folder) else None
    except (OSError, EOFError, ValueError, TypeError, AttributeError):
        return None


def remove_examples(folder: Path) -> None:
    """Remove all examples in a folder, and nothing else."""
    for part in folder.iterdir():
        if _PART.fullmatch(part.name):
            shutil.rmtree(part)
