"""The kinds of corruptions, and how each is made."""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from random import Random

from cohegraph.corpora.corruptions.donors import PLACES, SIMILAR, DonorPool, closest
from cohegraph.corpora.corruptions.names import exchangeable, exchanged
from cohegraph.corpora.corruptions.pieces import Piece
from cohegraph.corpora.corruptions.versions import Corruption, Placed, Version, total_length
from cohegraph.errors import CohegraphError

# How often a random choice is repeated that changes nothing or finds no donor.
_TRIES = 20
# Of so many sentences the one with the best length is dropped or repeated.
_COMPARED = 5
# More versions of one kind than anybody asks for.
_TURNS = 1_000_000


@dataclass(frozen=True, slots=True)
class _Task:
    """A text to corrupt, and what to corrupt it with."""

    piece: Piece
    donor: str
    pool: DonorPool
    random: Random

    def foreign_sentence(self, like: str, length: int, taken: Sequence[Placed]) -> Placed | None:
        """A sentence of about this length that is not taken yet; a similar one is like the given one."""
        return self.pool.sentence(self.piece, self.donor, like, length, self.random, taken)


@dataclass(frozen=True, slots=True)
class _Made:
    """The sentences of a corrupted version, and which of them were moved."""

    placed: Sequence[Placed]
    moved: tuple[int, ...] = ()


_Maker = Callable[[_Task], _Made | None]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of corruption: what it does, the least sentences that a text needs for it, and where donors come from."""

    name: str
    about: str
    sentences: int
    make: _Maker
    donors: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the kind with each of its donors, such as ``join:source``."""
        return tuple(f"{self.name}:{donor}" for donor in self.donors) or (self.name,)


def chosen(names: Iterable[str] | None = None) -> tuple[str, ...]:
    """The names of kinds with their donors; ``join`` stands for all donors of ``join``.

    By default all but those with similar sentences, which need an encoder. They are left out of ``insert``, too, unless
    ``insert:similar`` is named.
    """
    found = dict[str, None]()
    for name in KINDS if names is None else names:
        kind, _, donor = name.partition(":")
        if kind not in KINDS or (donor and donor not in KINDS[kind].donors):
            choice = ", ".join(name for kind in KINDS.values() for name in kind.names)
            raise CohegraphError(f"There is no kind '{name}': choose from {choice}.", code="unknown-kind")
        found |= dict.fromkeys([name] if donor else [one for one in KINDS[kind].names if not is_similar(one)])
    return tuple(found)


def equally_often(names: Sequence[str]) -> dict[str, float]:
    """How often each name is drawn so that all kinds are drawn equally often, however many donors they have."""
    kinds = Counter(name.partition(":")[0] for name in names)
    return {name: 1 / kinds[name.partition(":")[0]] for name in names}


def is_similar(name: str) -> bool:
    """Whether a kind takes similar sentences from other texts."""
    return name.endswith(f":{SIMILAR}")


def corrupt(
    piece: Piece, name: str, pool: DonorPool | None = None, *, seed: int = 0, version: int = 0
) -> Corruption | None:
    """A corrupted version of a text; None where the text is too short or lacks what the kind needs.

    The result depends on the arguments alone, and on the pool only where the kind has donors.

    Args:
        piece: The text.
        name: The kind, with its donor if it has any, such as ``shuffle`` or ``join:source``.
        pool: The texts that foreign sentences are taken from, for kinds with a donor.
        seed: The seed of random choices.
        version: The number of the version, to make several of one kind.
    """
    if chosen([name]) != (name,):
        raise CohegraphError(f"Name a donor of '{name}', such as {chosen([name])[0]}.", code="no-donor")
    kind, _, donor = name.partition(":")
    if len(piece) < KINDS[kind].sentences:
        return None
    task = _Task(piece, donor, pool or DonorPool([]), _random(seed, piece.id, name, version))
    for _ in range(_TRIES):
        made = KINDS[kind].make(task)
        if made is None:
            return None
        gaps = piece.gaps[: len(made.placed) - 1]
        original = Version(piece.id, tuple(piece.placed(0, len(made.placed))), gaps)
        corrupted = Version(piece.id, tuple(made.placed), gaps)
        if corrupted.sentences != original.sentences:
            return Corruption(kind, donor, original, corrupted, made.moved)
    return None


