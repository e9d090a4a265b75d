"""BERT in plain torch, for the encoder that comes as a package: ready in a fraction of a second.

Nothing of this is new: it is the forward pass of Devlin et al. (2019), equal to that of transformers, whose import
alone takes longer than a text does.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor
from torch.nn import functional

from cohegraph.text.networks import Precision

_LARGEST, _SMALLEST = 127.0, 1e-30
# Tokens, inputs and outputs of the product that is tried, and how often.
_TRIED, _TRIALS = (64, 384, 1536), 5


@dataclass(frozen=True)
class _Linear:
    weight: Tensor
    bias: Tensor

    def __call__(self, inputs: Tensor) -> Tensor:
        return functional.linear(inputs, self.weight, self.bias)


class _Int8Linear:
    """The same with whole numbers: weights have a scale for every output, inputs one for every token.

    A sum of products of whole numbers is exact, so that no digit depends on how the work is divided.
    """

    def __init__(self, exact: _Linear) -> None:
        self._scale = (exact.weight.abs().amax(dim=1) / _LARGEST).clamp(min=_SMALLEST)
        weight = (exact.weight / self._scale[:, None]).round().T.contiguous()
        self._in_int8 = weight.device.type == "cpu" and _int8_products_pay()
        self._weight = weight.to(torch.int8) if self._in_int8 else weight
        self._bias = exact.bias

    def __call__(self, inputs: Tensor) -> Tensor:
        rows = inputs.reshape(-1, inputs.shape[-1])
        largest = torch.maximum(rows.amax(dim=1, keepdim=True), -rows.amin(dim=1, keepdim=True))
        scale = (largest / _LARGEST).clamp_(min=_SMALLEST)
        whole = (rows / scale).round_()
        # In place where it can be: passes over memory take as long as the products.
        if self._in_int8:
            outputs = torch._int_mm(whole.to(torch.int8), self._weight).to(rows.dtype)
        else:
            outputs = whole @ self._weight
        torch.addcmul(self._bias, outputs.mul_(scale), self._scale, out=outputs)
        return outputs.view(*inputs.shape[:-1], -1)


@cache
def _int8_products_pay() -> bool:
    """Whether this processor multiplies small whole numbers right, and faster than floats.

    Those without instructions for it (VNNI) add pairs of products in 16 bits and cut what does not fit, and some have
    no fast way at all. There whole numbers are multiplied as floats, which hold such sums exactly: no digit differs.
    """
    inputs = torch.full(_TRIED[:2], int(_LARGEST), dtype=torch.int8)
    weights = torch.full(_TRIED[1:], int(_LARGEST), dtype=torch.int8)
    if not (torch._int_mm(inputs, weights) == _TRIED[1] * int(_LARGEST) ** 2).all():
        return False
    as_floats = inputs.float(), weights.float()
    return _seconds(lambda: torch._int_mm(inputs, weights)) < _seconds(lambda: torch.mm(*as_floats))


def _seconds(run: Callable[[], Tensor]) -> float:
    """The shortest of a few runs."""
    times = []
    for _ in range(_TRIALS):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


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
        texts, tokens, dimensions = states.shape
        split = self.attend(states).view(texts, tokens, 3, self.heads, dimensions // self.heads)
        queries, keys, values = split.permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(queries, keys, values, attn_mask=mask)
        states = self.attended_norm(states + self.attended(mixed.transpose(1, 2).reshape(texts, tokens, dimensions)))
        return self.norm(states + self.narrow(functional.gelu(self.widen(states))))


class BertNetwork:
    """A BERT encoder from a folder with ``config.json`` and ``model.safetensors``.

    Unless ``precision`` is ``float32`` it multiplies whole numbers: faster on processors that have instructions for it,
    with vectors close to the exact ones. Raises ValueError where the folder holds another network.
    """

    def __init__(self, folder: Path, device: str = "cpu", precision: Precision = "float32") -> None:
        config = json.loads((folder / "config.json").read_text("utf-8"))
        _check(config)
        self.dimensions = int(config["hidden_size"])
        self.longest = int(config["max_position_embeddings"])
        self._device = device
        weights = load_file(folder / "model.safetensors", device=device)
        epsilon = float(config["layer_norm_eps"])

        def linear(*names: str) -> _Linear | _Int8Linear:
            exact = _Linear(*(torch.cat([weights[f"{name}.{kind}"] for name in names]) for kind in ("weight", "bias")))
            return exact if precision == "float32" else _Int8Linear(exact)

        def norm(name: str) -> _Norm:
            return _Norm(weights[f"{name}.weight"], weights[f"{name}.bias"], epsilon)

        self._words = weights["embeddings.word_embeddings.weight"]
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
