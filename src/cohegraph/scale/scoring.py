"""Assessments of any number of documents, in order, in memory that does not grow."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from cohegraph.corpora.columns import Entry
from cohegraph.errors import CohegraphError
from cohegraph.scale.engine import LocalEngine, Request, batches

if TYPE_CHECKING:  # importing a model imports torch, which takes seconds
    from cohegraph.assessment import Assessment
    from cohegraph.model.coherence_model import CoherenceModel


@dataclass(frozen=True)
class Scored:
    """A document with its assessment; none where it could not be read."""

    entry: Entry
    result: Assessment | None


def score(
    entries: Iterable[Entry], loaded: Callable[[], CoherenceModel], *, workers: int = 1
) -> Iterator[list[Scored]]:
    """The entries with their assessments, some at a time; the model is loaded when the first text is there.

    With several ``workers`` as many processes parse and encode; each computes with one thread, so that the last digits
    of a probability may differ from those of a single process with several.
    """
    waiting = batches(entries)
    for some in waiting:
        if any(not entry.problem for entry in some):
            yield from _assessed(chain([some], waiting), loaded(), workers)
        else:
            yield _joined(some, [])


def _assessed(waiting: Iterable[list[Entry]], model: CoherenceModel, workers: int) -> Iterator[list[Scored]]:
    from cohegraph.features.stages import features_of

    if workers == 1:
        for some in waiting:
            readable = [entry.text for entry in some if not entry.problem]
            yield _joined(some, model.assess(readable) if readable else [])
        return
    if model.system_.needs:
        raise CohegraphError(
            f"A model of the system '{model.system_.name}' reads token by token, which several --workers do not share: "
            "leave them out."
        )
    featurizer = model.featurizer
    featurizer.load()
    for request, pieces in LocalEngine(featurizer, workers).computed(map(_request, waiting)):
        results = model.assess(features_of(featurizer, pieces)) if request.texts else []
        yield _joined(list(request.about), results)


def _request(some: list[Entry]) -> Request[Entry]:
    return Request.of(some, [entry.text for entry in some if not entry.problem])


def _joined(some: list[Entry], results: list[Assessment]) -> list[Scored]:
    waiting = iter(results)
    return [Scored(entry, None if entry.problem else next(waiting)) for entry in some]
