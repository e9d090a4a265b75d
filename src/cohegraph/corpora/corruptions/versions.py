"""A pair of texts: the original and its corrupted version, with the origin of every sentence."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any, NamedTuple


class Origin(NamedTuple):
    """Where a sentence comes from: the id of the text, and the number of the sentence in it, counted from 0."""

    text: str
    sentence: int

    def precedes(self, other: "Origin") -> bool:
        """Whether the other sentence directly follows this one in the same text."""
        return self.text == other.text and self.sentence + 1 == other.sentence


class Placed(NamedTuple):
    """A sentence of a version; ``changed`` where its wording differs from its origin."""

    text: str
    origin: Origin
    changed: bool = False


@dataclass(frozen=True, slots=True)
class Version:
    """A sequence of sentences.

    ``id`` is the id of the text that it is a version of, and ``gaps`` is the white space between its sentences.
    Sentences and boundaries are counted from 0; boundary ``i`` is between sentences ``i`` and ``i + 1``.
    """

    id: str
    placed: tuple[Placed, ...]
    gaps: tuple[str, ...]

    def __post_init__(self) -> None:
        if len(self.gaps) != max(0, len(self.placed) - 1):
            raise ValueError("a version needs one gap between every two sentences")

    def __len__(self) -> int:
        return len(self.placed)

    @property
    def sentences(self) -> tuple[str, ...]:
        """The sentences as strings."""
        return tuple(one.text for one in self.placed)

    @property
    def origins(self) -> tuple[Origin, ...]:
        """Where each sentence comes from."""
        return tuple(one.origin for one in self.placed)

    @property
    def text(self) -> str:
        """The sentences with the white space between them."""
        return "".join(part for pair in zip(self.sentences, (*self.gaps, ""), strict=True) for part in pair)

    @property
    def spans(self) -> tuple[tuple[int, int], ...]:
        """Start and end of each sentence in ``text``."""
        lengths = [len(sentence) for sentence in self.sentences]
        steps = (length + len(gap) for length, gap in zip(lengths, self.gaps, strict=False))
        starts = accumulate(steps, initial=0)
        return tuple((start, start + length) for start, length in zip(starts, lengths, strict=True))

    @property
    def breaks(self) -> tuple[int, ...]:
        """Boundaries that do not hold.

        A boundary holds if both sentences come from the same text, follow each other there, and are unchanged.
        """
        return tuple(number for number, pair in enumerate(pairwise(self.placed)) if not _holds(*pair))

    @property
    def damage(self) -> float:
        """The share of boundaries that are broken."""
        return len(self.breaks) / len(self.gaps) if self.gaps else 0.0

    @property
    def foreign(self) -> tuple[int, ...]:
        """Sentences that come from another text."""
        return tuple(number for number, one in enumerate(self.placed) if one.origin.text != self.id)

    @property
    def changed(self) -> tuple[int, ...]:
        """Sentences with a changed wording."""
        return tuple(number for number, one in enumerate(self.placed) if one.changed)

    @property
    def repeated(self) -> tuple[int, ...]:
        """Sentences that stand earlier in this version, too."""
        first = dict[Origin, int]()
        places = enumerate(self.origins)
        return tuple(number for number, origin in places if first.setdefault(origin, number) != number)


@dataclass(frozen=True, slots=True)
class Corruption:
    """An original and its corrupted version.

    ``donor`` says where foreign sentences come from; it is empty for kinds without any. ``moved`` names the sentences
    of the corrupted version that changed places, for the kinds that move single sentences.
    """

    kind: str
    donor: str
    original: Version
    corrupted: Version
    moved: tuple[int, ...] = ()

    @property
    def id(self) -> str:
        """The id of the text."""
        return self.original.id

    @property
    def breaks(self) -> tuple[int, ...]:
        """The broken boundaries of the corrupted version."""
        return self.corrupted.breaks

    @property
    def foreign(self) -> tuple[int, ...]:
        """The sentences of the corrupted version that come from another text."""
        return self.corrupted.foreign

    @property
    def damage(self) -> float:
        """The share of broken boundaries of the corrupted version."""
        return self.corrupted.damage

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as in the rows of ``cohegraph corrupt``."""
        corrupted = self.corrupted
        return {
            "id": self.id,
            "kind": self.kind,
            "donor": self.donor,
            "original": self.original.text,
            "text": corrupted.text,
            "spans": [list(span) for span in corrupted.spans],
            "origins": [list(origin) for origin in corrupted.origins],
            "breaks": list(corrupted.breaks),
            "foreign": list(corrupted.foreign),
            "changed": list(corrupted.changed),
            "moved": list(self.moved),
            "repeated": list(corrupted.repeated),
            "damage": round(corrupted.damage, 4),
        }


def _holds(first: Placed, second: Placed) -> bool:
    return first.origin.precedes(second.origin) and not (first.changed or second.changed)


def total_length(placed: Sequence[Placed]) -> int:
    """The length of sentences in characters, without the white space between them."""
    return sum(len(one.text) for one in placed)
