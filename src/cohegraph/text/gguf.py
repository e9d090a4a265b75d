"""GGUF files: the figures, the tokenizer and the quantised weights of a language model in one file.

Only what converting a Llama model takes is read: numbers, strings and lists of them, and weights as float32, float16,
or in blocks of 32 with 8 bits (Q8_0) or 4 bits (Q4_0, Q4_1) a number.
"""

import struct
from collections.abc import Callable
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from cohegraph.errors import DamagedFileError

Floats = npt.NDArray[np.float32]

_BLOCK = 32
_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _LIST = 8, 9
_ALIGNMENT = "general.alignment"


class GGUFFile:
    """An open GGUF file.

    Attributes:
        figures: Everything that the file says about the model, by name.
        shapes: The shape of every array, by name.
    """

    def __init__(self, file: Path) -> None:
        self._bytes = np.memmap(file, dtype=np.uint8, mode="r")
        self._place = 0
        try:
            self._read_head()
        except (struct.error, UnicodeDecodeError, KeyError, MemoryError, ValueError) as error:
            raise DamagedFileError(f"{file} is not a whole GGUF file ({error}): download it again.") from None

    def _read_head(self) -> None:
        if self._bytes[:4].tobytes() != b"GGUF":
            raise ValueError("it does not begin with GGUF")
        self._place = 4
        version, arrays, figures = self._number("I"), self._number("Q"), self._number("Q")
        if version not in (2, 3):
            raise ValueError(f"version {version} is unknown")
        self.figures: dict[str, Any] = {}
        for _ in range(figures):
            name = self._string()
            self.figures[name] = self._value(self._number("I"))
        self.shapes: dict[str, tuple[int, ...]] = {}
        self._kinds: dict[str, int] = {}
        offsets = {}
        for _ in range(arrays):
            name = self._string()
            # The fastest dimension comes first.
            self.shapes[name] = tuple(self._number("Q") for _ in range(self._number("I")))[::-1]
            self._kinds[name], offsets[name] = self._number("I"), self._number("Q")
        alignment = int(self.figures.get(_ALIGNMENT, 32))
        begin = -(-self._place // alignment) * alignment
        self._offsets = {name: begin + offset for name, offset in offsets.items()}
        for name in self.shapes:
            self._raw(name)

    def array(self, name: str) -> Floats:
        """An array as float32."""
        return _KINDS[self._kinds[name]][1](self._raw(name)).reshape(self.shapes[name])

    def _raw(self, name: str) -> npt.NDArray[np.uint8]:
        """The bytes of an array, a row for each block."""
        if self._kinds[name] not in _KINDS:
            raise ValueError(f"{name} is quantised in a way that is not supported")
        size, block = _KINDS[self._kinds[name]][0], _BLOCK if self._kinds[name] > 1 else 1
        blocks, rest = divmod(prod(self.shapes[name]), block)
        start = self._offsets[name]
        if rest or start + blocks * size > len(self._bytes):
            raise ValueError(f"{name} is cut")
        return self._bytes[start : start + blocks * size].reshape(blocks, size)

    def _number(self, form: str) -> Any:
        size = struct.calcsize(form)
        (value,) = struct.unpack("<" + form, self._bytes[self._place : self._place + size].tobytes())
        self._place += size
        return value

    def _string(self) -> str:
        size = self._number("Q")
        text = self._bytes[self._place : self._place + size].tobytes()
        if len(text) != size:
            raise ValueError("it is cut")
        self._place += size
        return text.decode("utf-8")

    def _value(self, kind: int) -> Any:
        if kind == _STRING:
            return self._string()
        if kind == _LIST:
            inner, size = self._number("I"), self._number("Q")
            return [self._value(inner) for _ in range(size)]
        return self._number(_NUMBERS[kind])


def _half(blocks: npt.NDArray[np.uint8], place: int) -> Floats:
    """The 16-bit float at a place of every block, (blocks, 1)."""
    return np.ascontiguousarray(blocks[:, place : place + 2]).view(np.float16).astype(np.float32)


def _nibbles(blocks: npt.NDArray[np.uint8], place: int) -> Floats:
    """The 32 numbers of 4 bits from a place of every block on: the lower halves of 16 bytes, then the upper ones."""
    packed = blocks[:, place : place + 16]
    return np.concatenate([packed & 15, packed >> 4], axis=1).astype(np.float32)


# Bytes of a block, and what makes floats of blocks.
_KINDS: dict[int, tuple[int, Callable[[npt.NDArray[np.uint8]], Floats]]] = {
    0: (4, lambda blocks: np.ascontiguousarray(blocks).view(np.float32)),
    1: (2, lambda blocks: _half(blocks, 0)),
    2: (18, lambda blocks: _half(blocks, 0) * (_nibbles(blocks, 2) - 8)),
    3: (20, lambda blocks: _half(blocks, 0) * _nibbles(blocks, 4) + _half(blocks, 2)),
    8: (34, lambda blocks: _half(blocks, 0) * np.ascontiguousarray(blocks[:, 2:]).view(np.int8)),
}
