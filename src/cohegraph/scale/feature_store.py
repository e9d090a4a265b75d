"""Features computed once: kept on disk by what they were made from, and found again by any later run.

Texts are taken in chunks. Each chunk has two files, one for the half that needs parser and word vectors and one for the
half that needs the encoder, so that another delta does not encode again and another encoder does not parse again. A
file's name is the SHA-256 of the chunk's texts, of the settings that shape this half, and of the pretrained parts'
identities; a file that is damaged is made anew.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError
from safetensors.numpy import load as load_safetensors
from safetensors.numpy import save as save_safetensors
from scipy import sparse

from cohegraph.features import Features, Featurizer, Structure
from cohegraph.files import cache_folder, write_atomically
from cohegraph.progress import track
from cohegraph.text.document import Document
from cohegraph.text.encoder import Encoded

Arrays = dict[str, npt.NDArray[Any]]
Half = TypeVar("Half", Structure, Encoded)
_CHUNK = 32
# Changes whenever the meaning of a stored half does.
_FORMAT = 1


class FeatureStore:
    """A folder of computed features; by default in the user's cache."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = cache_folder() / "features" if folder is None else folder
        self._folder.mkdir(parents=True, exist_ok=True)
        self._documents: dict[tuple[str, str], Document] = {}

    def features(self, texts: Sequence[str], featurizer: Featurizer, *, show_progress: bool = False) -> Features:
        """The features of texts, in their order: read where they are stored, else computed and stored at once."""
        starts = range(0, len(texts), _CHUNK)
        chunks = (self._chunk(texts[start : start + _CHUNK], featurizer) for start in starts)
        parts = list(track(chunks, "reading documents", len(texts), size=len, show=show_progress))
        return Features.concatenate(parts) if parts else featurizer.featurize([])

    def _chunk(self, texts: Sequence[str], featurizer: Featurizer) -> Features:
        chosen, parts = featurizer.settings.of_features(), featurizer.identities

        def key(half: str, groups: tuple[str, ...], identities: tuple[str, ...]) -> str:
            made_from = {
                "format": _FORMAT,
                "half": half,
                "settings": {name: value for name, value in chosen.items() if name.split(".")[0] in groups},
                "parts": {name: parts[name] for name in identities},
                "texts": list(texts),
            }
            return hashlib.sha256(json.dumps(made_from, sort_keys=True).encode()).hexdigest()

        structure = self._half(
            key("structure", ("links", "subgraphs"), ("parser", "vectors")),
            lambda: featurizer.structure(self._parsed(texts, featurizer)),
            _structure_arrays,
            lambda arrays: _structure(arrays, len(texts)),
        )
        encoded = self._half(
            key("vectors", ("encoder",), ("encoder",)),
            lambda: featurizer.encode(texts),
            lambda made: {"vectors": made.vectors, "tokens": made.tokens, "cut": made.cut},
            lambda arrays: _encoded(arrays, len(texts)),
        )
        return featurizer.joined(structure, encoded)

    def _parsed(self, texts: Sequence[str], featurizer: Featurizer) -> list[Document]:
        """The parsed texts; each is parsed once in the life of the store, however often it is linked."""
        parser = featurizer.identities["parser"]
        new = [text for text in dict.fromkeys(texts) if (parser, text) not in self._documents]
        for text, document in zip(new, featurizer.parser.parse(new), strict=True):
            self._documents[parser, text] = document
        return [self._documents[parser, text] for text in texts]

    def _half(
        self, key: str, make: Callable[[], Half], arrays: Callable[[Half], Arrays], read: Callable[[Arrays], Half]
    ) -> Half:
        file = self._folder / key[:2] / f"{key}.safetensors"
        try:
            return read(load_safetensors(file.read_bytes()))
        except (OSError, SafetensorError, KeyError, ValueError):
            made = make()
            file.parent.mkdir(exist_ok=True)
            content = {name: np.ascontiguousarray(array) for name, array in arrays(made).items()}
            write_atomically(file, save_safetensors(content))
            return made


def _structure_arrays(made: Structure) -> Arrays:
    counts = made.counts
    return {
        "data": counts.data,
        "indices": counts.indices,
        "indptr": counts.indptr,
        "patterns": np.array([counts.shape[1]]),
        "tallies": made.tallies,
    }


def _structure(arrays: Arrays, documents: int) -> Structure:
    shape = (documents, int(arrays["patterns"][0]))
    counts = sparse.csr_array((arrays["data"], arrays["indices"], arrays["indptr"]), shape=shape)
    if len(arrays["tallies"]) != documents:
        raise ValueError("another number of documents")
    return Structure(counts, arrays["tallies"])


def _encoded(arrays: Arrays, documents: int) -> Encoded:
    if len(arrays["vectors"]) != documents:
        raise ValueError("another number of documents")
    return Encoded(arrays["vectors"], arrays["tokens"], arrays["cut"])
