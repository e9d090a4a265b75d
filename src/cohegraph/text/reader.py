"""Readers: small causal language models that read a text along, and say of each sentence how well it was foreseen."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from cohegraph.errors import CohegraphError
from cohegraph.strings import well_formed
from cohegraph.text.document import Document
from cohegraph.text.threads import side_by_side

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from torch import Tensor

    from cohegraph.text.llama import LlamaNetwork, Past, Run

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]

# What is said of the losses of a sentence's tokens: their mean, that of the first few, and the largest; and what loss
# was to be expected, on average, and of the first few.
FIGURES = ("loss", "first_loss", "worst_loss", "expected_loss", "first_expected_loss")
_FIRST_TOKENS = 4
# How many tokens are read at once, and how many of these are read again, as context, with the next ones.
_WINDOW, _CONTEXT = 2_048, 512
_BLANK_LINE = re.compile(r"\n\s*\n")
_LEAST = 1e-6
# Later sentences that are read at once after a sentence. Fixed: what is read together may change the last digits.
_LATER = 7
_STATE = re.compile(r"(mean|first|last)-([1-9]\d*)")


class State(NamedTuple):
    """Which states of a sentence's tokens are kept: after so many layers, of its first or last ones, or their mean."""

    of: Literal["mean", "first", "last"]
    layer: int

    @classmethod
    def named(cls, name: str) -> State:
        """A state by its name, such as ``mean-18``."""
        found = _STATE.fullmatch(name)
        if found is None:
            raise CohegraphError(
                f"'{name}' is not a state of a reader: write mean, first or last and a layer, such as mean-18.",
                code="bad-setting",
            )
        return cls(found[1], int(found[2]))  # type: ignore[arg-type]


@dataclass(frozen=True)
class Reading:
    """What a reader found in the sentences of a document.

    Shapes, with S sentences: ``tokens`` (S,); ``losses`` (S, len(FIGURES)), in nats; ``states`` (S, kept states,
    width). A sentence without a token has zeros.
    """

    tokens: Ints
    losses: Floats
    states: Floats


class Reader(Protocol):
    """Reads documents."""

    @property
    def identity(self) -> str:
        """Name and content of the weights, and how they are multiplied."""

    @property
    def width(self) -> int:
        """Length of a state."""

    @property
    def layers(self) -> int:
        """How many layers there are."""

    def read(self, documents: Sequence[Document], states: Sequence[State] = ()) -> list[Reading]:
        """What it finds in every document."""

    def read_versions(self, documents: Sequence[Document], states: Sequence[State] = ()) -> list[Reading]:
        """The same of versions of one document: what they have in common with the first one is read once."""

    def alone(self, document: Document) -> Floats:
        """The mean loss of each sentence that is read by itself, (sentences,)."""

    def after(self, document: Document, source: int, targets: Sequence[int]) -> Floats:
        """The mean loss of each target sentence that is read after the source sentence alone, (targets,)."""


