"""The stages of features: what is computed, kept and sent separately, so that a change costs no more than it must.

With another delta, texts are linked again but not encoded; with another encoder, they are encoded but not parsed. A
stage says which pretrained parts and which settings shape it, and its key follows from that: nothing else needs to
know.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from cohegraph.features.document_features import DocumentReading, Features, Material
from cohegraph.features.featurizer import Featurizer
from cohegraph.graph.entity_grid import EntityGrid
from cohegraph.graph.links import parts_of, versions_of
from cohegraph.settings import Settings
from cohegraph.text.document import Document

# What a stage makes of one document.
Arrays = dict[str, npt.NDArray[Any]]
# What stages made of documents, by the stage's name, and None for what was not computed.
Pieces = dict[str, list[Arrays | None]]
Parse = Callable[[Sequence[str]], Iterable[Document]]

# What a part is and how it computes, its identity says; where it lies and who chose it does not matter.
_SAID_BY_IDENTITY = (
    *("parser.model", "vectors.source", "encoder.source", "encoder.precision"),
    *("reader.source", "reader.precision", "reader.heads"),
)


@dataclass(frozen=True)
class Stage:
    """One stage.

    Args:
        name: What it is called in keys and files.
        parts: The pretrained parts that shape it, in addition to those of the linkers if it depends on links.
        compute: What it makes of texts, given what parses them.
        settings: The groups of settings that shape it, in addition to those of its parts.
        arrays: The names of the arrays that it makes of a document, if it makes arrays.
        format: Changes whenever the meaning of what it makes does.
    """

    name: str
    parts: tuple[str, ...]
    compute: Callable[[Featurizer, Sequence[str], Parse], list[Any]]
    settings: tuple[str, ...] = ()
    arrays: tuple[str, ...] = ()
    format: int = 2

    def made(self, featurizer: Featurizer, texts: Sequence[str], parse: Parse | None = None) -> list[Any]:
        """What it makes of texts, which are parsed by the featurizer's parser unless another one is given."""
        return self.compute(featurizer, texts, parse or featurizer.parser.parse) if texts else []

    def fits(self, made: Any) -> bool:
        """Whether something that was stored is what this stage makes, and not another one."""
        return not self.arrays or set(made) == set(self.arrays)

    def shape(self, featurizer: Featurizer) -> str:
        """Everything that shapes it except the text."""
        links, versions, parts = featurizer.settings.links, dict[str, str](), self.parts
        if "links" in self.settings:
            parts, versions = (*parts, *parts_of(links)), versions_of(links)
        groups = {*self.settings, *parts} - {"parser"}
        made_from: dict[str, Any] = {
            "format": self.format,
            "half": self.name,
            "settings": {
                name: value
                for name, value in featurizer.settings.of_features().items()
                if name.split(".")[0] in groups and name not in _SAID_BY_IDENTITY
            },
            "parts": {part: featurizer.identity(part) for part in parts},
        }
        # Linkers of the first version are not named: they were not when the first stores were written.
        return json.dumps(made_from | ({"linkers": versions} if versions else {}), sort_keys=True)

    def digest(self, featurizer: Featurizer) -> str:
        """The hash of its shape."""
        return hashlib.sha256(self.shape(featurizer).encode()).hexdigest()


def _structure(featurizer: Featurizer, texts: Sequence[str], parse: Parse) -> list[Arrays]:
    """Pattern counts and tallies, document by document."""
    counts, tallies = featurizer.structure(parse(texts))
    patterns, rows = np.array([counts.shape[1]]), []
    for number, (low, high) in enumerate(zip(counts.indptr[:-1], counts.indptr[1:], strict=True)):
        indices, data = counts.indices[low:high].astype(np.int32), counts.data[low:high].astype(np.int64)
        rows.append({"patterns": patterns, "indices": indices, "data": data, "tallies": tallies[number]})
    return rows


def _vectors(featurizer: Featurizer, texts: Sequence[str], parse: Parse) -> list[Arrays]:
    """Vectors and numbers of tokens, document by document."""
    made = featurizer.encode(texts)
    rows = zip(made.vectors, made.tokens, made.cut, strict=True)
    return [{"vector": vector, "tokens": np.array([tokens, cut])} for vector, tokens, cut in rows]


def _grids(featurizer: Featurizer, texts: Sequence[str], parse: Parse) -> list[Arrays]:
    """Entity grids, document by document."""
    return [
        {
            "size": np.array([grid.sentences, grid.entities]),
            "cells": np.stack([grid.sentence, grid.entity, grid.role, grid.mentions]),
        }
        for grid in featurizer.grids(texts)
    ]


def _readings(featurizer: Featurizer, texts: Sequence[str], parse: Parse) -> list[Arrays]:
    """What a reader found, document by document."""
    return [
        {one.name: getattr(reading, one.name) for one in fields(DocumentReading)}
        for reading in featurizer.readings(list(parse(texts)))
    ]


STRUCTURE = Stage(
    "structure",
    ("parser",),
    _structure,
    settings=("links", "subgraphs"),
    arrays=("patterns", "indices", "data", "tallies"),
    format=3,
)
VECTOR = Stage("vectors", ("encoder",), _vectors, arrays=("vector", "tokens"))
READING = Stage(
    "reading",
    ("parser", "encoder", "reader", "heads"),
    _readings,
    arrays=tuple(one.name for one in fields(DocumentReading)),
)
# Those of additional material. The name of the grid's changes whenever the meaning of a role does.
OF_MATERIAL: dict[Material, Stage] = {
    "states": Stage(
        "states", ("parser", "encoder"), lambda featurizer, texts, parse: featurizer.sequences(parse(texts), "states")
    ),
    "words": Stage(
        "words", ("parser", "vectors"), lambda featurizer, texts, parse: featurizer.sequences(parse(texts), "words")
    ),
    "grid": Stage("grid of underlying roles", ("dependencies",), _grids, arrays=("size", "cells")),
}


def stages_of(settings: Settings) -> tuple[Stage, ...]:
    """The stages of the features that every document has with these settings."""
    return (STRUCTURE, VECTOR, READING) if settings.reader.judges else (STRUCTURE, VECTOR)


def grid_of(arrays: Arrays) -> EntityGrid:
    """The entity grid that arrays were made of."""
    return EntityGrid(*arrays["size"].tolist(), *arrays["cells"])


def features_of(featurizer: Featurizer, pieces: Mapping[str, Sequence[Arrays | None]]) -> Features:
    """The features of one document or more, of which all stages are there."""
    structures, vectors, readings = (
        [one for one in pieces.get(stage.name, ()) if one is not None] for stage in (STRUCTURE, VECTOR, READING)
    )
    ends = np.cumsum([0, *(len(one["data"]) for one in structures)])
    data, indices = (np.concatenate([one[name] for one in structures]) for name in ("data", "indices"))
    patterns = int(structures[0]["patterns"][0])
    return Features(
        sparse.csr_array((data, indices, ends), shape=(len(structures), patterns)),
        np.stack([one["vector"] for one in vectors]),
        np.hstack([[one["tallies"] for one in structures], [one["tokens"] for one in vectors]]),
        featurizer.identities(),
        featurizer.settings,
        {"reading": tuple(DocumentReading(**one) for one in readings)} if READING.name in pieces else {},
    )
