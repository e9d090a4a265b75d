"""Snapshots of a training on disk: a training that was killed resumes, and reaches the same weights."""

import hashlib
import time
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import numpy as np
from pydantic import BaseModel, ConfigDict
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, from_numpy

from cohegraph.errors import CohegraphError
from cohegraph.files import write_atomically
from cohegraph.learning.loop import Epoch, Snapshot
from cohegraph.systems.gcn.network import TrainedGCN

# Seconds. Writing takes milliseconds.
_BETWEEN = 10.0
_ABOUT, _CHOSEN = "cohegraph", "chosen."
_NETWORK = tuple(one.name for one in fields(TrainedGCN))


def checkpoint(folder: Path, number: int) -> Path:
    """The file of one of the trainings of a model, by its number."""
    return folder / f"training-{number}.safetensors"


def remove_checkpoints(folder: Path) -> None:
    """Remove all snapshots in a folder."""
    for file in (*folder.glob("training-*.safetensors"), *folder.glob(".training-*.safetensors.*")):
        file.unlink(missing_ok=True)


class _About(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")

    training: str
    sha256: str
    epochs: tuple[Epoch, ...]
    best: tuple[float, float] | None
    chosen_epoch: int


class CheckpointFile:
    """The last snapshot of one training.

    Args:
        file: Where it is.
        training: What identifies the training: a snapshot of another one is not used.
        writes: Whether this process writes it; of several that train together one does.
        between: The least seconds between two snapshots.
    """

    def __init__(self, file: Path, training: str, *, writes: bool = True, between: float = _BETWEEN) -> None:
        self._file, self._training, self._writes, self._between = file, training, writes, between
        self._written = time.monotonic()

    @property
    def epochs(self) -> int:
        """How many epochs are done."""
        kept = self.load()
        return 0 if kept is None else len(kept.epochs)

    def load(self) -> Snapshot[TrainedGCN] | None:
        """The last snapshot; none where the file is missing, damaged, or of another training."""
        try:
            with safe_open(self._file, "pt") as stream:
                about = _About.model_validate_json(stream.metadata()[_ABOUT])
                tensors = {name: stream.get_tensor(name) for name in stream.keys()}  # noqa: SIM118 (no mapping)
        except (OSError, SafetensorError, ValueError, KeyError, TypeError):
            return None
        if about.training != self._training or about.sha256 != _hash(tensors):
            return None
        chosen = {name: tensors.pop(_CHOSEN + name).numpy() for name in _NETWORK if _CHOSEN + name in tensors}
        network = TrainedGCN(**chosen) if chosen else None
        return Snapshot(tensors, about.epochs, about.best, network, about.chosen_epoch)

    def after_epoch(self, snapshot: Callable[[], Snapshot[TrainedGCN]], *, last: bool) -> None:
        """Write a snapshot, if the last one is some time ago, or if it is the last."""
        if not self._writes or not (last or time.monotonic() - self._written >= self._between):
            return
        now = snapshot()
        tensors: dict[str, Tensor] = dict(now.tensors)
        if now.chosen is not None:
            tensors |= {_CHOSEN + name: from_numpy(np.array(getattr(now.chosen, name))) for name in _NETWORK}
        about = _About(
            training=self._training,
            sha256=_hash(tensors),
            epochs=now.epochs,
            best=now.best,
            chosen_epoch=now.chosen_epoch,
        )
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(self._file, save(tensors, {_ABOUT: about.model_dump_json()}))
        except OSError as error:
            raise CohegraphError(
                f"The training cannot be kept in {self._file} ({error.strerror}): make room there and run the same "
                "command again.",
                code="cannot-write",
            ) from None
        self._written = time.monotonic()


def _hash(tensors: dict[str, Tensor]) -> str:
    """Of all numbers, so that a damaged one is noticed."""
    digest = hashlib.sha256()
    for name in sorted(tensors):
        digest.update(tensors[name].contiguous().numpy().tobytes())
    return digest.hexdigest()