class LlamaReader:
    """A Llama model as a reader.

    Args:
        network: The model.
        tokenizer: Its tokenizer.
        identity: Name and content of both.
        window: How many tokens are read at once at most. Longer documents are read in windows that overlap.
    """

    def __init__(self, network: LlamaNetwork, tokenizer: Tokenizer, identity: str, *, window: int = _WINDOW) -> None:
        self._network, self._tokenizer, self.identity = network, tokenizer, identity
        self._bos = network.shape.bos_token_id
        self._window = min(window, network.shape.longest)
        self.width, self.layers = network.shape.hidden_size, network.shape.num_hidden_layers
        # The last document and its tokens: pairs of sentences are read one after the other.
        self._last: tuple[Document, tuple[Ints, Ints]] | None = None
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()

    def read(self, documents: Sequence[Document], states: Sequence[State] = ()) -> list[Reading]:
        """What it finds in every document.

        Each document is read by one thread, so that no digit depends on how many there are.
        """
        self._network.prepare()
        # The longest first: nobody waits for it at the end.
        order = sorted(range(len(documents)), key=lambda number: -len(documents[number].text))
        found = side_by_side(lambda number: self._read(documents[number], states), order)
        return [reading for _, reading in sorted(zip(order, found, strict=True), key=lambda one: one[0])]

    def read_versions(self, documents: Sequence[Document], states: Sequence[State] = ()) -> list[Reading]:
        """The same of versions of one document: what they begin with in common with the first one is read once."""
        tokens = [self._tokens(document) for document in documents]
        if not documents or len(tokens[0][0]) >= self._window:
            return self.read(documents, states)
        layers, found = _layers(states), list[Reading]()
        first = [self._bos, *tokens[0][0].tolist()]
        run = self._network.read(first, layers, keep=True)
        for document, (ids, owner) in zip(documents, tokens, strict=True):
            own = [self._bos, *ids.tolist()]
            if len(own) > self._window:
                found.append(self._read(document, states))
                continue
            known = _alike(first, own)
            read = run.first(known)
            if known < len(own):
                read = read.then(self._network.read(own[known:], layers, past=read.past))
            of_tokens = {layer: _evened(_array(read.states[layer])[1:]) for layer in layers}
            found.append(self._reading(document, owner, _losses(read)[1:], of_tokens, states))
        return found

    def alone(self, document: Document) -> Floats:
        """The mean loss of each sentence that is read by itself, (sentences,); of a very long one, of its beginning."""
        past = self._network.read([self._bos], losses=False, keep=True).past
        ids, owner = self._tokens_once(document)
        pieces = [ids[owner == number] for number in range(len(document.sentences))]
        return self._losses(pieces, past)

    def after(self, document: Document, source: int, targets: Sequence[int]) -> Floats:
        """The mean loss of each target sentence that is read after the source sentence alone, (targets,).

        Of a very long source the end is read, and of a very long target the beginning.
        """
        ids, owner = self._tokens_once(document)
        before = ids[owner == source][-(self._window // 2 - 1) :].tolist()
        past = self._network.read([self._bos, *before], losses=False, keep=True).past
        return self._losses([ids[owner == number] for number in targets], past)

    def _losses(self, pieces: Sequence[Ints], past: Past | None) -> Floats:
        """The mean loss of each piece after what was read before; 0 for one without tokens."""
        found = np.zeros(len(pieces), dtype=np.float32)
        pieces = [piece[: self._window // 2] for piece in pieces]
        for numbers in _together([len(piece) for piece in pieces], self._window // 2):
            lengths = [len(pieces[number]) for number in numbers]
            tokens = np.concatenate([pieces[number] for number in numbers]).tolist()
            losses = _array(self._network.read(tokens, past=past, pieces=lengths).losses)
            found[numbers] = np.add.reduceat(losses, np.cumsum([0, *lengths[:-1]])) / lengths
        return found

    def _read(self, document: Document, states: Sequence[State]) -> Reading:
        ids, owner = self._tokens(document)
        layers = _layers(states)
        losses = np.zeros((len(ids), 2), dtype=np.float32)
        of_tokens = {layer: np.zeros((len(ids), self.width), dtype=np.float32) for layer in layers}
        for begin, new, end in _windows(len(ids), self._window - 1):
            run = self._network.read([self._bos, *ids[begin:end].tolist()], layers)
            skipped = 1 + new - begin
            losses[new:end] = _losses(run)[skipped:]
            for layer in layers:
                of_tokens[layer][new:end] = _evened(_array(run.states[layer])[skipped:])
        return self._reading(document, owner, losses, of_tokens, states)

    def _reading(
        self,
        document: Document,
        owner: Ints,
        losses: Floats,
        of_tokens: Mapping[int, Floats],
        states: Sequence[State],
    ) -> Reading:
        """What is found in tokens, by sentence."""
        sentences = len(document.sentences)
        figures = np.zeros((sentences, len(FIGURES)), dtype=np.float32)
        kept = np.zeros((sentences, len(states), self.width), dtype=np.float32)
        for number in np.unique(owner[owner >= 0]):
            own = np.flatnonzero(owner == number)
            loss, expected = losses[own].T
            first = slice(_FIRST_TOKENS)
            figures[number] = loss.mean(), loss[first].mean(), loss.max(), expected.mean(), expected[first].mean()
            for column, (of, layer) in enumerate(states):
                chosen = {"mean": own, "first": own[:_FIRST_TOKENS], "last": own[-1:]}[of]
                kept[number, column] = of_tokens[layer][chosen].mean(axis=0)
        return Reading(np.bincount(owner[owner >= 0], minlength=sentences), figures, kept)

    def _tokens_once(self, document: Document) -> tuple[Ints, Ints]:
        last = self._last
        if last is None or last[0] is not document:
            self._last = last = document, self._tokens(document)
        return last[1]

    def _tokens(self, document: Document) -> tuple[Ints, Ints]:
        """The tokens of a document, and the sentence of each, or -1 for those between sentences.

        White space is even: a space between words and sentences, a blank line between paragraphs, however the lines of
        the text are broken.
        """
        text, starts, ends = "", list[int](), list[int]()
        sentences = document.sentences
        for sentence, following in pairwise((*sentences, None)):
            if sentence is None:
                break
            starts.append(len(text))
            text += " ".join(well_formed(sentence.text).split())
            ends.append(len(text))
            if following is not None:
                gap = document.text[sentence.end : following.start]
                text += "\n\n" if _BLANK_LINE.search(gap) else " " if gap else ""
        encoded = self._tokenizer.encode(text, add_special_tokens=False)
        # The last character: many tokens begin with the space before a word.
        places = np.array([max(end - 1, start) for start, end in encoded.offsets], dtype=np.int64)
        owner = np.searchsorted(ends, places, side="right")
        within = places >= np.array([*starts, len(text)])[owner]
        return np.array(encoded.ids, dtype=np.int64), np.where(within, owner, -1)


def exact_gains(reader: Reader, document: Document, pairs: Iterable[tuple[int, int]]) -> Floats:
    """How much easier sentences are to foresee after an earlier one, (sentences, sentences).

    The gain of u and v is the mean loss per token of v alone, minus the same after u, in nats. Each pair is read.

    Args:
        reader: Reads them.
        document: A parsed document.
        pairs: The pairs, as numbers of an earlier and a later sentence. All others are not a number.
    """
    size = len(document.sentences)
    targets = defaultdict[tuple[int, int], list[int]](list)
    for source, target in sorted(pairs):
        targets[source, (target - source - 1) // _LATER].append(target)
    found = np.full((size, size), np.nan, dtype=np.float32)
    if targets:
        alone = reader.alone(document)
        for (source, part), asked in targets.items():
            begin = source + 1 + part * _LATER
            after = reader.after(document, source, range(begin, min(begin + _LATER, size)))
            found[source, asked] = alone[asked] - after[np.array(asked) - begin]
    return found


def _layers(states: Sequence[State]) -> list[int]:
    return sorted({state.layer for state in states})


def _alike(first: Sequence[int], second: Sequence[int]) -> int:
    """With how many equal tokens two texts begin."""
    differing = (place for place, (one, other) in enumerate(zip(first, second, strict=False)) if one != other)
    return next(differing, min(len(first), len(second)))


def _windows(tokens: int, size: int) -> list[tuple[int, int, int]]:
    """Windows of a long text: where each begins, from where on it is new, and where it ends."""
    windows, new = list[tuple[int, int, int]](), 0
    while new < tokens:
        begin = max(0, new - min(_CONTEXT, size // 2))
        if not windows:
            begin = 0
        end = min(begin + size, tokens)
        windows.append((begin, new, end))
        new = end
    return windows


def _together(lengths: Sequence[int], most: int) -> list[list[int]]:
    """Pieces that are read at once: not many tokens in all, and none of no tokens."""
    found, size = list[list[int]](), most
    for number, length in enumerate(lengths):
        if length and size + length > most:
            found.append([])
            size = 0
        if length:
            found[-1].append(number)
            size += length
    return found


def _evened(states: Floats) -> Floats:
    """States of which the mean square is 1: some tokens have states many times as large as others."""
    found: Floats = states / np.sqrt(np.square(states).mean(axis=1, keepdims=True) + _LEAST)
    return found


def _losses(run: Run) -> Floats:
    """The losses of tokens and what was expected of them, (tokens, 2)."""
    return np.stack([_array(run.losses), _array(run.expected)], axis=1)


def _array(tensor: Tensor) -> Floats:
    found: Floats = tensor.numpy()
    return found
