"""Llama in plain torch: a causal language model that reads a text once and says how well each token was foreseen.

The forward pass is that of Touvron et al. (2023), equal to that of transformers. With whole numbers (int8) it is
several times as fast on a CPU, and its losses are nearly the same: inputs have a scale for every token, weights one for
every output, and channels that are large in some tokens are evened out beforehand (SmoothQuant, Xiao et al. 2023). The
first token has states of another size than all the others. It is always the same token, so that its states are computed
exactly, once.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import accumulate

import torch
from torch import Tensor

from cohegraph.text.int8 import quantised_in_pairs
from cohegraph.text.llama_layers import FloatHead, FloatLayer, Int8Head, Int8Layer, Layer
from cohegraph.text.llama_shape import LlamaShape, Weights
from cohegraph.text.threads import one_thread, side_by_side

# How far the size of inputs is moved into the weights, from 0 to 1; less for those of the narrow layer.
_MOVED, _MOVED_NARROW = 0.7, 0.6
_LEAST = 1e-5


@dataclass(frozen=True)
class Past:
    """What was read before: keys and values of every layer, (heads, tokens, head size) each, and the last states."""

    keys: Sequence[Tensor]
    values: Sequence[Tensor]
    states: Tensor

    def __len__(self) -> int:
        return len(self.states)

    def first(self, tokens: int) -> "Past":
        """What was read of the first tokens alone."""
        keys, values = ([one[:, :tokens] for one in part] for part in (self.keys, self.values))
        return Past(keys, values, self.states[:tokens])


@dataclass(frozen=True)
class Run:
    """What one pass gives.

    Shapes: ``states`` (tokens, width) for each layer that was asked for; ``losses`` (tokens,): minus the logarithm of
    the probability of every token; ``expected`` (tokens,): what that was expected to be (the entropy); both are 0 for a
    token that nothing stands before, and empty where they were not asked for; ``past`` if it was to be kept.
    """

    states: dict[int, Tensor]
    losses: Tensor
    expected: Tensor
    past: Past | None = None

    def first(self, tokens: int) -> "Run":
        """The same of the first tokens alone."""
        states = {layer: one[:tokens] for layer, one in self.states.items()}
        past = self.past.first(tokens) if self.past else None
        return Run(states, self.losses[:tokens], self.expected[:tokens], past)

    def then(self, later: "Run") -> "Run":
        """The same with a run that followed on it."""
        states = {layer: torch.cat([one, later.states[layer]]) for layer, one in self.states.items()}
        losses, expected = torch.cat([self.losses, later.losses]), torch.cat([self.expected, later.expected])
        return Run(states, losses, expected, later.past)


class LlamaNetwork:
    """A Llama model, in float32 or in whole numbers.

    Args:
        shape: Its figures.
        weights: What `float_weights` or `int8_weights` gave.
    """

    def __init__(self, shape: LlamaShape, weights: Weights) -> None:
        self.shape = shape
        # The states of the first token before and after every layer, where they are known.
        self._first = weights.get("first")
        of_layer = FloatLayer if self._first is None else Int8Layer
        self._layers: list[Layer] = [
            of_layer(shape, _of_layer(weights, number)) for number in range(shape.num_hidden_layers)
        ]
        self._head: FloatHead | Int8Head
        self._embed: Callable[[Tensor], Tensor]
        if self._first is None:
            self._head = FloatHead(weights.get("head", weights["embed"]), weights["norm"], shape.rms_norm_eps)
            self._embed = weights["embed"].__getitem__
        else:
            self._head = Int8Head(weights["head.weight"], weights["head.scale"], weights["norm"], shape.rms_norm_eps)
            self._embed = _embedding(weights)
        self._turns = _turns(shape)
        self._is_prepared = False

    def prepare(self) -> None:
        """Prepare all weights with all threads; otherwise each is prepared when it is first used."""
        if not self._is_prepared:
            products = [product for part in (*self._layers, self._head) for product in part.products]
            side_by_side(lambda product: product.prepare(), products)
            self._is_prepared = True

    def read(
        self,
        tokens: Sequence[int],
        layers: Sequence[int] = (),
        *,
        losses: bool = True,
        past: Past | None = None,
        pieces: Sequence[int] = (),
        keep: bool = False,
    ) -> Run:
        """Read the tokens of a text, of which the first is that of the beginning.

        Args:
            tokens: All tokens; with ``past``, those that follow on it.
            layers: Whose states are wanted, after 1 layer, 2 layers and so on.
            losses: Whether the losses are wanted; without them no more layers are run than must be.
            past: What was read before.
            pieces: How many tokens each of several texts has, which are read at once; each follows on ``past`` and
                knows nothing of the others.
            keep: Whether to keep what later tokens need to follow on these.
        """
        # Sums of floats depend, in their last digits, on the number of threads; those of whole numbers do not.
        with torch.inference_mode(), one_thread() if self._first is None else nullcontext():
            return self._read(tokens, layers, losses=losses, past=past, pieces=pieces, keep=keep)

    def _read(
        self,
        tokens: Sequence[int],
        layers: Sequence[int],
        *,
        losses: bool,
        past: Past | None,
        pieces: Sequence[int],
        keep: bool,
    ) -> Run:
        ids = torch.tensor(tokens, dtype=torch.long)
        begin = len(past) if past else 0
        places, mask = _places(len(ids), begin, pieces)
        turns = self._turns[0][places], self._turns[1][places]
        x = self._embed(ids)
        states, kept = dict[int, Tensor](), list[tuple[Tensor, Tensor]]()
        last = len(self._layers) if losses or keep else max(layers, default=0)
        for number, layer in enumerate(self._layers[:last]):
            x, *known = layer(x, turns, mask, (past.keys[number], past.values[number]) if past else None)
            if self._first is not None and not begin:
                x[0] = self._first[number + 1]
            if keep:
                kept.append((known[0], known[1]))
            if number + 1 in layers:
                states[number + 1] = x.clone()
        found = self._losses(x, ids, past, pieces) if losses else torch.zeros((0, 2))
        run = Run(states, found[:, 0], found[:, 1])
        if not keep:
            return run
        all_states = torch.cat([past.states, x]) if past else x
        return replace(run, past=Past([keys for keys, _ in kept], [values for _, values in kept], all_states))

    def _losses(self, x: Tensor, ids: Tensor, past: Past | None, pieces: Sequence[int]) -> Tensor:
        """What stands before a token foresees it: the token before, or the last one of the past."""
        firsts = [0, *accumulate(pieces[:-1])]
        before = torch.cat([x[:1], x[:-1]])
        if past is not None:
            before[firsts] = past.states[-1]
        found = self._head.losses(before, ids)
        if past is None:
            found[firsts] = 0
        return found


def _places(tokens: int, begin: int, pieces: Sequence[int]) -> tuple[Tensor, Tensor | None]:
    """The position of every token, and which tokens it may look at, (tokens, begin + tokens), unless all before it."""
    if not pieces:
        places = torch.arange(begin, begin + tokens)
        return places, torch.ones((tokens, begin + tokens), dtype=torch.bool).tril(begin) if begin else None
    piece = torch.repeat_interleave(torch.arange(len(pieces)), torch.tensor(pieces))
    own = (piece[:, None] == piece).tril()
    places = begin + torch.cat([torch.arange(length) for length in pieces])
    return places, torch.cat([torch.ones((tokens, begin), dtype=torch.bool), own], dim=1)


def _turns(shape: LlamaShape) -> tuple[Tensor, Tensor]:
    """Cosines (positions, 1, head size) and sines (positions, 1, half of it) of rotary positions."""
    size = shape.head_dim
    speeds = 1.0 / (shape.rope_theta ** (torch.arange(0, size, 2, dtype=torch.int64).float() / size))
    angles = torch.outer(torch.arange(shape.longest).float(), speeds)[:, None]
    return torch.cat([angles.cos()] * 2, dim=2), angles.sin()


def _embedding(weights: Weights) -> Callable[[Tensor], Tensor]:
    """The states of tokens before the first layer; without weights of its own it has those of the head."""
    if "embed" in weights:
        return weights["embed"].__getitem__
    # A copy: the weight may be a part of a file, which would stay in memory with it.
    whole, scale = weights["head.weight"].clone(), weights["head.scale"]
    return lambda ids: whole[ids].float().mul_(scale[ids, None])


def _of_layer(weights: Weights, number: int) -> Weights:
    begin = f"layers.{number}."
    return {name.removeprefix(begin): one for name, one in weights.items() if name.startswith(begin)}


def int8_weights(shape: LlamaShape, weights: Weights, texts: Iterable[Sequence[int]]) -> dict[str, Tensor]:
    """The same weights as whole numbers.

    Args:
        shape: The figures of the model.
        weights: What `float_weights` gave.
        texts: The tokens of a few ordinary texts, which show how large the inputs of layers are.
    """
    watched = [_WatchedLayer(shape, _of_layer(weights, number)) for number in range(shape.num_hidden_layers)]
    network = LlamaNetwork(shape, weights)
    network._layers = list[Layer](watched)
    for tokens in texts:
        network.read(tokens, losses=False, layers=[shape.num_hidden_layers])
    of_first = network.read([shape.bos_token_id], range(1, shape.num_hidden_layers + 1), losses=False).states
    first = torch.cat([weights["embed"][[shape.bos_token_id]], *of_first.values()])
    found = {"norm": weights["norm"], "first": first}
    if "head" in weights:  # otherwise tokens are read and foreseen with the same weights
        found["embed"] = weights["embed"]
    _put(found, "head", weights.get("head", weights["embed"]))
    for number, seen in enumerate(watched):
        name, layer = f"layers.{number}.", _of_layer(weights, number)
        gate, up = layer["widen"].chunk(2)
        of_attend, of_feed = (
            _factors(seen.largest["attend"], layer["attend"]),
            _factors(seen.largest["feed"], layer["widen"]),
        )
        of_narrow = _factors(seen.largest["narrow"], layer["narrow"], _MOVED_NARROW)
        found[name + "attend_norm"] = layer["attend_norm"] / of_attend
        found[name + "feed_norm"] = layer["feed_norm"] / of_feed
        found[name + "first"] = seen.attend(first[[number]], first=True)[0, -2 * shape.keys :].clone()
        _put(found, name + "attend", layer["attend"] * of_attend)
        _put(found, name + "attended", layer["attended"])
        _put(found, name + "widen", torch.cat([gate, up / of_narrow[:, None]]) * of_feed)
        _put(found, name + "narrow", layer["narrow"] * of_narrow)
    return found


def _put(weights: dict[str, Tensor], name: str, exact: Tensor) -> None:
    whole, scale = quantised_in_pairs(exact)
    weights |= {f"{name}.weight": whole.to(torch.int8), f"{name}.scale": scale}


def _factors(largest: Tensor, weight: Tensor, moved: float = _MOVED) -> Tensor:
    """By what inputs are divided and weights multiplied, so that no channel is much larger than the others."""
    return largest.clamp(min=_LEAST) ** moved / weight.abs().amax(dim=0).clamp(min=_LEAST) ** (1 - moved)


class _WatchedLayer(FloatLayer):
    """A layer that remembers how large its inputs became, without those of the first token."""

    def __init__(self, shape: LlamaShape, weights: Weights) -> None:
        super().__init__(shape, weights)
        self.largest: dict[str, Tensor] = {}

    def attend(self, x: Tensor, *, first: bool) -> Tensor:
        self._watch("attend", self.normed(x, "attend_norm"))
        return super().attend(x, first=first)

    def widened(self, normed: Tensor) -> Tensor:
        found = super().widened(normed)
        self._watch("feed", normed)
        self._watch("narrow", found)
        return found

    def _watch(self, name: str, inputs: Tensor) -> None:
        if len(inputs) > 1:
            largest = inputs[1:].abs().amax(dim=0)
            self.largest[name] = torch.maximum(self.largest.get(name, largest), largest)
