"""The card that is saved with every model: what it is, what it learnt from, and what it is not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from textwrap import TextWrapper
from typing import Any

_CARD = """# {name}

{method}
{note}
## Levels{order}

| level | training documents |
|---|---|
{levels}

## Training

{training}
{validation}{hyper_parameters}
## Pretrained parts

| part | identity |
|---|---|
{parts}

## Settings

| setting | value |
|---|---|
{settings}

## Use

```python
from cohegraph import {imported}

model = {load}("THIS FOLDER")
print(model.assess([text])[0])
```

## Limits

- The levels are those of the training documents: a text of another kind, language or length may be judged wrongly.
{limits}
{calibration}
{kept}
"""
_WHAT = "A model that tells how coherent an English document is, made with cohegraph {cohegraph}. {method}"
_CORPUS_GRAPH = (
    "It compares how the sentences of a document connect with how the sentences of {documents} graded documents "
    "connect (Liu, Fu and Strube, ACL 2023), and reads the document's wording through a pretrained encoder."
)
_NO_EDGES = (
    "It is the network of Liu, Fu and Strube (ACL 2023) without the edges of its corpus graph, trained on {documents} "
    "graded documents: it reads the document's wording through a pretrained encoder, and not how its sentences connect."
)
NOUNS_ALONE = (
    "It sees connections between nouns: a text that is held together by pronouns, or whose sentences are in a wrong "
    "order though their nouns recur, may be judged wrongly."
)
_PARAGRAPH = TextWrapper(120, break_long_words=False, break_on_hyphens=False)
_POINT = TextWrapper(120, initial_indent="- ", subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


@dataclass(frozen=True)
class CardText:
    """What a card says of the way in which its model predicts.

    Args:
        method: What it does, in sentences.
        training: How it was trained, in a sentence.
        settings: The settings that concern it.
        limits: What it is blind to, a sentence each.
        load: What loads it.
        giver: What gives the probabilities.
        hyper_parameters: Those that are not settings of all models.
    """

    method: str
    training: str
    settings: Mapping[str, Any]
    limits: tuple[str, ...]
    load: str
    giver: str
    hyper_parameters: Mapping[str, Any] = field(default_factory=dict)


KEPT_NOTHING = "This folder holds weights and sums over documents; it holds no training text."


def model_card(about: dict[str, Any], text: CardText, *, kept: str = KEPT_NOTHING) -> str:
    """The Markdown card of a model with this description; ``kept`` says what it holds of its training documents."""
    training = about["training"]
    return _CARD.format(
        name=about["name"],
        method=_PARAGRAPH.fill(_WHAT.format(cohegraph=about["cohegraph"], method=text.method)),
        note=f"\n{about['note']}\n" if about["note"] else "",
        order=", from the lowest to the highest" if about["ordered"] else " (in no known order)",
        levels=_rows((level, training["documents"][str(level)]) for level in about["levels"]),
        training=text.training,
        validation=_validation(training.get("validation")),
        hyper_parameters=_hyper_parameters(text.hyper_parameters),
        parts=_rows(about["parts"].items()),
        settings=_rows(text.settings.items()),
        imported=text.load.split(".")[0],
        load=text.load,
        limits="\n".join(_POINT.fill(limit) for limit in text.limits),
        calibration=_POINT.fill(_calibration(about["calibration"], text.giver)),
        kept=_POINT.fill(kept),
    )


def corpus_graph_text(about: dict[str, Any]) -> CardText:
    """What the card of a `CoherenceModel` says."""
    training = about["training"]
    epochs = f"{training['epochs']} epochs over all documents at once, weights of epoch {training['chosen_epoch']}"
    if training["dev_documents"]:
        epochs += f", chosen on {on_dev(training)}"
    without_edges = about["settings"]["corpus_graph"]["weighting"] == "none"
    return CardText(
        method=(_NO_EDGES if without_edges else _CORPUS_GRAPH).format(documents=about["documents"]),
        training=f"{epochs}.",
        settings={
            f"{group}.{name}": value for group, items in about["settings"].items() for name, value in items.items()
        },
        limits=() if without_edges else (NOUNS_ALONE,),
        load="CoherenceModel.load",
        giver="network",
    )


def on_dev(training: dict[str, Any]) -> str:
    """How many dev documents there were, and how many of them were predicted right."""
    return f"{training['dev_documents']} dev documents (accuracy {100 * (training['dev_accuracy'] or 0):.1f} %)"


def _calibration(found: dict[str, Any], giver: str) -> str:
    if not found["documents"]:
        return f"Probabilities are the {giver}'s own, not calibrated."
    return (
        f"Probabilities are calibrated with a temperature of {found['temperature']:.2f}, fitted on "
        f"{found['documents']} held-out documents, whose log loss it changed from {found['log_loss_before']:.3f} to "
        f"{found['log_loss']:.3f}."
    )


def _hyper_parameters(values: Mapping[str, Any]) -> str:
    if not values:
        return ""
    return f"\n## Hyper-parameters\n\n| hyper-parameter | value |\n|---|---|\n{_rows(values.items())}\n"


def _rows(pairs: Iterable[tuple[Any, Any]]) -> str:
    return "\n".join(f"| {_cell(key)} | {_cell(value)} |" for key, value in pairs)


def _cell(value: Any) -> str:
    return " ".join(str(value).replace("|", " ").split())


def _validation(figures: dict[str, Any] | None) -> str:
    if figures is None:
        return ""
    grouped = ", groups kept together" if figures["grouped"] else ""
    accuracy, std, majority = (f"{100 * figures[name]:.1f}" for name in ("accuracy", "std", "majority"))
    return (
        f"\nCross-validation over {figures['folds']} folds{grouped}: accuracy {accuracy} % (standard deviation {std} "
        f"points); always the most frequent level: {majority} %.\n"
    )