def versions_of(
    piece: Piece, names: Sequence[str], pool: DonorPool, *, versions: int | None = None, seed: int = 0
) -> Iterator[tuple[str, Corruption | None]]:
    """Corrupted versions of a text, by default one of every kind; None where a kind cannot be made of it.

    With fewer ``versions`` than kinds, the kinds are drawn at random for each text, and one that cannot be made is
    replaced by the next. With more, kinds are used several times, and a short text may give fewer: no version of a kind
    comes twice.
    """
    order = list(names)
    if versions is not None:
        _random(seed, piece.id, "order of kinds", 0).shuffle(order)
    made, turn, seen = 0, 0, set[tuple[str, tuple[str, ...]]]()
    while order and (turn == 0 if versions is None else made < versions):
        possible = []
        for name in order:
            if made == versions:
                return
            found = _new_version(piece, name, pool, seed, turn, seen)
            if found is not None:
                made += 1
                possible.append(name)
            if found is not None or not turn:
                yield name, found
        order, turn = possible, turn + 1


def _new_version(
    piece: Piece, name: str, pool: DonorPool, seed: int, turn: int, seen: set[tuple[str, tuple[str, ...]]]
) -> Corruption | None:
    """A version of a kind that was not seen yet, which is then seen."""
    for attempt in range(_TRIES if turn else 1):
        found = corrupt(piece, name, pool, seed=seed, version=turn + _TURNS * attempt)
        if found is None:
            return None
        if (key := (name, found.corrupted.sentences)) not in seen:
            seen.add(key)
            return found
    return None


def _random(seed: int, *about: object) -> Random:
    """Random numbers that depend on these values alone."""
    return Random(hashlib.sha256("\0".join(map(str, (seed, *about))).encode("utf-8", "surrogatepass")).digest())


def _shuffle(task: _Task) -> _Made:
    return _Made(task.random.sample(task.piece.placed(), len(task.piece)))


