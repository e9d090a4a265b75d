r"""How good predictions are, and how sure that is.

A run is one system on the test documents of one fold with one seed. Every measure is taken run by run within a section
(a prompt, a domain) and never over sections thrown together; its value is the mean over runs, its std that over runs.

The interval is a bootstrap over documents: documents of the section are drawn with replacement 2,000 times, and with
them all their predictions in all runs. All measures but one follow from sums over documents, so that drawing is a
product of matrices: with W the times that each document was drawn, (draws, documents), and a row a document that
says which cell of the confusion matrix it falls into, W times these rows are the confusion matrices of all draws.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy import stats

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

DRAWS = 2_000
_BINS = 10
_INTERVAL = (2.5, 97.5)


@dataclass(frozen=True)
class Run:
    """Predictions for the test documents of a fold: their numbers in the section, and (documents, levels)."""

    documents: Ints
    probabilities: Floats

    @property
    def predicted(self) -> Ints:
        """The most probable level of each document."""
        return np.asarray(self.probabilities.argmax(axis=1))


@dataclass(frozen=True)
class SectionRuns:
    """All runs of one system in one section, with the true levels (and scores) of the section's documents."""

    gold: Ints
    levels: int
    runs: tuple[Run, ...]
    scores: Floats | None = None

    @cached_property
    def tested(self) -> npt.NDArray[np.bool_]:
        """Which documents are tested in any run."""
        found = np.zeros(len(self.gold), dtype=bool)
        for run in self.runs:
            found[run.documents] = True
        return found

    def mean(self, of_run: Callable[[Run], Floats]) -> Floats:
        """One value per document, or one row: the mean over runs; NaN for documents never tested."""
        values = np.concatenate([of_run(run) for run in self.runs])
        documents = np.concatenate([run.documents for run in self.runs])
        total = np.zeros((len(self.gold), *values.shape[1:]))
        np.add.at(total, documents, values)
        with np.errstate(invalid="ignore"):
            return np.asarray((total.T / np.bincount(documents, minlength=len(self.gold))).T)

    def mean_probabilities(self) -> Floats:
        """One opinion per document."""
        return self.mean(lambda run: run.probabilities)

    def mean_accuracy(self) -> Floats:
        """The share of its runs in which a document's level is right."""
        return self.mean(lambda run: (run.predicted == self.gold[run.documents]).astype(np.float64))


@dataclass(frozen=True)
class Estimate:
    """A measure: mean and std over runs, and the 95 % interval over documents. ``draws`` are what it comes from."""

    mean: float
    std: float
    low: float
    high: float
    draws: Floats


Measure = Callable[[SectionRuns, Floats], Estimate]


# Each takes confusion matrices (..., gold, predicted) and gives their values (...).
def accuracy(confusion: Floats) -> Floats:
    """Share of documents whose level is right."""
    return _ratio(np.trace(confusion, axis1=-2, axis2=-1), confusion.sum(axis=(-2, -1)))


def macro_f1(confusion: Floats) -> Floats:
    """Mean over levels of the harmonic mean of precision and recall; levels neither true nor predicted do not count."""
    hits = np.diagonal(confusion, axis1=-2, axis2=-1)
    both = confusion.sum(axis=-1) + confusion.sum(axis=-2)
    present = both > 0
    f1 = np.where(present, 2 * hits / np.where(present, both, 1), 0)
    return _ratio(f1.sum(axis=-1), present.sum(axis=-1))


def adjacent_accuracy(confusion: Floats) -> Floats:
    """Share of documents that are at most one level off."""
    near = np.abs(np.subtract.outer(np.arange(confusion.shape[-1]), np.arange(confusion.shape[-1]))) <= 1
    return _ratio((confusion * near).sum(axis=(-2, -1)), confusion.sum(axis=(-2, -1)))


def quadratic_kappa(confusion: Floats) -> Floats:
    """Quadratic weighted kappa: agreement beyond chance, far misses weighing more; 0 where chance leaves no room."""
    levels = confusion.shape[-1]
    weights = np.subtract.outer(np.arange(levels), np.arange(levels)) ** 2
    total = confusion.sum(axis=(-2, -1))
    by_chance = confusion.sum(axis=-1)[..., :, None] * confusion.sum(axis=-2)[..., None, :]
    seen = (weights * confusion).sum(axis=(-2, -1))
    expected = _ratio((weights * by_chance).sum(axis=(-2, -1)), total)
    return np.where(expected > 0, 1 - _ratio(seen, np.where(expected > 0, expected, 1)), 0.0)


def recall_of(level: int) -> Callable[[Floats], Floats]:
    """Accuracy on the documents of one level; NaN where there are none."""

    def recall(confusion: Floats) -> Floats:
        return _ratio(confusion[..., level, level], confusion[..., level, :].sum(axis=-1))

    return recall


def _ratio(above: Floats, below: Floats) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(above / below)


