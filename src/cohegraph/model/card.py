"""The card that is saved with every model: what it is, what it learnt from, and what it cannot do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from textwrap import TextWrapper
from typing import Any

from cohegraph.systems.system import System

_CARD = """# {name}

{method}
{note}
## Levels{order}

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
import cohegraph

model = cohegraph.load("THIS FOLDER")
print(model.assess([text])[0])
```

## Limits

- It knows the kind of texts that it was trained on: a text of another kind, language or length may be judged wrongly.
{limits}
{calibration}
{kept}
"""
_METHOD = (
    "A model that measures how coherent an English document is, made with cohegraph {cohegraph}. Its system is {title} "
    "(`{name}`){source}; it has learnt {parameters:,} numbers from {documents} graded documents."
)
_PARAGRAPH = TextWrapper(120, break_long_words=False, break_on_hyphens=False)
_POINT = TextWrapper(120, initial_indent="- ", subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
KEPT_NOTHING = "This folder holds weights and sums over documents; it holds no training text."


def model_card(about: dict[str, Any], system: System, *, kept: str = KEPT_NOTHING) -> str:
    """The Markdown card of a model with this description; ``kept`` says what it holds of its training documents."""
    method = _METHOD.format(
        cohegraph=about["cohegraph"],
        title=system.title,
        name=system.name,
        source=f", after {system.citation}" if system.citation else "",
        parameters=about["parameters"],
        documents=about["documents"],
    )
    settings = {f"{group}.{name}": value for group, items in about["settings"].items() for name, value in items.items()}
    own = {name: value for name, value in system.hyper_parameters.items() if name not in settings}
    return _CARD.format(
        name=about["name"],
        method=_PARAGRAPH.fill(method),
        note=f"\n{about['note']}\n" if about["note"] else "",
        order=", from the lowest to the highest" if about["ordered"] else " (in no known order)",
        levels=_levels(about),
        training=_training(about),
        validation=_validation(about["training"].get("validation")),
        hyper_parameters=_hyper_parameters(own),
        parts=_rows(about["parts"].items()),
        settings=_rows(settings.items()),
        limits="\n".join(_POINT.fill(limit) for limit in system.limits),
        calibration=_POINT.fill(_calibration(about["calibration"], about["settings"]["objective"]["kind"])),
        kept=_POINT.fill(kept),
    )


def _levels(about: dict[str, Any]) -> str:
    objective, documents = about["settings"]["objective"], about["training"]["documents"]
    if objective["kind"] in ("levels", "ordinal"):
        rows = ((level, documents[str(level)]) for level in about["levels"])
        return f"| level | training documents |\n|---|---|\n{_rows(rows)}"
    bounds = [0.0, *objective["thresholds"], 1.0]
    rows = (
        (level, f"{100 * low:.0f} to {100 * high:.0f}")
        for level, low, high in zip(about["levels"], bounds, bounds[1:], strict=False)
    )
    return f"| level | score |\n|---|---|\n{_rows(rows)}"


def _training(about: dict[str, Any]) -> str:
    training, seed = about["training"], about["settings"]["training"]["seed"]
    chosen = ", ".join(f"{name}={value}" for name, value in training["chosen"].items())
    objective = about["settings"]["objective"]["kind"]
    what = {"levels": "levels", "ordinal": "levels in their order", "rating": "ratings", "ranking": "to rank"}
    sentence = f"It learnt {what[objective]} from {about['documents']} documents with seed {seed}"
    if training["dev_documents"]:
        how = f"{chosen} was chosen on" if chosen else "held out:"
        right = "right" if objective in ("levels", "ordinal") else "of pairs in the right order"
        share = f"{100 * training['dev_quality']:.1f} % {right}"
        sentence += f"; {how} {training['dev_documents']} dev documents ({share})"
    elif chosen:
        sentence += f", {chosen}"
    return f"{sentence}."


def _calibration(found: dict[str, Any], kind: str) -> str:
    if kind == "ranking":
        return "The score is the share of training documents that it ranks lower, in per cent."
    if not found["documents"]:
        return "Nothing was held out to calibrate it: take its probabilities, or its ratings, as they are."
    if kind == "rating":
        return (
            f"On {found['documents']} held-out documents its ratings were off by {100 * found['spread']:.1f} points of "
            "100 (root mean square)."
        )
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
    return f"\nCross-validation over {figures['folds']} folds{grouped}: {validation_in_words(figures)}\n"


def validation_in_words(figures: dict[str, Any]) -> str:
    """What cross-validation found, in a sentence."""
    if "accuracy" in figures:
        accuracy, std, majority = (f"{100 * figures[name]:.1f}" for name in ("accuracy", "std", "majority"))
        return f"accuracy {accuracy} % (± {std}); always predicting the most frequent level gives {majority} %."
    pairs, std = (f"{100 * figures[name]:.1f}" for name in ("ordered_pairs", "std"))
    error = f", mean error {100 * figures['error']:.1f} points of 100" if "error" in figures else ""
    return f"{pairs} % of pairs in the right order (± {std}; chance is 50 %){error}."
