"""Llama in plain torch: a causal language model that reads a text once and says how well each token was foreseen.

The forward pass is that of Touvron et al. (2023), equal to that of transformers. With whole numbers (int8) it is
several times as fast on a CPU, and its losses are nearly the same: inputs have a scale for every token, weights one for
every output, and channels that are large in some tokens are evened out beforehand (SmoothQuant, Xiao et al. 2023). The
first token has states of another size than all the others. It is always the same token, so that its states are computed
exactly, once.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import accumulate
from typing import Any, Self

import torch
from torch import Tensor
from torch.nn import functional

from cohegraph.text.int8 import LARGEST, SHIFT, SMALLEST, product_of, quantised

Weights = Mapping[str, Tensor]

# How many tokens are compared with the whole vocabulary at once.
_ROWS = 64
# How far the size of inputs is moved into the weights, from 0 to 1.
_MOVED = 0.7
_LEAST = 1e-5
# More than any figure of a model that fits into memory.
_TOO_LARGE = 1e12
# How many positions a model must have, and the most that are used.
_FEWEST_POSITIONS, _POSITIONS = 16, 8_192
_NEEDED = (
    *("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads"),
    *("vocab_size", "max_position_embeddings", "rms_norm_eps"),
)


@dataclass(frozen=True)
class LlamaShape:
    """The figures of a Llama model, as ``config.json`` has them."""

    hidden_size: int
    intermediate_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    vocab_size: int
    max_position_embeddings: int
    rms_norm_eps: float
    rope_theta: float
    bos_token_id: int

    def __post_init__(self) -> None:
        figures = asdict(self)
        for name, figure in figures.items():
            if not 0 < figure < _TOO_LARGE and (name != "bos_token_id" or figure != 0):
                raise ValueError(f"{name} cannot be {figure}")
        if self.max_position_embeddings < _FEWEST_POSITIONS:
            raise ValueError(f"{self.max_position_embeddings} positions are too few")
        if self.head_dim % 2:
            raise ValueError(f"head_dim cannot be odd ({self.head_dim})")
        if self.num_attention_heads % self.num_key_value_heads:
            raise ValueError(f"{self.num_attention_heads} heads cannot share {self.num_key_value_heads} keys")
        if self.bos_token_id >= self.vocab_size:
            raise ValueError(f"there is no token {self.bos_token_id}, which bos_token_id names")

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> Self:
        """The figures of a configuration; raises ValueError where it is of another network."""
        expected = {"model_type": "llama", "hidden_act": "silu", "attention_bias": False, "mlp_bias": False}
        for name, value in expected.items():
            if config.get(name, value) != value:
                raise ValueError(f"a Llama model has {name} = {value!r}, not {config[name]!r}")
        # Newer configurations keep what concerns rotary positions in one place.
        rope = config.get("rope_parameters") or config.get("rope_scaling") or {}
        if not isinstance(rope, Mapping):
            raise ValueError("rope_parameters is not an object")
        if missing := [name for name in _NEEDED if not isinstance(config.get(name), int | float)]:
            raise ValueError(f"{missing[0]} is missing")
        if rope.get("rope_type", rope.get("type", "default")) != "default":
            raise ValueError("rotary positions that are scaled are not supported")
        heads, width = int(config["num_attention_heads"]), int(config["hidden_size"])
        bos = config.get("bos_token_id")
        if type(bos) is not int:
            raise ValueError("a text needs a first token, and bos_token_id names none")
        return cls(
            hidden_size=width,
            intermediate_size=int(config["intermediate_size"]),
            num_hidden_layers=int(config["num_hidden_layers"]),
            num_attention_heads=heads,
            num_key_value_heads=int(config.get("num_key_value_heads") or heads),
            head_dim=int(config.get("head_dim") or width // heads),
            vocab_size=int(config["vocab_size"]),
            max_position_embeddings=int(config["max_position_embeddings"]),
            rms_norm_eps=float(config["rms_norm_eps"]),
            rope_theta=float(rope.get("rope_theta") or config.get("rope_theta") or 10_000),
            bos_token_id=bos,
        )

    @property
    def longest(self) -> int:
        """How many tokens can be read at once."""
        return min(self.max_position_embeddings, _POSITIONS)

    @property
    def keys(self) -> int:
        """The length of all keys of a token, and of all its values."""
        return self.num_key_value_heads * self.head_dim

    def to_json(self) -> str:
        """The figures as a configuration."""
        return json.dumps({"model_type": "llama", **asdict(self)}, indent=1)


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
        of_layer = _FloatLayer if self._first is None else _Int8Layer
        self._layers: list[_Layer] = [
            of_layer(shape, _of_layer(weights, number)) for number in range(shape.num_hidden_layers)
        ]
        self._embed: Callable[[Tensor], Tensor]
        self._head: _FloatHead | _Int8Head
        if self._first is None:
            self._head = _FloatHead(weights.get("head", weights["embed"]), weights["norm"], shape.rms_norm_eps)
            self._embed = weights["embed"].__getitem__
        else:
            head = _Int8Head(weights["head.weight"], weights["head.scale"], weights["norm"], shape.rms_norm_eps)
            self._head, self._embed = head, weights["embed"].__getitem__ if "embed" in weights else head.embed
        self._turns = _turns(shape)

    @torch.inference_mode()
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


class _Layer(ABC):
    """Causal self-attention and a gated feed-forward network, each added to its input."""

    def __init__(self, shape: LlamaShape) -> None:
        self._shape = shape

    def __call__(
        self, x: Tensor, turns: tuple[Tensor, Tensor], mask: Tensor | None, before: tuple[Tensor, Tensor] | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The states after the layer, and the keys and values of all tokens so far."""
        shape = self._shape
        split = self.attend(x, first=before is None).view(len(x), -1, shape.head_dim).transpose(0, 1)
        turning = shape.num_attention_heads + shape.num_key_value_heads
        cosine, sine = turns
        turned = split[:turning] * cosine
        turned.addcmul_(split[:turning].roll(shape.head_dim // 2, -1), sine)
        queries, keys = turned[: shape.num_attention_heads], turned[shape.num_attention_heads :]
        values = split[turning:]
        if before is not None:
            keys, values = torch.cat([before[0], keys], dim=1), torch.cat([before[1], values], dim=1)
        mixed = functional.scaled_dot_product_attention(
            queries[None], keys[None], values[None], attn_mask=mask, is_causal=mask is None, enable_gqa=True
        )
        x = self.attended(x, mixed[0].transpose(0, 1).reshape(len(x), -1))
        return self.feed(x), keys, values

    @abstractmethod
    def attend(self, x: Tensor, *, first: bool) -> Tensor:
        """Queries, keys and values of every token, one after the other."""

    @abstractmethod
    def attended(self, x: Tensor, mixed: Tensor) -> Tensor:
        """States with what attention has mixed."""

    @abstractmethod
    def feed(self, x: Tensor) -> Tensor:
        """States with the feed-forward network's."""


class _FloatLayer(_Layer):
    def __init__(self, shape: LlamaShape, weights: Weights) -> None:
        super().__init__(shape)
        self._weights = weights

    def attend(self, x: Tensor, *, first: bool) -> Tensor:
        return self._normed(x, "attend_norm") @ self._weights["attend"].T

    def attended(self, x: Tensor, mixed: Tensor) -> Tensor:
        return x + mixed @ self._weights["attended"].T

    def feed(self, x: Tensor) -> Tensor:
        gate, up = (self._normed(x, "feed_norm") @ self._weights["widen"].T).chunk(2, dim=1)
        return x + (functional.silu(gate) * up) @ self._weights["narrow"].T

    def _normed(self, x: Tensor, norm: str) -> Tensor:
        return _rms(x, self._shape.rms_norm_eps).mul(x).mul_(self._weights[norm])


class _Int8Layer(_Layer):
    def __init__(self, shape: LlamaShape, weights: Weights) -> None:
        super().__init__(shape)
        self._attend_norm, self._feed_norm = weights["attend_norm"], weights["feed_norm"]
        self._first = weights["first"]
        self._attend, self._attended, self._widen, self._narrow = (
            product_of(weights[f"{name}.weight"], weights[f"{name}.scale"])
            for name in ("attend", "attended", "widen", "narrow")
        )

    def attend(self, x: Tensor, *, first: bool) -> Tensor:
        whole, scale = _whole_normed(x, self._attend_norm, self._shape.rms_norm_eps)
        found = self._attend(whole).mul_(scale)
        if first:
            found[0, -len(self._first) :] = self._first
        return found

    def attended(self, x: Tensor, mixed: Tensor) -> Tensor:
        whole, scale = _whole(mixed)
        return x.addcmul_(self._attended(whole), scale)

    def feed(self, x: Tensor) -> Tensor:
        whole, scale = _whole_normed(x, self._feed_norm, self._shape.rms_norm_eps)
        gate, up = self._widen(whole).chunk(2, dim=1)
        # The scale of ``up`` is a factor of all that follows, and comes in at the end.
        whole, inner = _whole(functional.silu(gate * scale).mul_(up))
        return x.addcmul_(self._narrow(whole), inner.mul_(scale))


@dataclass(frozen=True)
class _FloatHead:
    weight: Tensor
    norm: Tensor
    epsilon: float

    def losses(self, x: Tensor, targets: Tensor) -> Tensor:
        normed = _rms(x, self.epsilon).mul(x).mul_(self.norm)
        return _losses(lambda rows: normed[rows] @ self.weight.T, targets)


class _Int8Head:
    def __init__(self, weight: Tensor, scale: Tensor, norm: Tensor, epsilon: float) -> None:
        self._weight, self._scale, self._norm, self._epsilon = weight, scale, norm, epsilon
        self._product = product_of(weight, scale)

    def embed(self, ids: Tensor) -> Tensor:
        return self._weight[ids].float().mul_(self._scale[ids, None])

    def losses(self, x: Tensor, targets: Tensor) -> Tensor:
        whole, scale = _whole_normed(x, self._norm, self._epsilon)
        return _losses(lambda rows: self._product(whole[rows]).mul_(scale[rows]), targets)


def _losses(logits: Callable[[slice], Tensor], targets: Tensor) -> Tensor:
    """Minus the logarithm of the probability of every target, and its mean over the vocabulary, (targets, 2)."""
    found = [torch.zeros((0, 2))]
    for begin in range(0, len(targets), _ROWS):
        of_rows, wanted = logits(slice(begin, begin + _ROWS)), targets[begin : begin + _ROWS, None]
        largest = of_rows.amax(dim=1, keepdim=True)
        odds = (of_rows - largest).exp_()
        total = odds.sum(dim=1)
        level = total.log() + largest[:, 0]
        chosen, mean = of_rows.gather(1, wanted)[:, 0], odds.mul_(of_rows).sum(dim=1) / total
        found.append(torch.stack([level - chosen, level - mean], dim=1))
    return torch.cat(found)


def _rms(x: Tensor, epsilon: float) -> Tensor:
    """What every row is multiplied with so that the mean of its squares is 1."""
    norm: Tensor = torch.linalg.vector_norm(x, dim=1, keepdim=True)
    return norm.square_().div_(x.shape[1]).add_(epsilon).rsqrt_()


def _whole(x: Tensor) -> tuple[Tensor, Tensor]:
    """Rows as whole numbers, shifted as products want them, and their scales."""
    # Several times as fast as the norm with this meaning.
    largest = torch.maximum(x.amax(dim=1, keepdim=True), x.amin(dim=1, keepdim=True).neg_())
    scale = largest.div_(LARGEST).clamp_(min=SMALLEST)
    return (x * scale.reciprocal()).round_().to(torch.int8).view(torch.uint8).bitwise_xor_(SHIFT), scale


def _whole_normed(x: Tensor, norm: Tensor, epsilon: float) -> tuple[Tensor, Tensor]:
    """The same of rows that are normalised; the size of a row is part of its scale."""
    whole, scale = _whole(x * norm)
    return whole, scale.mul_(_rms(x, epsilon))


def _turns(shape: LlamaShape) -> tuple[Tensor, Tensor]:
    """Cosines and signed sines of rotary positions, (positions, head size) each."""
    size = shape.head_dim
    speeds = 1.0 / (shape.rope_theta ** (torch.arange(0, size, 2, dtype=torch.int64).float() / size))
    angles = torch.outer(torch.arange(shape.longest).float(), speeds)
    return torch.cat([angles.cos()] * 2, dim=1), torch.cat([-angles.sin(), angles.sin()], dim=1)


def _of_layer(weights: Weights, number: int) -> Weights:
    begin = f"layers.{number}."
    return {name.removeprefix(begin): one for name, one in weights.items() if name.startswith(begin)}


def checkpoint_shapes(shape: LlamaShape, *, head: bool) -> Iterator[tuple[str, tuple[int, ...]]]:
    """The names that transformers gives to the weights of a checkpoint, and their shapes."""
    width, inner, heads = shape.hidden_size, shape.intermediate_size, shape.num_attention_heads * shape.head_dim
    yield "model.embed_tokens.weight", (shape.vocab_size, width)
    yield "model.norm.weight", (width,)
    if head:
        yield "lm_head.weight", (shape.vocab_size, width)
    for number in range(shape.num_hidden_layers):
        layer = f"model.layers.{number}."
        yield f"{layer}input_layernorm.weight", (width,)
        yield f"{layer}post_attention_layernorm.weight", (width,)
        yield f"{layer}self_attn.q_proj.weight", (heads, width)
        yield f"{layer}self_attn.k_proj.weight", (shape.keys, width)
        yield f"{layer}self_attn.v_proj.weight", (shape.keys, width)
        yield f"{layer}self_attn.o_proj.weight", (width, heads)
        yield f"{layer}mlp.gate_proj.weight", (inner, width)
        yield f"{layer}mlp.up_proj.weight", (inner, width)
        yield f"{layer}mlp.down_proj.weight", (width, inner)


def float_weights(shape: LlamaShape, named: Weights) -> dict[str, Tensor]:
    """The weights of a checkpoint, by the names that transformers gives them, as `LlamaNetwork` takes them."""

    def joined(number: int, *names: str) -> Tensor:
        return torch.cat([named[f"model.layers.{number}.{name}_proj.weight"].float() for name in names])

    weights = {"embed": named["model.embed_tokens.weight"].float(), "norm": named["model.norm.weight"].float()}
    if "lm_head.weight" in named:
        weights["head"] = named["lm_head.weight"].float()
    for number in range(shape.num_hidden_layers):
        layer = f"layers.{number}."
        weights[layer + "attend_norm"] = named[f"model.{layer}input_layernorm.weight"].float()
        weights[layer + "feed_norm"] = named[f"model.{layer}post_attention_layernorm.weight"].float()
        weights[layer + "attend"] = joined(number, "self_attn.q", "self_attn.k", "self_attn.v")
        weights[layer + "attended"] = joined(number, "self_attn.o")
        weights[layer + "widen"] = joined(number, "mlp.gate", "mlp.up")
        weights[layer + "narrow"] = joined(number, "mlp.down")
    return weights


def int8_weights(shape: LlamaShape, weights: Weights, texts: Iterable[Sequence[int]]) -> dict[str, Tensor]:
    """The same weights as whole numbers.

    Args:
        shape: The figures of the model.
        weights: What `float_weights` gave.
        texts: The tokens of a few ordinary texts, which show how large the inputs of layers are.
    """
    watched = [_WatchedLayer(shape, _of_layer(weights, number)) for number in range(shape.num_hidden_layers)]
    network = LlamaNetwork(shape, weights)
    network._layers = list[_Layer](watched)
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
        of_narrow = _factors(seen.largest["narrow"], layer["narrow"])
        found[name + "attend_norm"] = layer["attend_norm"] / of_attend
        found[name + "feed_norm"] = layer["feed_norm"] / of_feed
        found[name + "first"] = seen.attend(first[[number]], first=True)[0, -2 * shape.keys :].clone()
        _put(found, name + "attend", layer["attend"] * of_attend)
        _put(found, name + "attended", layer["attended"])
        _put(found, name + "widen", torch.cat([gate, up / of_narrow[:, None]]) * of_feed)
        _put(found, name + "narrow", layer["narrow"] * of_narrow)
    return found


def _put(weights: dict[str, Tensor], name: str, exact: Tensor) -> None:
    whole, scale = quantised(exact)
    weights |= {f"{name}.weight": whole.to(torch.int8), f"{name}.scale": scale}


def _factors(largest: Tensor, weight: Tensor) -> Tensor:
    """By what inputs are divided and weights multiplied, so that no channel is much larger than the others."""
    return largest.clamp(min=_LEAST) ** _MOVED / weight.abs().amax(dim=0).clamp(min=_LEAST) ** (1 - _MOVED)


class _WatchedLayer(_FloatLayer):
    """A layer that remembers how large its inputs became, without those of the first token."""

    def __init__(self, shape: LlamaShape, weights: Weights) -> None:
        super().__init__(shape, weights)
        self.largest: dict[str, Tensor] = {}

    def attend(self, x: Tensor, *, first: bool) -> Tensor:
        self._watch("attend", self._normed(x, "attend_norm"))
        return super().attend(x, first=first)

    def feed(self, x: Tensor) -> Tensor:
        normed = self._normed(x, "feed_norm")
        gate, up = (normed @ self._weights["widen"].T).chunk(2, dim=1)
        self._watch("feed", normed)
        self._watch("narrow", functional.silu(gate) * up)
        return super().feed(x)

    def _watch(self, name: str, inputs: Tensor) -> None:
        if len(inputs) > 1:
            largest = inputs[1:].abs().amax(dim=0)
            self.largest[name] = torch.maximum(self.largest.get(name, largest), largest)
