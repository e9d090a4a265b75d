"""What a reader and its heads find in a document, as figures of the whole document, and a linear model on them.

Figures of sentences and boundaries are summarised by mean, least, most and standard deviation; probabilities are
log-odds before that. The reader's states have several hundred dimensions each and count less than single figures.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
import numpy.typing as npt
from pydantic import Field
from scipy.special import logit

from cohegraph.features import SURFACE_FIGURES, Features
from cohegraph.features.document_features import DocumentReading
from cohegraph.systems.regression import Floats, Regression, Strength
from cohegraph.systems.system import Search
from cohegraph.text.reader import FIGURES

_LOSS, _EXPECTED = FIGURES.index("loss"), FIGURES.index("expected_loss")
# A probability nearer to 0 or 1 than this says no more than this does.
_LEAST = 1e-4
_SUMMARY = ("mean", "least", "most", "deviation")
# What is summarised.
_OF_SENTENCES = (*FIGURES, "surprise", "belonging")
FIGURES_OF_READING = (
    *(f"{name} of a token" for name in FIGURES),
    *(f"{summary} {name}" for name in (*_OF_SENTENCES, "boundary") for summary in _SUMMARY),
    "score of the heads",
    "tokens in a sentence (relative deviation)",
)


def figures_of_reading(reading: DocumentReading) -> npt.NDArray[np.float64]:
    """FIGURES_OF_READING of a document; NaN for what it does not have."""
    losses, tokens = reading.losses.astype(np.float64), reading.tokens.astype(np.float64)
    surprise = losses[:, _LOSS] - losses[:, _EXPECTED]
    of_sentences = np.column_stack([losses, surprise, _log_odds(reading.belonging)])
    with_tokens = tokens > 0
    if not with_tokens.any():
        return np.full(len(FIGURES_OF_READING), np.nan)
    return np.concatenate(
        [
            tokens @ losses / tokens.sum(),
            _summary(of_sentences[with_tokens]).T.ravel(),
            _summary(_log_odds(reading.boundaries)[:, None]).T.ravel(),
            reading.score,
            [tokens.std() / tokens.mean()],
        ]
    )


def _summary(columns: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Mean, least, most and deviation of every column, (4, columns); NaN where there is no row."""
    if not len(columns):
        return np.full((len(_SUMMARY), columns.shape[1]), np.nan)
    return np.stack([columns.mean(axis=0), columns.min(axis=0), columns.max(axis=0), columns.std(axis=0)])


def _log_odds(probabilities: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
    return np.asarray(logit(probabilities.astype(np.float64).clip(_LEAST, 1 - _LEAST)))


@dataclass(frozen=True)
class ReadingRegression(Regression):
    """A linear model on what a reader and its heads find, and on six surface figures.

    Args:
        strength: scikit-learn's C: the smaller, the stronger the L2 penalty.
        states: How much the reader's states count, compared with other figures; 0 to leave them out.
    """

    name = "reading"
    title = "Reader + LR"
    looks_at = frozenset({"reading"})
    least_sentences = 3
    limits = (
        "It sees how well each sentence can be foreseen from what stands before it, and whether it fits in with the "
        "others: whether what a text says is true does not show in that.",
    )
    search: ClassVar[Search] = {"strength": (0.0003, 0.001, 0.003, 0.01, 0.03, 0.1)}
    farthest: ClassVar[float | None] = 5.0

    strength: Strength = 0.01
    states: Annotated[float, Field(ge=0, le=10)] = 0.1

    def inputs(self, features: Features) -> Floats:
        """Figures of the reading and of the surface, and the states."""
        readings = features.readings
        figures = np.array([figures_of_reading(one) for one in readings])
        states = [np.array([one.states.ravel() for one in readings], dtype=np.float64)] if self.states else []
        return np.column_stack([figures, features.surface, *states])

    def importance(self, inputs: int) -> Floats:
        """1 for figures, and less for states."""
        figures = len(FIGURES_OF_READING) + len(SURFACE_FIGURES)
        return np.concatenate([np.ones(figures), np.full(inputs - figures, self.states)])