def draw_documents(documents: int, seed: int = 0, draws: int = DRAWS) -> Floats:
    """How often each document was drawn, (draws, documents). The same for every system, so that they can be paired."""
    generator = np.random.default_rng(seed)
    return generator.multinomial(documents, np.full(documents, 1 / documents), size=draws).astype(np.float64)


def estimate(section: SectionRuns, measure: Callable[[Floats], Floats], weights: Floats) -> Estimate:
    """A measure of confusion matrices: over runs, and over draws of documents."""
    values, draws = [], []
    for run in section.runs:
        gold = section.gold[run.documents]
        cells = np.zeros((len(gold), section.levels**2))
        cells[np.arange(len(gold)), gold * section.levels + run.predicted] = 1
        shape = (section.levels, section.levels)
        values.append(float(measure(cells.sum(axis=0).reshape(shape))))
        draws.append(measure((weights[:, run.documents] @ cells).reshape(-1, *shape)))
    return _estimate(values, np.stack(draws))


def calibration_error(section: SectionRuns, weights: Floats) -> Estimate:
    """Expected calibration error: how far confidence and accuracy are apart, over ten bins of confidence.

    All runs of the section are taken together, since a bin of one run holds few documents.
    """
    documents = np.concatenate([run.documents for run in section.runs])
    confidence = np.concatenate([run.probabilities.max(axis=1) for run in section.runs])
    right = np.concatenate([run.predicted == section.gold[run.documents] for run in section.runs])
    bins = np.minimum((confidence * _BINS).astype(int), _BINS - 1)
    gap = np.zeros((len(documents), _BINS))
    gap[np.arange(len(documents)), bins] = confidence - right

    def error(times: Floats) -> Floats:
        return _ratio(np.abs(times @ gap).sum(axis=-1), times.sum(axis=-1))

    return _estimate([float(error(np.ones(len(documents))))], error(weights[:, documents])[None])


def rank_correlation(section: SectionRuns, weights: Floats) -> Estimate:
    """Spearman's correlation of the graders' scores with the expected level, run by run."""
    if section.scores is None:
        raise ValueError("there are no scores")
    values, draws = [], []
    some = weights[: len(weights) // 10]
    for run in section.runs:
        expected = run.probabilities @ np.arange(section.levels)
        scores = section.scores[run.documents]
        values.append(_spearman(expected, scores))
        drawn = (np.repeat(np.arange(len(expected)), row.astype(int)) for row in some[:, run.documents])
        draws.append([_spearman(expected[rows], scores[rows]) for rows in drawn])
    return _estimate(values, np.array(draws))


def _spearman(first: Floats, second: Floats) -> float:
    if len(first) < 2 or np.ptp(first) == 0 or np.ptp(second) == 0:
        return 0.0
    return float(np.corrcoef(stats.rankdata(first), stats.rankdata(second))[0, 1])


def _estimate(values: Sequence[float], draws: Floats) -> Estimate:
    """``draws`` (runs, draws) are averaged over runs before their interval is taken."""
    known = [value for value in values if not np.isnan(value)]
    if not known:
        nan = float("nan")
        return Estimate(nan, nan, nan, nan, np.full(draws.shape[1], nan))
    means = _nan_mean(draws)
    low, high = np.nanpercentile(means, _INTERVAL)
    std = float(np.std(known, ddof=1)) if len(known) > 1 else 0.0
    return Estimate(float(np.mean(known)), std, float(low), float(high), means)


def _nan_mean(draws: Floats) -> Floats:
    """Mean over runs of what is known; a draw may have left out a whole level."""
    known = ~np.isnan(draws)
    return _ratio(np.where(known, draws, 0).sum(axis=0), known.sum(axis=0).astype(np.float64))


def average(estimates: Sequence[Estimate]) -> Estimate:
    """The mean over sections; its interval comes from drawing the documents of every section."""
    # A section without any document of a level has no accuracy on it, and the others make the mean.
    known = [estimate for estimate in estimates if not np.isnan(estimate.mean)]
    if not known:
        return estimates[0]
    draws = _nan_mean(np.stack([estimate.draws for estimate in known]))
    low, high = np.nanpercentile(draws, _INTERVAL)
    mean, std = (float(np.mean([getattr(estimate, name) for estimate in known])) for name in ("mean", "std"))
    return Estimate(mean, std, float(low), float(high), draws)


def measures_of(levels: Sequence[str], *, ordered: bool, scored: bool) -> dict[str, Measure]:
    """All measures of a corpus by their names in tables; some need levels in an order, one graders' scores."""

    def of(measure: Callable[[Floats], Floats]) -> Measure:
        return lambda section, weights: estimate(section, measure, weights)

    found = {"accuracy": of(accuracy), "macro-F1": of(macro_f1)}
    if ordered:
        found |= {"QWK": of(quadratic_kappa), "adjacent": of(adjacent_accuracy)}
    if ordered and scored:
        found["Spearman"] = rank_correlation
    found["ECE"] = calibration_error
    return found | {f"accuracy on {level}": of(recall_of(code)) for code, level in enumerate(levels)}