def _blocks(task: _Task) -> _Made:
    size = len(task.piece)
    number = task.random.randint(3, min(5, size // 2))
    cuts = [0, *sorted(task.random.sample(range(1, size), number - 1)), size]
    order = list(range(number))
    # No block follows the one that it follows in the text: every cut is a break.
    while any(second == first + 1 for first, second in pairwise(order)):
        task.random.shuffle(order)
    return _Made([one for block in order for one in task.piece.placed(cuts[block], cuts[block + 1])])


def _swap(task: _Task) -> _Made:
    placed, first = task.piece.placed(), task.random.randrange(len(task.piece) - 1)
    placed[first], placed[first + 1] = placed[first + 1], placed[first]
    return _Made(placed, moved=(first, first + 1))


def _move(task: _Task) -> _Made:
    placed, size = task.piece.placed(), len(task.piece)
    # All places that are at least two away from a sentence, sentence by sentence.
    ends = [size - (2 if start in (0, size - 1) else 3) for start in range(size)]
    start, end = 0, task.random.randrange(sum(ends))
    while end >= ends[start]:
        start, end = start + 1, end - ends[start]
    end = end if end < start - 1 else end + size - ends[start]
    placed.insert(end, placed.pop(start))
    return _Made(placed, moved=(end,))


def _replace(number: int) -> _Maker:
    def make(task: _Task) -> _Made | None:
        placed = task.piece.placed()
        # What is replaced could be a donor itself: nothing but its place tells a foreign sentence from it.
        places = [place for place in range(1, len(placed)) if task.piece.whole[place]]
        if len(places) < number:
            return None
        for place in task.random.sample(places, number):
            replaced = task.piece.sentences[place]
            found = task.foreign_sentence(replaced, len(replaced), placed)
            if found is None:
                return None
            placed[place] = found
        return _Made(placed)

    return make


def _insert(task: _Task) -> _Made | None:
    *placed, last = task.piece.placed()
    place = task.random.randrange(1, len(placed))
    found = task.foreign_sentence(placed[place - 1].text, len(last.text), placed)
    return None if found is None else _Made([*placed[:place], found, *placed[place:]])


def _join(task: _Task) -> _Made | None:
    for _ in range(_TRIES):
        cut = task.random.randint(2, len(task.piece) - 2)
        kept, lost = task.piece.placed(0, cut), task.piece.placed(cut)
        found = task.pool.stretch(task.piece, task.donor, len(lost), total_length(lost), task.random)
        if found is not None:
            return _Made([*kept, *found])
    return None


def _interleave(task: _Task) -> _Made | None:
    middle = (len(task.piece) + 1) // 2
    kept, lost = task.piece.placed(0, middle), task.piece.placed(middle)
    found = task.pool.stretch(task.piece, task.donor, len(lost), total_length(lost), task.random, first=0)
    if found is None:
        return None
    placed, texts = list[Placed](), [kept, found]
    while all(texts):
        run = task.random.randint(1, 2)
        placed += texts[0][:run]
        texts = [texts[1], texts[0][run:]]
    return _Made([*placed, *texts[0], *texts[1]])


def _drop(task: _Task) -> _Made | None:
    *rest, last = task.piece.placed()
    dropped = _in_place_of(last, rest[1:], task)
    return None if dropped is None else _Made([*(one for one in rest if one != dropped), last])


def _repeat(task: _Task) -> _Made | None:
    *placed, last = task.piece.placed()
    copied = _in_place_of(last, placed[:-1], task)
    if copied is None:
        return None
    directly, first = task.random.random() < 0.5, copied.origin.sentence + 1
    place = first if directly else task.random.randrange(first, len(placed))
    return _Made([*placed[:place], copied, *placed[place:]])


def _in_place_of(last: Placed, candidates: Sequence[Placed], task: _Task) -> Placed | None:
    """Of some sentences, drawn at random, one that is about as long as the last."""
    drawn = task.random.sample(candidates, min(_COMPARED, len(candidates)))
    return closest(drawn, lambda one: len(one.text), len(last.text), task.random)


def _names(task: _Task) -> _Made | None:
    pairs = [pair for pair in combinations(exchangeable(task.piece), 2) if pair[0].fits(pair[1])]
    if not pairs:
        return None
    first, second = task.random.choice(pairs)
    # The exchange begins after a sentence with one of the names, and before one in which it makes a difference.
    begin = task.random.randint(min(first.sentences[0], second.sentences[0]) + 1, first.last_without(second))
    with_names = {*first.sentences, *second.sentences}
    changed = {place: exchanged(task.piece, place, first.text, second.text) for place in with_names if place >= begin}
    return _Made([_reworded(one, changed.get(number)) for number, one in enumerate(task.piece.placed())])


def _connective(task: _Task) -> _Made | None:
    placed = task.piece.placed()
    places = [(number, one) for number in range(1, len(placed)) for one in task.piece.changes[number]]
    if not places:
        return None
    number, change = task.random.choice(places)
    text = placed[number].text
    placed[number] = _reworded(placed[number], text[: change.start] + change.opposite + text[change.end :])
    return _Made(placed)


def _reworded(placed: Placed, text: str | None) -> Placed:
    return placed if text is None or text == placed.text else Placed(text, placed.origin, changed=True)


_FROM_TEXTS, _FROM_SENTENCES = PLACES, (*PLACES, SIMILAR)
KINDS = {
    kind.name: kind
    for kind in (
        Kind("shuffle", "all sentences in random order", 3, _shuffle),
        Kind("blocks", "cut into three to five blocks, in another order", 6, _blocks),
        Kind("swap", "two neighbouring sentences exchanged", 3, _swap),
        Kind("move", "one sentence at least two places away from its own", 4, _move),
        Kind("replace-one", "one sentence replaced by a foreign one", 3, _replace(1), _FROM_SENTENCES),
        Kind("replace-two", "two sentences replaced by foreign ones", 5, _replace(2), _FROM_SENTENCES),
        Kind("insert", "a foreign sentence inserted, the last sentence left out", 4, _insert, _FROM_SENTENCES),
        Kind("join", "the beginning of the text, then a later part of another one", 5, _join, _FROM_TEXTS),
        Kind("interleave", "sentences of the text and of another one, alternating", 6, _interleave, _FROM_TEXTS),
        Kind("drop", "a sentence left out inside the text; the original lacks its last", 5, _drop),
        Kind("repeat", "a sentence repeated, at once or later, the last one left out", 4, _repeat),
        Kind("names", "two names exchanged, from some sentence on", 4, _names),
        Kind("connective", "a connective replaced by one of the opposite sense", 3, _connective),
    )
}
