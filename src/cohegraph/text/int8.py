"""Products of whole numbers: a byte for every input and weight, exact sums, the same digits however work is divided."""

import time
from collections.abc import Callable
from functools import cache
from threading import Lock

import torch
from torch import Tensor
from torch.nn import functional

LARGEST, SMALLEST, SHIFT = 127.0, 1e-30, 128
_ROWS = 64
# Rows are filled up to a multiple of so many: oneDNN prepares, and keeps, a program for every number of rows.
_STEP = 16
# Tokens, inputs and outputs of the product that is tried, and how often.
_TRIED, _TRIALS = (64, 384, 1536), 5


def quantised(weight: Tensor) -> tuple[Tensor, Tensor]:
    """Weights (outputs, inputs) as whole numbers from -127 to 127, still as floats, and the scale of every output."""
    scale = (weight.abs().amax(dim=1) / LARGEST).clamp(min=SMALLEST)
    return (weight / scale[:, None]).round(), scale


def product_of(weight: Tensor, scale: Tensor) -> "Product":
    """What multiplies inputs with quantised weights, in the way that is fastest here."""
    in_int8 = weight.device.type == "cpu" and _int8_products_pay()
    return _Int8Product(weight, scale) if in_int8 else _FloatProduct(weight, scale)


class _Int8Product:
    """Whole inputs times whole weights times the weights' scale, by oneDNN."""

    def __init__(self, weight: Tensor, scale: Tensor) -> None:
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
            *(functional.pad(shifted, (0, 0, 0, -rows % _STEP)), 1.0, 0),
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
    # Bytes are added faster as whole numbers, and floats as floats; both sums are exact. A few rows at a time: bytes
    # are copied before they are added.
    kind = torch.int32 if weight.dtype == torch.int8 else torch.float32
    sums = torch.cat([rows.sum(dim=1, dtype=kind) for rows in weight.split(_ROWS)])
    return -SHIFT * sums.float() * scale


@cache
def _int8_products_pay() -> bool:
    """Whether this processor multiplies bytes correctly, and faster than floats.

    Those without instructions for it (VNNI) add pairs of products in 16 bits and cut what does not fit, and some have
    no fast way at all. There whole numbers are multiplied as floats, whose sums are exact up to 2²⁴, far beyond those
    of states and weights.
    """
    tokens, inputs, outputs = _TRIED
    weight, scale = torch.full((outputs, inputs), LARGEST), torch.ones(outputs)
    shifted = torch.full((tokens, inputs), 255, dtype=torch.uint8)
    try:
        in_bytes, as_floats = _Int8Product(weight, scale), _FloatProduct(weight, scale)
        if not torch.equal(in_bytes(shifted), as_floats(shifted)):
            return False
    except (AttributeError, RuntimeError):  # torch without oneDNN
        return False
    return _seconds(lambda: in_bytes(shifted)) < _seconds(lambda: as_floats(shifted))


def _seconds(run: Callable[[], Tensor]) -> float:
    """The shortest of a few runs."""
    times = []
    for _ in range(_TRIALS):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)
