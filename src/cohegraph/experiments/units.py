"""The smallest piece of an experiment's work: one system on one fold with one seed, from training to test."""

import ctypes
import gc
import hashlib
import itertools
import json
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from cohegraph.experiments.folds import Fold
from cohegraph.features import Features
from cohegraph.learning.objectives import Levels, Targets
from cohegraph.systems.system import Fitted, Graded, Lesson, Predict, System

# So many decimals of a probability are kept: enough for every measure, and files stay small.
_DECIMALS = 6
_TINY = 1e-12


# Variant, fold, seed, system and digest: what tells a unit from all others, also from those of earlier plans.
Name = tuple[str, str, int, str, str]


@dataclass(frozen=True)
class Unit:
    """What to do. Numbers in the fold count in the features of its section, which ``made_from`` tells from others."""

    variant: str
    fold: Fold
    seed: int
    system: System
    search: Mapping[str, tuple[Any, ...]]
    choose_by: str
    refit: bool
    best_on_test: bool
    made_from: str

    @property
    def name(self) -> Name:
        """What its result and its cost are called too."""
        return (self.variant, self.fold.name, self.seed, self.system.name, self.digest)

    @property
    def digest(self) -> str:
        """Changes when the documents, their features, the system, its hyper-parameters or the way of choosing do."""
        chosen = {
            "system": self.system.name,
            "hyper-parameters": asdict(self.system),  # type: ignore[call-overload]
            "search": dict(self.search),
            "choose by": self.choose_by,
            "refit": self.refit,
            "best on test": self.best_on_test,
            "made from": self.made_from,
        }
        plain = json.dumps(chosen, sort_keys=True, default=lambda group: group.model_dump(mode="json"))
        return hashlib.sha256(plain.encode()).hexdigest()[:16]


class _Line:
    """A line of a file about a unit."""

    variant: str
    fold: str
    seed: int
    system: str
    digest: str

    @property
    def name(self) -> Name:
        """The unit's name."""
        return (self.variant, self.fold, self.seed, self.system, self.digest)


@dataclass(frozen=True)
class Result(_Line):
    """What came out of a unit, without anything that differs from run to run."""

    variant: str
    fold: str
    seed: int
    system: str
    digest: str
    chosen: dict[str, Any]
    dev_accuracy: float
    dev_loss: float
    parameters: int
    probabilities: list[list[float]]
    best_on_test: float | None = None

    def answers(self, unit: Unit, levels: int) -> bool:
        """Whether this is a whole result of the unit, with probabilities for each of its test documents."""
        if self.name != unit.name or not isinstance(self.chosen, dict):
            return False
        try:
            found = np.array(self.probabilities, dtype=np.float64)
            figures = np.array([self.dev_accuracy, self.dev_loss, self.parameters], dtype=np.float64)
        except (ValueError, TypeError):
            return False
        whole = found.shape == (len(unit.fold.test), levels) and bool(np.isfinite(figures).all())
        return whole and bool((found >= 0).all()) and bool(np.allclose(found.sum(axis=1), 1, atol=1e-3))


@dataclass(frozen=True)
class Cost(_Line):
    """What a unit cost: seconds of its whole search and training, of scoring one document, and the most memory."""

    variant: str
    fold: str
    seed: int
    system: str
    seconds: float
    seconds_a_document: float
    megabytes: float
    digest: str = ""


@dataclass(frozen=True)
class _Tried:
    """A candidate of the search, trained, and how good it is on dev documents."""

    changes: dict[str, Any]
    system: System
    fitted: Fitted
    accuracy: float
    loss: float


def run_unit(unit: Unit, features: Features, classes: npt.NDArray[np.int64], levels: int) -> tuple[Result, Cost]:
    """Search on dev, train, and look at test once."""
    objective = Levels(levels)
    training, dev = (Graded(features[rows], Targets(classes[rows])) for rows in (unit.fold.training, unit.fold.dev))
    test, gold = features[unit.fold.test], classes[unit.fold.test]
    on_test: list[float] = []

    def watch(_: int, predict: Predict) -> None:
        on_test.append(float((predict(test).argmax(axis=1) == gold).mean()))

    def tried(changes: dict[str, Any]) -> _Tried:
        system = unit.system.changed(changes)
        fitted = system.fit(Lesson(training, objective, dev, unit.seed, watch if unit.best_on_test else None))
        outputs = np.log(np.maximum(fitted.predict(dev.features), _TINY))
        return _Tried(changes, system, fitted, *objective.quality(outputs, dev.targets))

    def quality(one: _Tried) -> tuple[float, float]:
        return (one.accuracy, -one.loss) if unit.choose_by == "accuracy" else (-one.loss, one.accuracy)

    before = _resident()
    start = time.perf_counter()
    best = max(map(tried, candidates(unit.search)), key=quality)
    fitted, chosen = best.fitted, {**best.changes, **best.fitted.chosen}
    if unit.refit:
        fitted = best.system.changed(fitted.chosen).fit(Lesson(training + dev, objective, seed=unit.seed))
    trained = time.perf_counter()
    probabilities = fitted.predict(test)
    scored = time.perf_counter()
    if on_test:
        on_test.append(float((probabilities.argmax(axis=1) == gold).mean()))
    on_dev, rounded = (best.accuracy, best.loss), np.round(probabilities, _DECIMALS).tolist()
    result = Result(*unit.name, chosen, *on_dev, fitted.parameters, rounded, max(on_test, default=None))
    costs = (trained - start, (scored - trained) / max(1, len(test)), max(0.0, _peak() - before))
    return result, Cost(*unit.name[:4], *costs, unit.digest)


def candidates(search: Mapping[str, tuple[Any, ...]]) -> Iterator[dict[str, Any]]:
    """Every combination of the values to try."""
    for values in itertools.product(*search.values()):
        yield dict(zip(search, values, strict=True))


def _resident() -> float:
    """Megabytes of memory in use now; from here on the peak is counted from zero where the system allows it."""
    gc.collect()
    with suppress(OSError, AttributeError):
        # Memory that earlier units have freed is returned first, or this unit would seem to need nothing.
        ctypes.CDLL(None).malloc_trim(0)
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
        return _status("VmRSS")
    return _peak()


def _peak() -> float:
    with suppress(OSError):
        return _status("VmHWM")
    if sys.platform == "win32":
        return float("nan")
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 2**20 if sys.platform == "darwin" else peak / 2**10


def _status(field: str) -> float:
    for line in Path("/proc/self/status").read_text("ascii").splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) / 2**10
    raise OSError(field)
