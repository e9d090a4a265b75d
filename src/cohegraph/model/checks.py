"""What is checked of texts and features before a model takes them."""

import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from cohegraph.errors import CohegraphError
from cohegraph.features import SEQUENCES, Features, LinkedDocument, Material, patterns_of
from cohegraph.settings import Settings
from cohegraph.text.document import Document

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


def check_features(
    features: Features, settings: Settings, needs: Collection[Material], *, places: bool = True
) -> Features:
    """Features for a model with these settings; those that do not say their settings now do.

    Raises a CohegraphError where they were made with other settings, or lack something that the model needs.
    ``places`` are compared if they are to be those of the settings.
    """
    if features.settings is not None:
        check_same_settings(settings.of_features(places=places), features.settings.of_features(places=places))
    for name in sorted(needs):
        if name not in features.material:
            raise CohegraphError(
                f"The features were made without '{name}', which the model needs: give it texts, or make them with "
                "model.featurize(texts).",
                code="missing-material",
            )
    patterns = len(patterns_of(settings))
    if features.counts.shape[1] != patterns:
        raise CohegraphError(
            f"The features count {features.counts.shape[1]} patterns, and the settings have {patterns}.",
            code="other-settings",
        )
    return features if features.settings is not None else replace(features, settings=settings)


def checked_texts(texts: Sequence[Text]) -> Sequence[Text]:
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
    for part, mark, place in (
        ("vectors", "glove:", settings.vectors.source),
        ("encoder", "folder:", settings.encoder.source),
    ):
        if parts.get(part, "").startswith(mark) and not Path(place).exists():
            raise CohegraphError(
                f"The model's {part} were trained from '{place}', which is not here: say where it is with "
                f"--{part} PLACE, or load(…, {part}=PLACE).",
                code="part-elsewhere",
            )


def check_parts(trained_with: Mapping[str, str], found: Mapping[str, str]) -> None:
    """Raise where the pretrained parts are not those of the training; another parser is only warned about."""
    for part, identity in trained_with.items():
        present = found.get(part, identity)
        if present == identity:
            continue
        message = f"The model was trained with the {part} {identity}, and this is {present}"
        if part != "parser":
            raise CohegraphError(
                f"{message}: name the right one when loading the model, or train again.", code="other-part"
            )
        warnings.warn(f"{message}: results may differ a little.", stacklevel=4)


def check_widths(features: Features, dimensions: int, widths: Mapping[str, int]) -> None:
    """Raise where vectors of documents or of tokens are longer or shorter than those of the training."""
    found = {"document": features.vectors.shape[1], **(widths_of(features, widths) if len(features) else {})}
    for name, width in found.items():
        expected = {"document": dimensions, **widths}[name]
        if width != expected:
            what = "document" if name == "document" else "token"
            raise CohegraphError(
                f"The model takes {what} vectors of {expected} dimensions, and these have {width}: use the pretrained "
                "parts that it was trained with.",
                code="other-dimensions",
            )


def widths_of(features: Features, needs: Collection[str]) -> dict[str, int]:
    """How long the token vectors are that a system reads."""
    return {name: np.asarray(features.sequences(name)[0].vectors).shape[1] for name in SEQUENCES if name in needs}
