"""GGUF files: the figures, the tokenizer and the quantised weights of a language model in one file.

Only what converting a Llama model takes is read: numbers, strings and lists of them, and weights as float32, float16,
or in blocks of 32 with 8 bits (Q8_0) or 4 bits (Q4_0, Q4_1) a number. Nothing that a file says is believed before it is
checked against the size of the file.
"""

import mmap
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
_ALIGNMENT, _LARGEST_ALIGNMENT = "general.alignment", 1 << 16
_MOST_DIMENSIONS = 4
_LENGTH = struct.Struct("<Q")


class GGUFFile:
    """An open GGUF file. Raises DamagedFileError where it is not a whole one.

    Attributes:
        figures: Everything that the file says about the model, by name.
        shapes: The shape of every array, by name.
    """

    def __init__(self, file: Path) -> None:
        try:
            with file.open("rb") as stream:
                self._bytes = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
            self._place = 0
            self._read_head()
        except (struct.error, ValueError) as error:
            raise DamagedFileError(f"{file} is not a whole GGUF file ({error}): download it again.") from None

    def _read_head(self) -> None:
        if self._bytes[:4] != b"GGUF":
            raise ValueError("it does not begin with GGUF")
        self._place = 4
        version, arrays, figures = self._number("I"), self._number("Q"), self._number("Q")
        if version not in (2, 3):
            raise ValueError(f"version {version} is unknown")
        self.figures: dict[str, Any] = {}
        for _ in range(figures):
            name = self._name(self.figures)
            self.figures[name] = self._value(self._number("I"))
        self.shapes: dict[str, tuple[int, ...]] = {}
        self._kinds: dict[str, int] = {}
        offsets = {}
        for _ in range(arrays):
            name = self._name(self.shapes)
            # The fastest dimension comes first.
            self.shapes[name] = self._numbers("Q", self._number("I"), most=_MOST_DIMENSIONS)[::-1]
            self._kinds[name], offsets[name] = self._number("I"), self._number("Q")
        alignment = self.figures.get(_ALIGNMENT, 32)
        if type(alignment) is not int or not 0 < alignment <= _LARGEST_ALIGNMENT:
            raise ValueError("its alignment is not a number of bytes")
        begin = -(-self._place // alignment) * alignment
        self._offsets = {name: begin + offset for name, offset in offsets.items()}
        # Arrays that share bytes would make much of little.
        if sum(self._size(name) for name in self.shapes) > len(self._bytes):
            raise ValueError("its arrays are larger than the file")

    def array(self, name: str) -> Floats:
        """An array as float32."""
        start, size = self._offsets[name], _KINDS[self._kinds[name]][0]
        blocks = np.frombuffer(self._bytes, np.uint8, self._size(name), start).reshape(-1, size)
        return _KINDS[self._kinds[name]][1](blocks).reshape(self.shapes[name])

    def _size(self, name: str) -> int:
        """How many bytes an array has; all of them are there."""
        kind = self._kinds[name]
        if kind not in _KINDS:
            raise ValueError(f"{name} is quantised in a way that is not supported")
        # Blocks do not go beyond a row.
        block, shape = _BLOCK if kind > 1 else 1, self.shapes[name]
        if (shape[-1] if shape else 1) % block:
            raise ValueError(f"{name} has rows of {shape[-1]} numbers")
        size = prod(shape) // block * _KINDS[kind][0]
        if self._offsets[name] + size > len(self._bytes):
            raise ValueError(f"{name} is cut")
        return size

    def _number(self, form: str) -> Any:
        return self._numbers(form, 1)[0]

    def _numbers(self, form: str, count: int, most: int | None = None) -> tuple[Any, ...]:
        size = count * struct.calcsize(form)
        if (most is not None and count > most) or size > len(self._bytes) - self._place:
            raise ValueError("it is cut")
        found = struct.unpack_from(f"<{count}{form}", self._bytes, self._place)
        self._place += size
        return found

    def _strings(self, count: int) -> list[str]:
        content, place, length, found = self._bytes, self._place, _LENGTH.size, list[str]()
        for _ in range(count):
            (size,) = _LENGTH.unpack_from(content, place)
            place += length + size
            text = content[place - size : place]
            if len(text) != size:
                raise ValueError("it is cut")
            found.append(text.decode("utf-8"))
        self._place = place
        return found

    def _name(self, known: dict[str, Any]) -> str:
        (name,) = self._strings(1)
        if name in known:
            raise ValueError("it says the same thing twice")
        return name

    def _value(self, kind: int) -> Any:
        if kind == _LIST:
            inner, size = self._number("I"), self._number("Q")
            return self._strings(size) if inner == _STRING else list(self._numbers(_form(inner), size))
        return self._strings(1)[0] if kind == _STRING else self._number(_form(kind))


def _form(kind: int) -> str:
    if kind not in _NUMBERS:
        raise ValueError(f"there is a value of the unknown kind {kind}")
    return _NUMBERS[kind]


def _half(blocks: npt.NDArray[np.uint8], place: int) -> Floats:
    """The 16-bit float at a place of every block, (blocks, 1)."""
    return np.ascontiguousarray(blocks[:, place : place + 2]).view(np.float16).astype(np.float32)


def _nibbles(blocks: npt.NDArray[np.uint8], place: int) -> Floats:
    """The 32 numbers of 4 bits from a place of every block on: the lower halves of 16 bytes, then the upper ones."""
    packed = blocks[:, place : place + 16]
    return np.concatenate([packed & 15, packed >> 4], axis=1).astype(np.float32)


# Bytes of a block, and what makes floats of blocks.
_KINDS: dict[int, tuple[int, Callable[[npt.NDArray[np.uint8]], Floats]]] = {
    0: (4, lambda blocks: blocks.reshape(-1).view(np.float32)),
    1: (2, lambda blocks: _half(blocks, 0)),
    2: (18, lambda blocks: _half(blocks, 0) * (_nibbles(blocks, 2) - 8)),
    3: (20, lambda blocks: _half(blocks, 0) * _nibbles(blocks, 4) + _half(blocks, 2)),
    8: (34, lambda blocks: _half(blocks, 0) * np.ascontiguousarray(blocks[:, 2:]).view(np.int8)),
}
