r"""The mean similarity of neighbouring sentences: what a practitioner would use today.

TextDescriptives prints it as "coherence". Of sentence vectors :math:`s_i`, the means of their tokens' vectors,

.. math:: c_1 = mean_i \cos(s_i, s_{i+1}), \qquad c_2 = mean_i \cos(s_i, s_{i+2})

are first- and second-order coherence. A logistic regression on the two tells the level; of a document too short for
one of them, it takes the mean of the training documents.

Simplified: sentence vectors are means of the encoder's states, which have seen the sentences around, or of word
vectors; TextDescriptives takes those of a spaCy pipeline.
"""

from dataclasses import dataclass

import numpy as np

from cohegraph.features import Features
from cohegraph.systems.neural import Tokens
from cohegraph.systems.regression import Floats, Regression
from cohegraph.systems.system import Reading
from cohegraph.text.token_sequence import TokenSequence


def neighbour_similarity(sequence: TokenSequence, order: int = 1) -> float:
    """The mean cosine of sentences so many apart; NaN where there are none."""
    means = sequence.sentence_means().astype(np.float64)
    if len(means) <= order:
        return float("nan")
    unit = means / np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-12)
    return float((unit[:-order] * unit[order:]).sum(axis=1).mean())


@dataclass(frozen=True)
class NeighbourSimilarity(Regression):
    """Logistic regression on the mean similarity of neighbouring sentences, and of every second one.

    Args:
        tokens: `states` of the encoder, or `words`: word vectors.
    """

    name = "neighbour-similarity"
    title = "Neighbour similarity"
    limits = ("It sees how alike neighbouring sentences are: a text that repeats itself looks coherent.",)
    citation = "Hansen, Olsen and Enevoldsen (2023), TextDescriptives"
    least_sentences = 3

    tokens: Tokens = "states"

    @property
    def reads(self) -> frozenset[Reading]:
        """The token vectors."""
        return frozenset({self.tokens})

    def inputs(self, features: Features) -> Floats:
        """The two similarities."""
        sequences = features.sequences(self.tokens)
        return np.array([[neighbour_similarity(one, order) for order in (1, 2)] for one in sequences])
