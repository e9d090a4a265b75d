"""The card that is saved with every model: what it is, what it learnt from, and what it cannot do."""

from collections.abc import Iterator, Mapping
from functools import partial
from textwrap import TextWrapper
from typing import Any

from cohegraph.graph.links import linker_named
from cohegraph.model.learnt import Learnt
from cohegraph.systems.system import NOUNS_ALONE
from cohegraph.version import __version__

KEPT_NOTHING = "This folder holds weights and sums over documents; it holds no training text."
_OTHER_LINKS = (
    "It sees these connections: {links}. A text that is held together in other ways, or whose sentences are in a wrong "
    "order though they connect, may be judged wrongly."
)
_LEARNT = {"levels": "levels", "ordinal": "levels in their order", "rating": "ratings", "ranking": "to rank"}


def model_card(model: Learnt) -> str:
    """The Markdown card of a model."""
    from jinja2 import Environment, PackageLoader, StrictUndefined  # slow to import, and only saving needs it

    templates = Environment(loader=PackageLoader("cohegraph", "data"), undefined=StrictUndefined, trim_blocks=True)
    wrapper = partial(TextWrapper, 120, break_long_words=False, break_on_hyphens=False)
    paragraph, point = wrapper(), wrapper(initial_indent="- ", subsequent_indent="  ")
    templates.filters |= {"paragraph": paragraph.fill, "point": point.fill, "rows": _rows}
    settings, own = model.settings.flat(), model.system.hyper_parameters
    return templates.get_template("card.md.jinja").render(
        model=model,
        version=__version__,
        levels=_levels(model),
        what_was_learnt=_LEARNT[model.settings.objective.kind],
        chosen=", ".join(f"{name}={value}" for name, value in model.training["chosen"].items()),
        validation_in_words=validation_in_words,
        settings=settings,
        own={name: value for name, value in own.items() if name not in settings},
        limits=[*_limits(model)],
    )


def _rows(pairs: Mapping[Any, Any]) -> str:
    cells = ([" ".join(str(cell).replace("|", " ").split()) for cell in pair] for pair in pairs.items())
    return "\n".join(f"| {key} | {value} |" for key, value in cells)


def _levels(model: Learnt) -> dict[Any, Any]:
    objective = model.settings.objective
    if objective.is_of_levels:
        return {level: model.training["documents"][str(level)] for level in model.levels}
    bounds = [f"{100 * bound:.0f}" for bound in (0.0, *objective.thresholds, 1.0)]
    return {level: f"{low} to {high}" for level, low, high in zip(model.levels, bounds, bounds[1:], strict=False)}


def _limits(model: Learnt) -> Iterator[str]:
    """What it is blind to, how far its scores can be trusted, and what it holds of its training documents."""
    linkers, kind, found = model.settings.links.linkers, model.settings.objective.kind, model.calibration
    for limit in model.system.limits:
        other_links = limit == NOUNS_ALONE and linkers != ("nouns",)
        links = "; ".join(linker_named(name).about for name in linkers)
        yield _OTHER_LINKS.format(links=links) if other_links else limit
    if kind == "ranking":
        yield "The score is the percentage of training documents that it ranks lower."
    elif not found.documents:
        yield "Nothing was held out to calibrate it: take its probabilities, or its ratings, as they are."
    elif found.spread is not None:
        off = f"{100 * found.spread:.1f} points of 100 (root mean square)"
        yield f"On {found.documents} held-out documents its ratings were off by {off}."
    else:
        yield (
            f"Probabilities are calibrated with a temperature of {found.temperature:.2f}, fitted on {found.documents} "
            f"held-out documents, whose log loss it changed from {found.log_loss_before:.3f} to {found.log_loss:.3f}."
        )
    yield KEPT_NOTHING if model.neighbours is None else model.neighbours.in_words()


def validation_in_words(figures: dict[str, Any]) -> str:
    """What cross-validation found, in a sentence."""
    if "accuracy" in figures:
        accuracy, std, majority = (f"{100 * figures[name]:.1f}" for name in ("accuracy", "std", "majority"))
        return f"accuracy {accuracy} % (± {std}); always predicting the most frequent level gives {majority} %."
    right, std = (f"{100 * figures[name]:.1f}" for name in ("ordered_pairs", "std"))
    pairs = f"{figures['pairs']:,} pairs" if "pairs" in figures else "pairs"
    error = f", mean error {100 * figures['error']:.1f} points of 100" if "error" in figures else ""
    return f"{right} % of {pairs} in the right order (± {std}; chance is 50 %){error}."
