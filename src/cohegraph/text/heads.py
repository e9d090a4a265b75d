"""Heads on the states of a reader: does this boundary hold, does this sentence belong, which version is better?"""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import nn
from torch.overrides import TorchFunctionMode

from cohegraph.errors import CohegraphError, DamagedFileError
from cohegraph.files import new_folder, write_atomically
from cohegraph.text.heads_network import Floats, HeadsNetwork, HeadsShape, Sentences, Texts
from cohegraph.text.reader import Reading, State

_ABOUT, _WEIGHTS, _FORMAT = "heads.json", "heads.safetensors", 1
# Longer texts are judged in windows that overlap by half: memory grows with the square of the sentences.
_WINDOW = 512


@dataclass(frozen=True)
class Judgement:
    """What heads say of a text of S sentences, as probabilities.

    Shapes: ``boundaries`` (S - 1,): that the boundary after a sentence holds; ``belonging`` (S,): that a sentence
    belongs to the text; ``related`` (S, S): that a sentence (row) and a later one (column) are from the same text, and
    0 for all other pairs. ``score`` compares versions of one text: the higher, the more coherent. ``gains`` (S, S): how
    much lower the mean loss per token of a sentence is after an earlier one than alone, in nats, as predicted; None if
    the heads have not learnt it. In texts of more than 512 sentences, distant pairs are 0, too.
    """

    boundaries: Floats
    belonging: Floats
    related: Floats
    score: float
    gains: Floats | None = None


