"""Texts and features, checked before a model uses them."""

import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cohegraph.errors import CohegraphError
from cohegraph.features import OF_LINKER, SEQUENCES, Features, Featurizer, LinkedDocument, Material, patterns_of
from cohegraph.graph.links.linker import FIRST_VERSION
from cohegraph.settings import Settings
from cohegraph.text.document import Document
from cohegraph.text.readers import DEFAULT_READER

if TYPE_CHECKING:
    from cohegraph.model.learnt import Learnt

Text = str | Document | LinkedDocument
Texts = Sequence[str] | Sequence[Document] | Sequence[LinkedDocument] | Features


def check_same_settings(wanted: dict[str, Any], made_with: dict[str, Any]) -> None:
    """Raise where features were made with other settings than the model's."""
    for name, value in wanted.items():
        if made_with[name] != value:
            raise CohegraphError(
                f"The features were made with {name}={made_with[name]}, and the model has {name}={value}: make them "
                f"again, with model.featurize(texts), 'cohegraph featurize --model' or --set {name}={value}.",
                code="other-settings",
            )


def features_of(
    texts: Texts, featurizer: Featurizer, needs: Collection[Material], *, places: bool = True, show_progress: bool
) -> Features:
    """The features of texts; features themselves are checked, and say their settings afterwards.

    A CohegraphError says where they were made with other settings, or lack something that a model needs. Unless
    ``places`` are compared too, they may come from parts that were elsewhere.
    """
    settings = featurizer.settings
    if "reading" in needs and not settings.reader.judges:
        raise CohegraphError(
            f"This system needs a reader: set reader.source={DEFAULT_READER} (--set on the command line).",
            code="no-reader",
        )
    if not isinstance(texts, Features):
        return featurizer.featurize(_checked(texts), needs=needs, show_progress=show_progress)
    if texts.settings is not None:
        check_same_settings(settings.of_features(places=places), texts.settings.of_features(places=places))
    for name in sorted(needs):
        if name not in texts.material:
            raise CohegraphError(
                f"The features were made without '{name}', which the model needs: use texts (in Python, "
                "model.featurize(texts) makes all that it needs).",
                code="missing-material",
            )
    patterns, counted = len(patterns_of(settings)), texts.counts.shape[1]
    if counted != patterns:
        raise CohegraphError(
            f"The features count {counted} patterns, and the settings have {patterns}.", code="other-settings"
        )
    return texts if texts.settings is not None else replace(texts, settings=settings)


def _checked(texts: Sequence[Text]) -> Sequence[Text]:
    """The texts as a list, each of them a string, or a document that is parsed or linked."""
    if isinstance(texts, str):
        raise CohegraphError("Give a list of texts, even for a single one: [text].", code="not-a-list")
    checked = [*texts]
    for number, text in enumerate(checked, start=1):
        if not isinstance(text, Text):
            raise CohegraphError(
                f"Document {number} is not a text but of type {type(text).__name__}.", code="not-a-text"
            )
    return checked


def check_places(parts: Mapping[str, str], settings: Settings) -> None:
    """Raise where a part that was a file or folder is not here: its bare name could be taken for one on the hub."""
    places = {"vectors": ("glove:", settings.vectors.source), "encoder": ("folder:", settings.encoder.source)}
    for part, (mark, place) in places.items():
        if parts.get(part, "").startswith(mark) and not Path(place).exists():
            raise CohegraphError(
                f"The model was trained with '{place}' ({part}), which is not here: say where it is with "
                f"--{part} PLACE, or load(…, {part}=PLACE).",
                code="part-elsewhere",
            )


def check_like_training(features: Features, learnt: "Learnt") -> None:
    """Raise where features come from other pretrained parts than those of the training; a parser is only warned of."""
    linkers = [part for part in features.parts if part.startswith(OF_LINKER)]
    for part in dict.fromkeys((*learnt.parts, *linkers)):
        first = FIRST_VERSION if part.startswith(OF_LINKER) and features.parts else None
        identity = learnt.parts.get(part, FIRST_VERSION)
        present = features.parts.get(part, first or identity)
        if present == identity:
            continue
        message = f"The model was trained with the {part} {identity}, and this is {present}"
        if part != "parser":
            raise CohegraphError(
                f"{message}: name the right one with --{part}, or load(…, {part}=PLACE), or train again.",
                code="other-part",
            )
        warnings.warn(f"{message}: results may differ a little.", stacklevel=4)
    found = {"document": features.vectors.shape[1]} | (widths_of(features, learnt.widths) if len(features) else {})
    for name, expected in {"document": learnt.dimensions, **learnt.widths}.items():
        if found.get(name, expected) != expected:
            raise CohegraphError(
                f"The model takes vectors of {expected} dimensions, and these have {found[name]}: use the pretrained "
                "parts that it was trained with.",
                code="other-dimensions",
            )


def widths_of(features: Features, needs: Collection[str]) -> dict[str, int]:
    """How long the token vectors are that a system reads, and how many numbers the states of a reading are."""
    found = {name: np.asarray(features.sequences(name)[0].vectors).shape[1] for name in SEQUENCES if name in needs}
    return found | ({"reading": features.readings[0].states.size} if "reading" in needs else {})
