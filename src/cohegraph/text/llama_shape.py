"""The figures of a Llama model, and its weights as checkpoints name them."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

import torch
from torch import Tensor

Weights = Mapping[str, Tensor]

# More than any figure of a model that fits into memory.
_TOO_LARGE = 1e12
# How many positions a model must have, and the most that are used.
_FEWEST_POSITIONS, _POSITIONS = 16, 8_192
_NEEDED = (
    *("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads"),
    *("vocab_size", "max_position_embeddings", "rms_norm_eps"),
)
_WHOLE = (*_NEEDED[:-1], "num_key_value_heads", "head_dim")


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
        if fractions := [name for name in _WHOLE if config.get(name) and config[name] % 1]:
            raise ValueError(f"{fractions[0]} is not a whole number")
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
