"""Readers, found by name: the one that `cohegraph parts install` brings, a folder, a GGUF file, or a name on the hub.

With whole numbers (int8) a reader is several times as fast. Its weights are prepared once for each source, measured
against float32 on a few texts, and kept in the user's cache, from where they open in a fraction of a second.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cohegraph.errors import CohegraphError, DamagedFileError, MissingPartError
from cohegraph.files import alone_in, cache_folder, new_folder, remove_leftovers, write_atomically
from cohegraph.progress import track
from cohegraph.text.llama_files import (
    CONFIG,
    INDEX,
    TOKENIZER,
    WEIGHTS,
    Checkpoint,
    UnfitError,
    open_checkpoint,
    read_json,
    read_tokenizer,
)
from cohegraph.text.networks import Precision
from cohegraph.text.packaged import INSTALL, INSTALLABLE_READERS, Installable, sha256_once
from cohegraph.text.threads import one_thread

if TYPE_CHECKING:
    from torch import Tensor

    from cohegraph.text.llama import LlamaNetwork
    from cohegraph.text.reader import LlamaReader

DEFAULT_READER = "smollm2-135m"
# Which whole numbers weights are: what was prepared for one format does not open as another.
_FORMAT = 3
# How they are multiplied and added up: losses of another kind are not these.
_ARITHMETIC = "+int8.3"
# By which share the loss with whole numbers may differ from that with floats where the choice is ours.
_CLOSE = 0.005
_RECORD = "prepared.json"
_PREPARED = (WEIGHTS, CONFIG, TOKENIZER)
_DATA = Path(__file__).parents[1] / "data"
_CALIBRATION, _CORPUS = _DATA / "readers" / "calibration.txt", _DATA / "starter" / "corpus.jsonl"
_LONGEST = 2_048
_FROM_HUB = (CONFIG, TOKENIZER, "model*.safetensors", INDEX)
_REMEDY = (
    "name a folder with config.json, tokenizer.json and the safetensors weights of a Llama model, a GGUF file, a model "
    f"on the hub, or {DEFAULT_READER}"
)


@dataclass(frozen=True)
class Source:
    """Where a reader's weights come from.

    Attributes:
        identity: Name and content.
        content: The SHA-256 of all that shapes the reader.
        path: A folder, or a GGUF file.
    """

    identity: str
    content: str
    path: Path

    @property
    def prepared(self) -> Path:
        """The folder in the user's cache that holds its weights as whole numbers, once they are prepared."""
        return cache_folder() / "readers" / f"{self.content[:32]}.{_FORMAT}"


@dataclass(frozen=True)
class Losses:
    """The mean loss of a token in the calibration texts."""

    float32: float
    int8: float

    @property
    def difference(self) -> float:
        """By which share the loss with whole numbers is higher."""
        return self.int8 / self.float32 - 1

    @property
    def are_close(self) -> bool:
        """Whether whole numbers read as well as floats do."""
        return abs(self.difference) <= _CLOSE


def load_reader(source: str = DEFAULT_READER, precision: Precision = "auto") -> LlamaReader:
    """A reader.

    Args:
        source: `smollm2-135m`, which `cohegraph parts install` installs; a folder with ``config.json``,
            ``tokenizer.json`` and safetensors weights of a Llama model; a GGUF file; or a name on the model hub.
        precision: `int8` multiplies whole numbers, which is faster on a CPU. `auto` does so unless the loss on a few
            ordinary texts then differs from that with `float32` by more than 0.5 %.

    Raises MissingPartError where there is no such reader, and DamagedFileError where a file is not what it should be.
    """
    from cohegraph.text.llama import LlamaNetwork
    from cohegraph.text.llama_shape import LlamaShape
    from cohegraph.text.reader import LlamaReader

    with in_one_sentence(source):
        found = find_source(source)
        if precision != "float32":
            losses = prepare(found)
            if precision == "int8" or losses.are_close:
                shape = LlamaShape.of(read_json(found.prepared / CONFIG))
                network = LlamaNetwork(shape, _mapped(found.prepared / WEIGHTS))
                tokenizer = read_tokenizer(found.prepared / TOKENIZER)
                return LlamaReader(network, tokenizer, found.identity + _ARITHMETIC)
        checkpoint = _opened(found)
        network = LlamaNetwork(checkpoint.shape, checkpoint.weights())
        _finite_loss(network, [[checkpoint.shape.bos_token_id] * 2])
        return LlamaReader(network, checkpoint.tokenizer, found.identity)


