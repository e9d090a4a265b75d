"""The entity grid (Barzilay and Lapata, 2008): which entity plays which role in which sentence."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

# Absent, another role, object, subject: the higher outranks the lower where a sentence has an entity twice.
ROLES = ("-", "X", "O", "S")


@dataclass(frozen=True)
class EntityGrid:
    """A grid without its empty cells, ordered by sentence.

    Shapes: all arrays (cells,). ``role`` is a number of ROLES and never 0; ``mentions`` says how often the entity is
    named in the sentence.
    """

    sentences: int
    entities: int
    sentence: npt.NDArray[np.int64]
    entity: npt.NDArray[np.int64]
    role: npt.NDArray[np.int64]
    mentions: npt.NDArray[np.int64]

    def transitions(self, length: int, salient: int) -> npt.NDArray[np.float64]:
        """The share of every transition, that is of every sequence of roles in so many neighbouring sentences.

        Entities that are named ``salient`` times or more are counted by themselves: the shares of the others come
        first, then theirs; each half sums to 1 where there is such an entity in a document long enough, and is 0
        where there is none. With ``salient`` 0 all entities are counted together, in one half.

        Within a half, transitions are in the order of their roles read as a number of base 4.
        """
        kinds = len(ROLES) ** length
        halves = 2 if salient else 1
        windows = self.sentences - length + 1
        if windows < 1 or not self.entities:
            return np.zeros(halves * kinds)
        named = np.bincount(self.entity, weights=self.mentions, minlength=self.entities)
        half = (named >= salient).astype(np.int64) if salient else np.zeros(self.entities, dtype=np.int64)
        # Every cell belongs to so many windows as a transition is long, at another place in each of them.
        offset = np.arange(length)
        start = self.sentence[:, None] - offset
        value = self.role[:, None] * len(ROLES) ** (length - 1 - offset)
        inside = (start >= 0) & (start < windows)
        window = (self.entity[:, None] * windows + start)[inside]
        touched, place = np.unique(window, return_inverse=True)
        code = np.bincount(place, weights=value[inside], minlength=len(touched)).astype(np.int64)
        counts = np.zeros((halves, kinds))
        np.add.at(counts, (half[touched // windows], code), 1)
        everything = np.bincount(half, minlength=halves) * windows
        counts[:, 0] = everything - counts[:, 1:].sum(axis=1)
        return np.asarray((counts / np.maximum(everything, 1)[:, None]).ravel())


def build_entity_grid(sentences: int, mentions: Iterable[tuple[int, str, int]]) -> EntityGrid:
    """The grid of a document with so many sentences, from (sentence, entity, role) of every mention."""
    cells: dict[tuple[int, str], list[int]] = {}
    for sentence, entity, role in mentions:
        cell = cells.setdefault((sentence, entity), [0, 0])
        cell[0] = max(cell[0], role)
        cell[1] += 1
    ordered = sorted(cells)
    number = {name: index for index, name in enumerate(dict.fromkeys(name for _, name in ordered))}
    rows = np.array(
        [(sentence, number[name], *cells[sentence, name]) for sentence, name in ordered], dtype=np.int64
    ).reshape(-1, 4)
    return EntityGrid(sentences, len(number), *rows.T)


def role_number(dependency: str) -> int:
    """The number of the role that a dependency gives, by its name in Universal or in spaCy's English labels.

    Roles are the underlying ones: the subject of a passive is its object, and the agent its subject.
    """
    if dependency in _SUBJECTS:
        return ROLES.index("S")
    return ROLES.index("O" if dependency in _OBJECTS else "X")


_SUBJECTS: Sequence[str] = ("nsubj", "csubj", "nsubj:outer", "csubj:outer", "obl:agent", "agent")
_OBJECTS: Sequence[str] = ("obj", "dobj", "iobj", "dative", "nsubjpass", "nsubj:pass", "csubjpass", "csubj:pass")
