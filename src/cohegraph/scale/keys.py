"""What the halves of features are made from, as keys: a change of any of it makes them anew, of nothing else."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable

from cohegraph.features import Featurizer
from cohegraph.graph.links import parts_of

_SAID_BY_IDENTITY = ("vectors.source", "encoder.source", "encoder.precision")
# Changes whenever the meaning of a stored half does: 3 says whether a text is English.
_FORMAT, _FORMATS = 2, {"structure": 3}


def shape(featurizer: Featurizer, half: str, groups: Iterable[str], parts: Iterable[str]) -> str:
    """All that shapes one half of the features besides the text: settings of some groups, and pretrained parts."""
    # What a part is and how it computes says its identity; where it lies and who chose it does not matter.
    chosen = {
        name: value
        for name, value in featurizer.settings.of_features().items()
        if name.split(".")[0] in tuple(groups) and name not in _SAID_BY_IDENTITY
    }
    identities = featurizer.identities
    made_from = {
        "format": _FORMATS.get(half, _FORMAT),
        "half": half,
        "settings": chosen,
        "parts": {name: identities[name] for name in parts},
    }
    return json.dumps(made_from, sort_keys=True)


def structure_shape(featurizer: Featurizer) -> str:
    """What shapes counts and tallies: links and patterns, and whatever parts the linkers need."""
    parts = parts_of(featurizer.settings.links)
    return shape(featurizer, "structure", ("links", "subgraphs", *parts), ("parser", *parts))


def vector_shape(featurizer: Featurizer) -> str:
    """What shapes vectors."""
    return shape(featurizer, "vectors", ("encoder",), ("encoder",))


def key_of(shape: str, text: str) -> str:
    """The key of one half of one text."""
    return hashlib.sha256(f"{shape}\n{text}".encode("utf-8", "surrogatepass")).hexdigest()
