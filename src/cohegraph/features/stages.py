"""The stages of features: what is computed, kept and sent by itself, so that a change costs no more than it must.

Another delta links again without encoding; another encoder encodes again without parsing. A stage says which
pretrained parts and which settings shape it, and its key follows from that: nothing else needs to know.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from cohegraph.features.document_features import OF_ENCODER, TALLIES, Features
from cohegraph.features.featurizer import Featurizer, Structure
from cohegraph.graph.links import parts_of
from cohegraph.settings import Settings
from cohegraph.text.document import Document
from cohegraph.text.encoder import Encoded

# What a stage makes of one document.
Arrays = dict[str, npt.NDArray[Any]]
# What stages made of documents, by the stage's name, and nothing in the place of what was not computed.
Pieces = dict[str, list[Arrays | None]]
Parse = Callable[[Sequence[str]], Iterable[Document]]

_OF_STRUCTURE = len(TALLIES) - len(OF_ENCODER)
# What a part is and how it computes, its identity says; where it lies and who chose it does not matter.
_SAID_BY_IDENTITY = ("parser.model", "vectors.source", "encoder.source", "encoder.precision")


@dataclass(frozen=True)
class Stage:
    """One stage.

    Args:
        name: What it is called in keys and files.
        parts: The pretrained parts that shape it, given the settings.
        settings: The groups of settings that shape it, in addition to those of its parts.
        compute: What it makes of texts, given what parses them.
        fits: Whether arrays are what it makes of a document.
        format: Changes whenever the meaning of what it makes does.
    """

    name: str
    parts: Callable[[Settings], tuple[str, ...]]
    settings: tuple[str, ...]
    compute: Callable[[Featurizer, Sequence[str], Parse], list[Arrays]]
    fits: Callable[[Arrays], bool]
    format: int = 2

    def made(self, featurizer: Featurizer, texts: Sequence[str], parse: Parse | None = None) -> list[Arrays]:
        """What it makes of texts, which are parsed by the featurizer's parser if by no other."""
        return self.compute(featurizer, texts, parse or featurizer.parser.parse) if texts else []

    def shape(self, featurizer: Featurizer) -> str:
        """Everything that shapes it except the text."""
        return shape_of(featurizer, self.name, self.settings, self.parts(featurizer.settings), self.format)

    def digest(self, featurizer: Featurizer) -> str:
        """The hash of its shape."""
        return hashlib.sha256(self.shape(featurizer).encode()).hexdigest()


def shape_of(featurizer: Featurizer, name: str, groups: Sequence[str], parts: Sequence[str], version: int = 2) -> str:
    """What shapes something that is computed from pretrained parts and some groups of settings."""
    chosen = {
        setting: value
        for setting, value in featurizer.settings.of_features().items()
        if setting.split(".")[0] in {*groups, *parts} - {"parser"} and setting not in _SAID_BY_IDENTITY
    }
    identities = featurizer.identities
    made_from = {
        "format": version,
        "half": name,
        "settings": chosen,
        "parts": {part: identities[part] for part in parts},
    }
    return json.dumps(made_from, sort_keys=True)


def key_of(shape: str, text: str) -> str:
    """The key of what has a shape and was made of one text."""
    return hashlib.sha256(f"{shape}\n{text}".encode("utf-8", "surrogatepass")).hexdigest()


def structure_arrays(made: Structure) -> list[Arrays]:
    """Pattern counts and tallies, document by document."""
    counts = made.counts
    patterns = np.array([counts.shape[1]])
    rows = []
    for number, (low, high) in enumerate(zip(counts.indptr[:-1], counts.indptr[1:], strict=True)):
        indices, data = counts.indices[low:high].astype(np.int32), counts.data[low:high].astype(np.int64)
        rows.append({"patterns": patterns, "indices": indices, "data": data, "tallies": made.tallies[number]})
    return rows


def vector_arrays(made: Encoded) -> list[Arrays]:
    """Vectors and numbers of tokens, document by document."""
    rows = zip(made.vectors, made.tokens, made.cut, strict=True)
    return [{"vector": vector, "tokens": np.array([tokens, cut])} for vector, tokens, cut in rows]


def _fits_structure(arrays: Arrays) -> bool:
    match shapes(arrays, "patterns", "indices", "data", "tallies"):
        case ((1,), (first,), (second,), (found,)):
            inside = not first or arrays["indices"].max() < arrays["patterns"][0]
            return first == second and found == _OF_STRUCTURE and bool(inside)
    return False


def _fits_vector(arrays: Arrays) -> bool:
    match shapes(arrays, "vector", "tokens"):
        case ((_,), (2,)):
            return bool(np.isfinite(arrays["vector"]).all())
    return False


def shapes(arrays: Arrays, *names: str) -> tuple[tuple[int, ...], ...] | None:
    """The shapes of arrays with these names, and nothing where the names are others."""
    return tuple(arrays[name].shape for name in names) if set(arrays) == set(names) else None


STRUCTURE = Stage(
    "structure",
    parts=lambda settings: ("parser", *parts_of(settings.links)),
    settings=("links", "subgraphs"),
    compute=lambda featurizer, texts, parse: structure_arrays(featurizer.structure(parse(texts))),
    fits=_fits_structure,
    format=3,
)
VECTOR = Stage(
    "vectors",
    parts=lambda settings: ("encoder",),
    settings=(),
    compute=lambda featurizer, texts, parse: vector_arrays(featurizer.encode(texts)),
    fits=_fits_vector,
)
STAGES = (STRUCTURE, VECTOR)


def features_of(featurizer: Featurizer, pieces: Mapping[str, Sequence[Arrays | None]]) -> Features:
    """The features of one document or more, of which all stages are there."""
    structures, vectors = ([one for one in pieces[stage.name] if one is not None] for stage in STAGES)
    ends = np.cumsum([0, *(len(one["data"]) for one in structures)])
    counts = sparse.csr_array(
        (*(np.concatenate([one[name] for one in structures]) for name in ("data", "indices")), ends),
        shape=(len(structures), int(structures[0]["patterns"][0])),
    )
    tokens = np.stack([one["tokens"] for one in vectors])
    return featurizer.joined(
        Structure(counts, np.stack([one["tallies"] for one in structures])),
        Encoded(np.stack([one["vector"] for one in vectors]), tokens[:, 0], tokens[:, 1]),
    )
