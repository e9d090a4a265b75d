"""What is checked of texts and features before a model takes them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from cohegraph.errors import CohegraphError
from cohegraph.features import Features, Material
from cohegraph.graph.catalogue import catalogue
from cohegraph.settings import Settings
from cohegraph.text.document import Document


def check_same_settings(wanted: dict[str, Any], made_with: dict[str, Any]) -> None:
    """Raise where features were made with other settings than the model's."""
    for name, value in wanted.items():
        if made_with[name] != value:
            raise CohegraphError(
                f"The features were made with {name}={made_with[name]}, and the model has {name}={value}: make them "
                f"anew, with model.featurize(texts), 'cohegraph featurize --model' or --set {name}={value}."
            )


def check_patterns(features: Features, settings: Settings) -> None:
    """Raise where features count other patterns than the settings have."""
    patterns = len(catalogue(settings.subgraphs.k, settings.subgraphs.patterns))
    if features.counts.shape[1] != patterns:
        raise CohegraphError(
            f"The features count {features.counts.shape[1]} patterns, and the settings have {patterns}."
        )


def check_material(features: Features, needs: Iterable[Material]) -> None:
    """Raise where features lack something that the model needs."""
    for name in sorted(needs):
        if name not in features.material:
            raise CohegraphError(
                f"The features were made without '{name}', which the model needs: give it texts, or make them with "
                "model.featurize(texts)."
            )


def checked_texts(texts: Sequence[str] | Sequence[Document]) -> Sequence[str | Document]:
    """The texts as a list, each of them a string or a parsed document."""
    if isinstance(texts, str):
        raise CohegraphError("Give a list of texts, even for a single one: [text].")
    checked: list[str | Document] = [*texts]
    for number, text in enumerate(checked, start=1):
        if not isinstance(text, str | Document):
            raise CohegraphError(f"Document {number} is not a text but of type {type(text).__name__}.")
    return checked
