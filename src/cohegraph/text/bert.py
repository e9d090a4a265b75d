"""BERT in plain torch, for the encoder that comes as a package: ready in a fraction of a second.

Nothing of this is new: it is the forward pass of Devlin et al. (2019), equal to that of transformers, whose import
alone takes longer than a text does.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor
from torch.nn import functional

from cohegraph.text.int8 import LARGEST, SHIFT, SMALLEST, product_of, quantised
from cohegraph.text.networks import Precision

# Which whole numbers: vectors of another kind are not these.
_ARITHMETIC = "+int8.2"
# How many tokens are read at once: so many that products are fast, and so few that they stay in the processor's cache.
_ROWS = 256


@dataclass(frozen=True)
class _Linear:
    weight: Tensor
    bias: Tensor

    def __call__(self, inputs: Tensor) -> Tensor:
        return functional.linear(inputs, self.weight, self.bias)


class _Int8Linear:
    """The same with whole numbers: weights have a scale for every output, inputs a scale and a middle for every token.

    A sum of products of whole numbers is exact, so that no digit depends on how the work is divided. The middle between
    the least and the largest input is taken out and its products are added again: states of BERT lie to one side of
    zero, the more so after GELU, and half of the whole numbers would hardly be used.
    """

    def __init__(self, exact: _Linear) -> None:
        weight, scale = quantised(exact.weight)
        self._product = product_of(weight, scale)
        self._of_ones = weight.sum(dim=1) * scale
        self._bias = exact.bias

    def __call__(self, inputs: Tensor) -> Tensor:
        rows = inputs.reshape(-1, inputs.shape[-1])
        most, least = rows.amax(dim=1, keepdim=True), rows.amin(dim=1, keepdim=True)
        middle = (most + least) / 2
        scale = ((most - least) / (2 * LARGEST)).clamp_(min=SMALLEST)
        # In place where it can be: passes over memory take as long as the products.
        whole = (rows - middle).mul_(1 / scale).round_()
        outputs = self._product(whole.to(torch.int8).view(torch.uint8).bitwise_xor_(SHIFT))
        torch.addcmul(self._bias, outputs, scale, out=outputs)
        return outputs.addcmul_(middle, self._of_ones).view(*inputs.shape[:-1], -1)


@dataclass(frozen=True)
class _Norm:
    weight: Tensor
    bias: Tensor
    epsilon: float

    def __call__(self, inputs: Tensor) -> Tensor:
        return functional.layer_norm(inputs, self.weight.shape, self.weight, self.bias, self.epsilon)


@dataclass(frozen=True)
class _Layer:
    """Self-attention and a feed-forward network, each added to its input and normalised."""

    heads: int
    attend: Callable[[Tensor], Tensor]  # queries, keys and values, one below the other
    attended: Callable[[Tensor], Tensor]
    attended_norm: _Norm
    widen: Callable[[Tensor], Tensor]
    narrow: Callable[[Tensor], Tensor]
    norm: _Norm

    def __call__(self, states: Tensor, mask: Tensor | None) -> Tensor:
        """The states of texts, (texts, tokens, dimensions), after the layer."""
        return self._fed(states, self._mixed(self.attend(states), mask))

    def packed(self, states: Tensor, groups: Sequence[tuple[int, int]]) -> Tensor:
        """The same of texts one below the other, (all tokens, dimensions): so many texts of so many tokens each."""
        split = self.attend(states).split([texts * tokens for texts, tokens in groups])
        mixed = [
            self._mixed(one.view(texts, tokens, -1), None).view(texts * tokens, -1)
            for one, (texts, tokens) in zip(split, groups, strict=True)
        ]
        return self._fed(states, torch.cat(mixed))

    def _mixed(self, attend: Tensor, mask: Tensor | None) -> Tensor:
        texts, tokens, length = attend.shape
        split = attend.view(texts, tokens, 3, self.heads, length // 3 // self.heads)
        queries, keys, values = split.permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(queries, keys, values, attn_mask=mask)
        return mixed.transpose(1, 2).reshape(texts, tokens, length // 3)

    def _fed(self, states: Tensor, mixed: Tensor) -> Tensor:
        states = self.attended_norm(states + self.attended(mixed))
        return self.norm(states + self.narrow(functional.gelu(self.widen(states))))


class BertNetwork:
    """A BERT encoder from a folder with ``config.json`` and ``model.safetensors``.

    Unless ``precision`` is ``float32`` it multiplies whole numbers: faster on processors that have instructions for it,
    with vectors close to the exact ones. Raises ValueError where the folder holds another network.
    """

    def __init__(self, folder: Path, device: str = "cpu", precision: Precision = "float32") -> None:
        config = json.loads((folder / "config.json").read_text("utf-8"))
        _check(config)
        self.arithmetic = "" if precision == "float32" else _ARITHMETIC
        self.rows = _ROWS if precision != "float32" and device == "cpu" else 0
        self.dimensions = int(config["hidden_size"])
        self.longest = int(config["max_position_embeddings"])
        self._device = device
        weights = load_file(folder / "model.safetensors", device=device)
        epsilon = float(config["layer_norm_eps"])

        def linear(*names: str) -> _Linear | _Int8Linear:
            exact = _Linear(*(torch.cat([weights[f"{name}.{kind}"] for name in names]) for kind in ("weight", "bias")))
            return exact if precision == "float32" else _Int8Linear(exact)

        def norm(name: str) -> _Norm:
            return _Norm(weights[f"{name}.weight"].clone(), weights[f"{name}.bias"].clone(), epsilon)

        # The file is opened once more for these, so that the weights of layers, which are copied, take no memory.
        self._words = load_file(folder / "model.safetensors", device=device)["embeddings.word_embeddings.weight"]
        # A text by itself is all of the first type, so that its vector can stand in those of the places.
        kind = weights["embeddings.token_type_embeddings.weight"][0]
        self._places = weights["embeddings.position_embeddings.weight"] + kind
        self._norm = norm("embeddings.LayerNorm")
        self._layers = [
            _Layer(
                heads=int(config["num_attention_heads"]),
                attend=linear(*(f"{layer}.attention.self.{name}" for name in ("query", "key", "value"))),
                attended=linear(f"{layer}.attention.output.dense"),
                attended_norm=norm(f"{layer}.attention.output.LayerNorm"),
                widen=linear(f"{layer}.intermediate.dense"),
                narrow=linear(f"{layer}.output.dense"),
                norm=norm(f"{layer}.output.LayerNorm"),
            )
            for layer in (f"encoder.layer.{number}" for number in range(int(config["num_hidden_layers"])))
        ]

    def states(self, windows: Sequence[Sequence[int]]) -> list[Tensor]:
        """The last states of the tokens of every window, (tokens, dimensions) each."""
        return self._packed(windows) if self.rows else self._padded(windows)

    def _packed(self, windows: Sequence[Sequence[int]]) -> list[Tensor]:
        """One below the other: with whole numbers the states of a token are the same in any company."""
        lengths = [len(window) for window in windows]
        groups = [(len(list(alike)), tokens) for tokens, alike in groupby(lengths)]
        ids = torch.tensor([token for window in windows for token in window])
        places = torch.cat([torch.arange(length) for length in lengths])
        with torch.inference_mode():
            states = self._norm(self._words[ids] + self._places[places])
            for layer in self._layers:
                states = layer.packed(states, groups)
        return list(states.split(lengths))

    def _padded(self, windows: Sequence[Sequence[int]]) -> list[Tensor]:
        lengths = [len(window) for window in windows]
        longest = max(lengths)
        ids = torch.zeros((len(windows), longest), dtype=torch.long)
        for row, window in zip(ids, windows, strict=True):
            row[: len(window)] = torch.tensor(window)
        mask = None
        if min(lengths) < longest:
            mask = (torch.arange(longest) < torch.tensor(lengths)[:, None])[:, None, None].to(self._device)
        with torch.inference_mode():
            states = self._norm(self._words[ids.to(self._device)] + self._places[:longest])
            for layer in self._layers:
                states = layer(states, mask)
        return [found[:length] for found, length in zip(states, lengths, strict=True)]


def _check(config: dict[str, Any]) -> None:
    expected = {"model_type": "bert", "hidden_act": "gelu", "position_embedding_type": "absolute", "is_decoder": False}
    for name, value in expected.items():
        if config.get(name, value) != value:
            raise ValueError(f"a BERT encoder has {name} = {value!r}, not {config[name]!r}")