class Heads:
    """Trained heads.

    Args:
        network: Their network.
        reader: The identity of the reader whose states they take.
        encoder: The identity of the encoder whose vectors they take.
        figures: What is known of them, such as their accuracy on texts that they have not seen.
    """

    def __init__(self, network: HeadsNetwork, reader: str, encoder: str, figures: Mapping[str, Any]) -> None:
        # Weights are those that will be saved. In double precision no digit depends on how the work is divided.
        self._network = copy.deepcopy(network).half().double().eval()
        self.shape, self.reader, self.encoder, self.figures = network.shape, reader, encoder, dict(figures)
        self.states = tuple(map(State.named, network.shape.states))

    @property
    def identity(self) -> str:
        """The hash of the weights."""
        digest = hashlib.sha256()
        for name, tensor in sorted(self._network.state_dict().items()):
            digest.update(name.encode() + tensor.half().numpy().tobytes())
        return digest.hexdigest()

    def network(self) -> HeadsNetwork:
        """A copy of their network, to train it further."""
        return copy.deepcopy(self._network).float()

    def judge(self, reading: Reading, vectors: Floats) -> Judgement:
        """What they say of a text that was read, and its sentences encoded."""
        sentences = Sentences.of(reading, vectors)
        size = len(sentences)
        if not size:
            none = np.zeros(0, dtype=np.float32)
            return Judgement(none, none, none.reshape(0, 0), 0.0, none.reshape(0, 0) if self.shape.gains else None)
        if size <= _WINDOW:
            return self._judge(sentences)
        boundaries, belonging = np.zeros(size - 1, dtype=np.float32), np.zeros(size, dtype=np.float32)
        # Memory that is never written to costs nothing.
        related, gains = (np.zeros((size, size), dtype=np.float32) for _ in range(2))
        score = 0.0
        for begin, own, end in _windows(size):
            found, to = self._judge(sentences.part(begin, begin + _WINDOW)), min(begin + _WINDOW, size)
            boundaries[own : min(end, size - 1)] = found.boundaries[own - begin : end - begin]
            belonging[own:end] = found.belonging[own - begin : end - begin]
            related[own:end, begin:to] = found.related[own - begin : end - begin]
            if found.gains is not None:
                gains[own:end, begin:to] = found.gains[own - begin : end - begin]
            score += found.score * (end - own) / size
        return Judgement(boundaries, belonging, related, score, gains if self.shape.gains else None)

    def _judge(self, sentences: Sentences) -> Judgement:
        with torch.inference_mode():
            found = self._network(Texts.of([sentences]))
        boundaries, belonging, related = (
            one[0].sigmoid().float().numpy() for one in (found.boundaries, found.belonging, found.related)
        )
        related = np.triu(related, 1)
        gains = None if found.gains is None else found.gains[0].triu(1).float().numpy()
        return Judgement(boundaries, belonging, related, float(np.float32(found.scores[0])), gains)

    def save(self, folder: Path) -> None:
        """Write them to a folder, which is new or replaced as a whole."""
        weights = {name: tensor.half().contiguous() for name, tensor in self._network.state_dict().items()}
        content = save(weights)
        about: dict[str, Any] = {
            "format": _FORMAT,
            "shape": asdict(self.shape),
            "reader": self.reader,
            "encoder": self.encoder,
            "figures": self.figures,
        }
        about["sha256"] = _sha256(about, content)
        with new_folder(folder) as work:
            write_atomically(work / _WEIGHTS, content)
            write_atomically(work / _ABOUT, json.dumps(about, indent=1) + "\n")

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Heads from a folder; raises an error where it holds none, or damaged ones."""
        try:
            about = json.loads((folder / _ABOUT).read_text("utf-8"))
            content = (folder / _WEIGHTS).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            message = f"{folder} holds no heads of a reader: train them with 'cohegraph train-reader'."
            raise CohegraphError(message, code="no-heads") from None
        except (OSError, ValueError, RecursionError) as error:
            raise _damaged(folder, error) from None
        if isinstance(about, dict) and isinstance(about.get("format"), int) and about["format"] > _FORMAT:
            message = f"The heads in {folder} were written by a newer version of cohegraph: upgrade cohegraph."
            raise CohegraphError(message, code="newer-format")
        try:
            return cls._restored(about, content)
        except (
            *(ArithmeticError, AssertionError, AttributeError, KeyError, TypeError),
            *(ValueError, RuntimeError, SafetensorError),
        ) as error:
            raise _damaged(folder, error) from None

    @classmethod
    def _restored(cls, about: dict[str, Any], content: bytes) -> Self:
        if about["format"] != _FORMAT:
            raise ValueError("their format is not known")
        if _sha256(about, content) != about["sha256"]:
            raise ValueError("they are not what was written")
        shape = HeadsShape(**{**about["shape"], "states": tuple(about["shape"]["states"])})
        if not shape.is_possible:
            raise ValueError("their shape is not possible")
        # Without memory for weights: a damaged shape may ask for more than there is.
        with torch.device("meta"), _NoNormalWeights():
            network = HeadsNetwork(shape)
        weights = {name: tensor.float() for name, tensor in load(content).items()}
        network.load_state_dict(weights, assign=True)
        if not all(torch.isfinite(tensor).all() for tensor in weights.values()):
            raise ValueError("some weights are no numbers")
        if not (isinstance(about["reader"], str) and isinstance(about["encoder"], str)):
            raise TypeError("reader and encoder must have names")
        return cls(network, about["reader"], about["encoder"], about["figures"])


def _sha256(about: Mapping[str, Any], content: bytes) -> str:
    """The hash of all that is written: the weights, and what is said about them."""
    rest = {name: value for name, value in about.items() if name != "sha256"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode() + content).hexdigest()


def _windows(size: int) -> list[tuple[int, int, int]]:
    """Windows of a long text: where each begins, and from where to where its sentences are its own."""
    begins = [*range(0, size - _WINDOW, _WINDOW // 2), size - _WINDOW]
    ends = [(begin + following + _WINDOW) // 2 for begin, following in pairwise(begins)]
    return list(zip(begins, [0, *ends], [*ends, size], strict=True))


class _NoNormalWeights(TorchFunctionMode):
    """Makes up no weights with a normal distribution: without memory for them torch needs seconds to prepare that."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        return kwargs["tensor"] if func is nn.init.normal_ else func(*args, **kwargs)


def holds_heads(folder: Path) -> bool:
    """Whether a folder holds heads, whole or damaged, and nothing else."""
    return folder.is_dir() and {file.name for file in folder.iterdir()} <= {_ABOUT, _WEIGHTS}


def _damaged(folder: Path, error: Exception) -> DamagedFileError:
    why = str(error).splitlines()[0].rstrip(".: ") if str(error) else type(error).__name__
    return DamagedFileError(f"The heads in {folder} are damaged ({why}): train them again.")