def find_source(source: str) -> Source:
    """Where the weights of a reader are, and what they are."""
    if part := INSTALLABLE_READERS.get(source):
        return source_of_part(part)
    path = Path(source)
    if path.is_file():
        return Source(f"gguf:{sha256_once(path)}", sha256_once(path), path)
    if path.is_dir():
        content = _content_of_folder(path)
        return Source(f"folder:{content}", content, path)
    if path.suffix == ".gguf" or path.is_absolute() or source.startswith((".", "~")) or source.count("/") > 1:
        raise UnfitError("there is no such file or folder", "no-file")
    folder = _from_hub(source)
    return Source(f"hub:{source}@{folder.name}", _content_of_folder(folder), folder)


def source_of_part(part: Installable, file: Path | None = None) -> Source:
    """A part that is installed, or that is being installed from a file."""
    return Source(f"{part.name}:{part.sha256}", part.sha256, file or part.file)


def check_part(part: Installable) -> Losses:
    """The losses of a part that is installed and prepared; raises MissingPartError or DamagedFileError elsewhere."""
    part.verify()
    losses = _recorded(source_of_part(part))
    if losses is None:
        raise DamagedFileError(f"{part.name} is not prepared, or damaged: run: {INSTALL}", code="not-prepared")
    return losses


def prepare(source: Source, *, again: bool = False, show_progress: bool = True) -> Losses:
    """Make whole numbers of a reader's weights, and measure what that does to its losses, unless it is done already.

    What is damaged is prepared again. Of several processes one does the work, and the others wait for it.
    """
    if not again and (known := _recorded(source)):
        return known
    folder = source.prepared
    with alone_in(folder.parent, wait=True):
        remove_leftovers(folder)
        if not again and (known := _recorded(source)):
            return known
        checkpoint = _opened(source)
        try:
            with new_folder(folder) as work:
                _write(work, source, checkpoint, show_progress=show_progress)
        except OSError as error:
            raise CohegraphError(
                f"The reader cannot be prepared in {folder.parent} ({error.strerror or error}): make room there, name "
                "another place with COHEGRAPH_CACHE, or read with float32.",
                code="cannot-write",
            ) from None
    losses = _recorded(source)
    if losses is None:
        raise DamagedFileError(f"{folder} changed while it was written: check the disk, and try again.")
    return losses


@contextmanager
def in_one_sentence(source: str) -> Iterator[None]:
    """Say why a reader cannot be loaded, and what to do."""
    try:
        yield
    except UnfitError as error:
        raise MissingPartError(
            f"The reader '{source}' cannot be loaded ({error}): {_REMEDY}.", code=error.code
        ) from error


def _opened(source: Source) -> Checkpoint:
    """The model of a source; that of a part is verified."""
    for part in INSTALLABLE_READERS.values():
        if source.path == part.file:
            part.verify()
    return open_checkpoint(source.path)


def _content_of_folder(folder: Path) -> str:
    files = [folder / CONFIG, folder / TOKENIZER, folder / INDEX, *sorted(folder.glob("*.safetensors"))]
    content = "\n".join(f"{file.name} {sha256_once(file)}" for file in files if file.is_file())
    return hashlib.sha256(content.encode()).hexdigest()


def _from_hub(name: str) -> Path:
    """The folder of a model on the hub, downloaded unless it was before; its last part is the commit."""
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(name, allow_patterns=list(_FROM_HUB)))
    except Exception as error:  # no network, no such model, no name of one: each has errors of its own
        why = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".: ")
        raise UnfitError(f"there is no such folder, and the hub did not provide it: {why}", "no-hub") from error


