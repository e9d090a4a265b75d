"""Document vectors: the mean of a pretrained encoder's last states over all real tokens of a text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np
import numpy.typing as npt

from cohegraph.errors import CohegraphError
from cohegraph.strings import well_formed
from cohegraph.text.networks import Precision, load_pretrained
from cohegraph.text.threads import side_by_side

if TYPE_CHECKING:
    from tokenizers import Encoding

Overflow = Literal["windows", "cut"]

_TEXTS_AT_ONCE = 256
_ACCELERATOR_BATCH = 32
_DEVICE = re.compile(r"cpu|mps|cuda(:\d+)?")


@dataclass(frozen=True)
class Encoded:
    """Shapes: ``vectors`` (texts, dimensions); ``tokens`` and ``cut`` (texts,), how many were there and left out."""

    vectors: npt.NDArray[np.float32]
    tokens: npt.NDArray[np.int64]
    cut: npt.NDArray[np.int64]


@dataclass(frozen=True)
class TokenStates:
    """The last states of a text's tokens (special ones are no tokens of the text), and where each token ends.

    Shapes: ``states`` (tokens, dimensions), ``places`` (tokens,).
    """

    states: npt.NDArray[np.float32]
    places: npt.NDArray[np.int64]


class Encoder(Protocol):
    """Turns texts into vectors."""

    @property
    def identity(self) -> str:
        """Name and content of the weights."""

    @property
    def dimensions(self) -> int:
        """Length of a vector."""

    def encode(self, texts: Sequence[str]) -> Encoded:
        """One vector a text. A text without any character but white space has a vector of zeros."""

    def token_states(self, text: str) -> TokenStates:
        """The states of the tokens that the vector of a text is the mean of."""


class TransformerEncoder:
    """Any Hugging Face encoder.

    Args:
        source: A packaged name (`all-MiniLM-L6-v2`), a folder, or a name on the hub. Only safetensors are read.
        max_tokens: The longest piece encoded at once, with its special tokens; the model's own limit if that is less.
        overflow: What happens to a longer text. `windows`: it is encoded in windows one after the other, and the mean
            runs over the tokens of all of them. `cut`: the rest is left out, as in the paper, and counted.
        precision: `int8` multiplies whole numbers, in the packaged encoder alone: faster on a processor, and close.
            `auto` is that where it can be, and `float32` elsewhere.
        device: `auto` takes CUDA or MPS where there is one, and the CPU elsewhere.
        batch_size: How many windows of similar length are encoded together. By default 32 on an accelerator, as many
            as are fastest with whole numbers on a CPU, and 1 with float32 there, where a vector would depend, in its
            last digits, on which texts happen to be encoded with it.
    """

    def __init__(
        self,
        source: str = "all-MiniLM-L6-v2",
        *,
        max_tokens: int = 512,
        overflow: Overflow = "windows",
        precision: Precision = "float32",
        device: str = "auto",
        batch_size: int | None = None,
    ) -> None:
        self._device = _device(device)
        pretrained = load_pretrained(source, self._device, precision)
        self._network, self._tokenizer, self.identity = pretrained.network, pretrained.tokenizer, pretrained.identity
        self._overflow = overflow
        self._rows = 0 if batch_size else self._network.rows
        self._batch_size = batch_size or (1 if self._device == "cpu" else _ACCELERATOR_BATCH)
        self.max_tokens = min(max_tokens, self._network.longest)
        self.dimensions = self._network.dimensions
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(self.max_tokens)

    def encode(self, texts: Sequence[str]) -> Encoded:
        """One vector a text. A text without any character but white space has a vector of zeros."""
        starts = range(0, len(texts), _TEXTS_AT_ONCE)
        parts = [self._encode(texts[start : start + _TEXTS_AT_ONCE]) for start in starts] or [self._encode([])]
        return Encoded(
            vectors=np.concatenate([part.vectors for part in parts]),
            tokens=np.concatenate([part.tokens for part in parts]),
            cut=np.concatenate([part.cut for part in parts]),
        )

    def token_states(self, text: str) -> TokenStates:
        """The states of the tokens that the vector of a text is the mean of, without the special ones."""
        states, places = [np.zeros((0, self.dimensions), dtype=np.float32)], [np.zeros(0, dtype=np.int64)]
        for window in self._taken(self._tokenizer.encode(well_formed(text))) if text.strip() else []:
            real = np.asarray(window.special_tokens_mask) == 0
            states.append(self._network.states([window.ids])[0].float().cpu().numpy()[real])
            # The last character: some tokenizers count the space before a word as its first.
            begins, ends = np.asarray(window.offsets, dtype=np.int64).reshape(-1, 2)[real].T
            places.append(np.maximum(ends - 1, begins))
        return TokenStates(np.concatenate(states), np.concatenate(places))

    def _encode(self, texts: Sequence[str]) -> Encoded:
        windows, owner, tokens, cut = self._windows(texts)
        sums = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        total = np.zeros(len(texts), dtype=np.int64)
        states: dict[int, npt.NDArray[np.float32]] = {}
        for batch, state_sums in self._state_sums(windows):
            states.update(zip(batch, state_sums, strict=True))
        # In reading order, so that the sum over the windows of a text is always taken in the same order.
        for window, text in enumerate(owner):
            sums[text] += states[window]
            total[text] += len(windows[window])
        return Encoded((sums / np.maximum(1, total)[:, None]).astype(np.float32), tokens, cut)

    def _windows(
        self, texts: Sequence[str]
    ) -> tuple[list[list[int]], list[int], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """The token ids of every window, the text it belongs to, and the tokens there are and left out."""
        spoken = [index for index, text in enumerate(texts) if text.strip()]
        tokens, cut = np.zeros(len(texts), dtype=np.int64), np.zeros(len(texts), dtype=np.int64)
        windows: list[list[int]] = []
        owner: list[int] = []
        if not spoken:
            return windows, owner, tokens, cut
        special = self._tokenizer.num_special_tokens_to_add(is_pair=False)
        read = self._tokenizer.encode_batch_fast([well_formed(texts[index]) for index in spoken])
        for text, first in zip(spoken, read, strict=True):
            taken = self._taken(first)
            tokens[text] = sum(len(window) - special for window in (first, *first.overflowing))
            cut[text] = tokens[text] - sum(len(window) - special for window in taken)
            windows += [window.ids for window in taken]
            owner += [text] * len(taken)
        return windows, owner, tokens, cut

    def _taken(self, first: Encoding) -> list[Encoding]:
        """The windows of a text that are encoded: the tokenizer hangs the further ones on the first."""
        return [first, *(first.overflowing if self._overflow == "windows" else ())]

    def _state_sums(self, windows: list[list[int]]) -> Iterator[tuple[list[int], npt.NDArray[np.float32]]]:
        """Windows of similar length together, and the sum of the last states over the real tokens of each."""
        import torch

        def sums(batch: list[int]) -> npt.NDArray[np.float32]:
            states = self._network.states([windows[index] for index in batch])
            return torch.stack([one.sum(dim=0) for one in states]).float().cpu().numpy()

        batches = self._batches([len(window) for window in windows])
        return zip(batches, side_by_side(sums, batches) if self._rows else map(sums, batches), strict=True)

    def _batches(self, lengths: list[int]) -> list[list[int]]:
        """Which windows are encoded together, the longest first."""
        by_length = sorted(range(len(lengths)), key=lambda index: -lengths[index])
        if not self._rows:
            return [by_length[start : start + self._batch_size] for start in range(0, len(lengths), self._batch_size)]
        batches, rows = list[list[int]](), 0
        for index in by_length:
            if not batches or rows + lengths[index] > self._rows:
                batches.append([])
                rows = 0
            batches[-1].append(index)
            rows += lengths[index]
        return batches


def _device(wanted: str) -> str:
    import torch

    if wanted == "auto":
        return "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    try:
        if not _DEVICE.fullmatch(wanted):
            raise ValueError(wanted)
        torch.zeros(1, device=wanted)
    except (ValueError, RuntimeError, AssertionError):
        raise CohegraphError(
            f"There is no device '{wanted}' on this machine: choose auto or cpu.", code="no-device"
        ) from None
    return wanted
