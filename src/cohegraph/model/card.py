"""The card that is saved with every model: what it is, what it learnt from, and what it is not."""

from __future__ import annotations

from typing import Any

_CARD = """# {name}

A model that tells how coherent an English document is, made with cohegraph {cohegraph}. It compares how the sentences
of a document connect with how the sentences of {documents} graded documents connect (Liu, Fu and Strube, ACL 2023), and
reads the document's wording through a pretrained encoder.
{note}
## Levels{order}

| level | training documents |
|---|---|
{levels}

## Training

{training}
{validation}
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
from cohegraph import CoherenceModel

model = CoherenceModel.load("THIS FOLDER")
print(model.assess([text])[0])
```

## Limits

- The levels are those of the training documents: a text of another kind, language or length may be judged wrongly.
- It sees connections between nouns: a text that is held together by pronouns, or whose sentences are in a wrong order
  though their nouns recur, may be judged wrongly.
- Probabilities are the network's own, not calibrated.
- This folder holds weights and sums over documents; it holds no training text.
"""


def model_card(about: dict[str, Any]) -> str:
    """The Markdown card of a model with this description."""
    training = about["training"]
    epochs = f"{training['epochs']} epochs over all documents at once, weights of epoch {training['chosen_epoch']}"
    if training["dev_documents"]:
        accuracy = 100 * (training["dev_accuracy"] or 0)
        epochs += f", chosen on {training['dev_documents']} dev documents (accuracy {accuracy:.1f} %)"
    settings = [
        (f"{group}.{name}", value) for group, items in about["settings"].items() for name, value in items.items()
    ]
    return _CARD.format(
        name=about["name"],
        cohegraph=about["cohegraph"],
        documents=about["documents"],
        note=f"\n{about['note']}\n" if about["note"] else "",
        order=", from the lowest to the highest" if about["ordered"] else " (in no known order)",
        levels=_rows((level, training["documents"][str(level)]) for level in about["levels"]),
        training=epochs + ".",
        validation=_validation(training.get("validation")),
        parts=_rows(about["parts"].items()),
        settings=_rows(settings),
    )


def _rows(pairs: Any) -> str:
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