def _recorded(source: Source) -> Losses | None:
    """What was measured when a source was prepared, if that is there and whole."""
    folder = source.prepared
    try:
        record = read_json(folder / _RECORD)
        if record["format"] != _FORMAT or record["content"] != source.content:
            return None
        if any(sha256_once(folder / name) != record["sha256"][name] for name in _PREPARED):
            return None
        losses = Losses(float(record["losses"]["float32"]), float(record["losses"]["int8"]))
    except (OSError, DamagedFileError, KeyError, TypeError, ValueError):
        return None
    return losses if all(math.isfinite(one) and one > 0 for one in (losses.float32, losses.int8)) else None


def _write(folder: Path, source: Source, checkpoint: Checkpoint, *, show_progress: bool) -> None:
    """Fill a folder with a prepared reader."""
    from safetensors.torch import save

    from cohegraph.text.llama import LlamaNetwork, int8_weights

    shape, calibration = checkpoint.shape, _tokens(checkpoint, _calibration_texts())
    measured = calibration + _tokens(checkpoint, _measured_texts())

    def tracked(texts: Sequence[Sequence[int]], title: str) -> Iterable[Sequence[int]]:
        return track(texts, title, sum(map(len, texts)), size=len, show=show_progress)

    with one_thread():
        exact = checkpoint.weights()
        in_floats = _finite_loss(LlamaNetwork(shape, exact), tracked(measured, "Reading with floats"))
        whole = int8_weights(shape, exact, tracked(calibration, "Preparing whole numbers"))
        del exact
        in_int8 = _finite_loss(LlamaNetwork(shape, whole), tracked(measured, "Reading with whole numbers"))
    # Not by the library's own writing: on a full disk that ends the process.
    texts_of = {CONFIG: shape.to_json(), TOKENIZER: checkpoint.tokenizer.to_str()}
    content = {WEIGHTS: save(whole)} | {name: one.encode("utf-8") for name, one in texts_of.items()}
    sha256 = dict[str, str]()
    for name, data in content.items():
        write_atomically(folder / name, data)
        sha256[name] = hashlib.sha256(data).hexdigest()
    record = {
        "format": _FORMAT,
        "identity": source.identity,
        "content": source.content,
        "sha256": sha256,
        "losses": asdict(Losses(in_floats, in_int8)),
    }
    write_atomically(folder / _RECORD, json.dumps(record, indent=1))


def _calibration_texts() -> list[str]:
    """A few ordinary texts, which show how large the inputs of layers are."""
    return _CALIBRATION.read_text("utf-8").split("\n\n")


def _measured_texts() -> list[str]:
    """More texts, to compare losses on: on a few, chance decides whether they are close."""
    rows = map(json.loads, _CORPUS.read_text("utf-8").splitlines())
    return [row["text"] for row in rows if row["level"] == "high"]


def _tokens(checkpoint: Checkpoint, texts: Iterable[str]) -> list[list[int]]:
    """The tokens of texts, each after the token of the beginning."""
    longest, bos = min(_LONGEST, checkpoint.shape.longest), checkpoint.shape.bos_token_id
    found = [checkpoint.tokenizer.encode(" ".join(text.split()), add_special_tokens=False).ids for text in texts]
    if not any(found):
        raise UnfitError("its tokenizer finds no token in English texts", "bad-tokenizer")
    return [[bos, *ids][:longest] for ids in found if ids]


def _finite_loss(network: LlamaNetwork, texts: Iterable[Sequence[int]]) -> float:
    """The mean loss of the tokens of all texts but their first ones."""
    losses = [loss for tokens in texts for loss in _losses(network, tokens)]
    mean = math.fsum(losses) / len(losses)
    if not math.isfinite(mean):
        raise UnfitError("its losses are no numbers", "not-finite")
    return mean


def _losses(network: LlamaNetwork, tokens: Sequence[int]) -> list[float]:
    return [float(loss) for loss in network.read(tokens).losses[1:]]


def _mapped(file: Path) -> dict[str, Tensor]:
    """Prepared weights. Those that products pack are a part of the file, which is closed when all are packed."""
    import torch
    from safetensors.torch import load_file

    found: dict[str, Tensor] = load_file(file)
    return {name: one if one.dtype == torch.int8 else one.clone() for name, one in found.items()}
