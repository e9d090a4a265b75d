"""Products of whole numbers: a byte for every input and weight, exact sums, the same digits however work is divided."""

import time
from collections.abc import Callable
from functools import cache
from threading import Lock

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from cohegraph.text.threads import one_thread

LARGEST, SMALLEST, SHIFT = 127.0, 1e-30, 128
# The most that two neighbouring weights of one sign may have together, so that their products with the largest inputs
# fit into 16 bits.
_PAIR = 128
# How much wider the steps of such weights may be: with twice the width, no two neighbours have more than that.
_WIDER = (1.0, 1.1, 1.2, 1.3, 1.4, 1.55, 1.75, 2.0)
_ROWS = 64
# Rows are filled up to a multiple of so many: oneDNN prepares, and keeps, a program for every number of rows.
_STEP = 16
# Inputs, too: where they are no multiple of four, oneDNN pairs other neighbours without VNNI.
_INPUT_STEP = 4
# Tokens, inputs and outputs of the product that is tried, and how often.
_TRIED, _TRIALS = (64, 384, 1536), 5
# Bytes are multiplied unless that takes so many times as long as with floats. Times vary on a busy machine, and bytes
# need a quarter of the memory; where the processor has no fast way for them, they take many times as long.
_SLOWER = 2


def quantised(weight: Tensor) -> tuple[Tensor, Tensor]:
    """Weights (outputs, inputs) as whole numbers from -127 to 127, still as floats, and the scale of every output."""
    scale = (weight.abs().amax(dim=1) / LARGEST).clamp(min=SMALLEST)
    return (weight / scale[:, None]).round(), scale


def quantised_in_pairs(weight: Tensor) -> tuple[Tensor, Tensor]:
    """The same for processors without VNNI, which add the products of two neighbours in 16 bits.

    Weights are as large as such sums allow. Of a few scales, each output has the one with the least squared error.
    """
    parts = [_in_pairs(rows) for rows in weight.split(_ROWS)]
    return torch.cat([whole for whole, _ in parts]), torch.cat([scale for _, scale in parts])


def _in_pairs(weight: Tensor) -> tuple[Tensor, Tensor]:
    least = (weight.abs().amax(dim=1, keepdim=True) / LARGEST).clamp(min=SMALLEST)
    scales = [least * wider for wider in _WIDER]
    wholes = [_cut_in_pairs((weight / scale).round_()) for scale in scales]
    errors = [(whole * scale - weight).square_().sum(dim=1) for whole, scale in zip(wholes, scales, strict=True)]
    best, rows = torch.stack(errors).argmin(dim=0), torch.arange(len(weight))
    return torch.stack(wholes)[best, rows], torch.stack(scales)[best, rows, 0]


def _cut_in_pairs(whole: Tensor) -> Tensor:
    """Make two neighbours of one sign smaller, each by half of what is too much."""
    first, second = whole[:, 0 : whole.shape[1] - 1 : 2], whole[:, 1::2]
    excess = (first + second).abs_().sub_(_PAIR).clamp_(min=0).mul_(first * second > 0)
    half = (excess / 2).floor_()
    first.sub_(half * first.sign())
    second.sub_((excess - half) * second.sign())
    return whole


def product_of(weight: Tensor, scale: Tensor, *, in_pairs: bool = False) -> "Product":
    """What multiplies inputs with quantised weights, in the way that is fastest here.

    Args:
        weight: Whole numbers, (outputs, inputs).
        scale: The scale of every output.
        in_pairs: Whether `quantised_in_pairs` made them.
    """
    in_int8 = weight.device.type == "cpu" and _int8_products_pay(in_pairs)
    return _Int8Product(weight, scale) if in_int8 else _FloatProduct(weight, scale)


class _Int8Product:
    """Whole inputs times whole weights times the weights' scale, by oneDNN."""

    def __init__(self, weight: Tensor, scale: Tensor) -> None:
        self._missing = -weight.shape[1] % _INPUT_STEP
        weight = functional.pad(weight, (0, self._missing)) if self._missing else weight
        self._weight: Tensor | None = weight.to(torch.int8)
        self._packed: Tensor | None = None
        self._packing = Lock()
        self._scale = scale
        self._no_shifts = torch.zeros(len(scale), dtype=torch.int32)
        self._bias = _without_shift(weight, scale)

    def prepare(self) -> Tensor:
        """The weights in the order that the processor wants, which takes longer than all else that loading does."""
        with self._packing:
            if self._weight is not None:
                self._packed, self._weight = torch.ops.onednn.qlinear_prepack(self._weight, None), None
        assert self._packed is not None
        return self._packed

    def __call__(self, shifted: Tensor) -> Tensor:
        """The product of inputs, which are shifted by 128 to lie between 1 and 255."""
        rows = len(shifted)
        outputs: Tensor = torch.ops.onednn.qlinear_pointwise(
            *(functional.pad(shifted, (0, self._missing, 0, -rows % _STEP)), 1.0, 0),
            *(self.prepare() if self._packed is None else self._packed, self._scale, self._no_shifts, self._bias),
            *(1.0, 0, torch.float32, "none", [], ""),
        )
        return outputs[:rows]


class _FloatProduct:
    """The same as floats, in the same steps, so that no digit differs."""

    def __init__(self, weight: Tensor, scale: Tensor) -> None:
        self._weight = weight.T.float().contiguous()
        self._scale = scale
        self._bias = _without_shift(weight, scale)

    def prepare(self) -> Tensor:
        """The weights as they are."""
        return self._weight

    def __call__(self, shifted: Tensor) -> Tensor:
        return (shifted.float() @ self._weight).mul_(self._scale).add_(self._bias)


Product = _FloatProduct | _Int8Product


def _without_shift(weight: Tensor, scale: Tensor) -> Tensor:
    """What takes the shift of the inputs out of the products again."""
    # By numpy, for which no threads wait for each other; both sums are exact.
    kind = np.int32 if weight.dtype == torch.int8 else np.float32
    sums = torch.from_numpy(weight.cpu().numpy().sum(axis=1, dtype=kind))
    return -SHIFT * sums.to(scale) * scale


@cache
def _int8_products_pay(in_pairs: bool = False) -> bool:
    """Whether this processor multiplies bytes correctly, and about as fast as floats, or faster.

    Those without instructions for it (VNNI) add pairs of products in 16 bits and cut what does not fit, unless weights
    were made for that, and some have no fast way at all. There whole numbers are multiplied as floats, whose sums are
    exact up to 2²⁴, far beyond those of states and weights.
    """
    tokens, inputs, outputs = _TRIED
    weight, scale = torch.full((outputs, inputs), LARGEST), torch.ones(outputs)
    if in_pairs:
        weight[:, 1::2] = _PAIR - LARGEST
        weight[1::2] = weight[::2].flip(1)
        weight[outputs // 3 :] = _PAIR // 2
        weight[outputs // 2 :] *= -1
    shifted = torch.full((tokens, inputs), 255, dtype=torch.uint8)
    try:
        in_bytes, as_floats = _Int8Product(weight, scale), _FloatProduct(weight, scale)
        if not torch.equal(in_bytes(shifted), as_floats(shifted)):
            return False
    except (AttributeError, RuntimeError):  # torch without oneDNN
        return False
    with one_thread():
        return _seconds(lambda: in_bytes(shifted)) < _SLOWER * _seconds(lambda: as_floats(shifted))


def _seconds(run: Callable[[], Tensor]) -> float:
    """The shortest of a few runs."""
    times = []
    for _ in range(_TRIALS):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)
